"""`--container`: another machine's namespaces looked at from inside, through a runtime's `exec`.

The runtime is a script that answers `container inspect` and enters real namespaces for `exec`, as runtimes do.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from contract.shell import diag

from diag.inside import HANDS
from diag.probe import program

RUNTIME = """\
#!/bin/sh
if [ "$1" = container ]; then
    [ "$5" = box ] && echo {running} && exit
    echo "Error response from daemon: No such container: $5" >&2
    exit 1
fi
shift 2
exec {enter} "$@"
"""


def runtime(folder: Path, enter: str = "", running: str = "true") -> str:
    folder.mkdir(exist_ok=True)
    script = folder / "docker"
    script.write_text(RUNTIME.format(enter=enter, running=running))
    script.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def inside(home: Path, path: str, *options: str, container: str = "box") -> subprocess.CompletedProcess[str]:
    python = ("--python", sys.executable)
    return diag(home, "env-check", "--quick", "--no-redact", "--container", container, *python, *options, PATH=path)


@pytest.fixture
def boxed() -> Iterator[int]:
    """A process in namespaces of its own, whose host is called `boxed`."""
    if os.geteuid() != 0 or not (shutil.which("unshare") and shutil.which("nsenter")):
        pytest.skip("needs root, unshare and nsenter")
    program = "hostname boxed && echo ready && exec sleep 300"
    command = ("unshare", "-mupf", "--mount-proc", "sh", "-c", program)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        first = psutil.Process(started.pid)
        if started.stdout is None or started.stdout.readline() != b"ready\n":
            pytest.skip("no namespaces can be made here")
        try:
            yield first.children()[0].pid
        finally:
            # The first process of a namespace takes all others with it.
            for child in first.children():
                child.kill()


def test_the_inside_is_what_is_examined(tmp_path, boxed):
    path = runtime(tmp_path / "bin", f"nsenter --target {boxed} --mount --uts --pid")
    done = inside(tmp_path, path, "--format", "json")
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr, report["source"]["name"]) == (4, "", "docker box")
    assert "boxed" in {one.get("name") for one in report["facts"]["Host"]}
    assert report["facts"]["Package"]


def test_it_says_what_the_host_says_where_both_are_one(tmp_path):
    path = runtime(tmp_path / "bin")
    there = json.loads(inside(tmp_path, path, "--format", "json").stdout)
    options = ("env-check", "--quick", "--no-redact", "--python", sys.executable, "--format", "json")
    here = json.loads(diag(tmp_path, *options, PATH=path).stdout)
    ends = [{(one["id"], one["status"]) for one in report["results"]} for report in (there, here)]
    assert ends[0] == ends[1]
    counted = [{kind: len(told) for kind, told in report["facts"].items()} for report in (there, here)]
    assert counted[0] == counted[1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"container": "other"}, "No such container: other"),
        ({"running": "false"}, "not running"),
        ({"enter": "false"}, "exit code 1"),
        ({"enter": "sh -c 'echo python3: not found >&2; exit 127'"}, "python3: not found"),
        ({"enter": "sh -c 'kill -9 $$'"}, "killed by SIGKILL"),
        ({"enter": "echo '[]' #"}, "[]"),
        ({"enter": "echo '[{\"seconds\": null}]' #"}, "seconds"),
        ({"enter": "head -c 4000 /dev/zero | tr '\\0' '[' #"}, "[["),
    ],
)
def test_what_cannot_be_entered_is_one_line_and_exit_2(tmp_path, options, says):
    container = options.pop("container", "box")
    done = inside(tmp_path, runtime(tmp_path / "bin", **options), container=container)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr


def test_without_a_runtime_the_line_to_run_is_printed(tmp_path):
    done = inside(tmp_path, "/nowhere")
    assert (done.returncode, "exec box sh -c 'pip install diag && diag env-check'" in done.stderr) == (2, True)


def test_the_time_bound_holds_inside(tmp_path):
    path = runtime(tmp_path / "bin", "sleep 60 #")
    done = inside(tmp_path, path, "--timeout", "1", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (4, "incomplete")


@pytest.mark.parametrize(
    ("body", "error"), [("kill -SEGV $$", "killed by SIGSEGV"), ("kill -40 $$", "killed by signal 40")]
)
def test_a_step_that_dies_is_told_and_the_others_answer(tmp_path, body, error):
    path = runtime(tmp_path / "bin")
    (tmp_path / "bin" / "nvidia-smi").write_text(f"#!/bin/sh\n{body}\n")
    (tmp_path / "bin" / "nvidia-smi").chmod(0o755)
    report = json.loads(inside(tmp_path, path, "--format", "json").stdout)
    errors = {one["key"]: one["error"] for one in report["captures"]}
    assert (errors["nvidia-smi"], errors["packages"]) == (error, "")


def test_what_floods_is_kept_to_its_first_bytes() -> None:
    told = program(str(HANDS))["taken"]({"argv": ["sh", "-c", "yes | head -c 50000000"], "timeout": 20})
    assert (len(told["stdout"]), told["error"], told["exit_code"]) == (2**20, "", 0)


def test_what_hangs_is_killed_with_its_group() -> None:
    told = program(str(HANDS))["taken"]({"argv": ["sh", "-c", "sleep 60 & sleep 60"], "timeout": 0.3})
    assert (told["error"], told["seconds"] < 5) == ("timed out after 0.3 s", True)
