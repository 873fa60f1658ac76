"""`diag run` beside the bare command: the same bytes, the same end, and what is said after it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()", "run")
ELSEWHERE = (*DIAG[:2], f"import signal; del signal.sigtimedwait, signal.sigwaitinfo; {DIAG[2]}", "run")
"""As on macOS, which does not say who sent a signal."""
REPORTS = Path(__file__).resolve().parents[1] / "reports"
FAULT = REPORTS / "nccl-shm-extend-k8s.txt"
SOAK = pytest.mark.skipif("DIAG_EXAMPLES" not in os.environ, reason="takes long, or a part of the machine: make soak")
DEAF = (
    "import signal, time; signal.signal(15, lambda *_: print('deaf', flush=True)); print('up', flush=True); time.sleep"
)
COMMANDS = {
    "succeeds": ("sh", "-c", "echo out; echo err >&2"),
    "fails": ("sh", "-c", "echo out; echo err >&2; exit 3"),
    "ends as others are said to be killed": ("sh", "-c", "exit 137"),
    "segfaults": ("sh", "-c", "echo out; kill -SEGV $$"),
    "is killed": ("sh", "-c", "kill -KILL $$"),
    "reads its input": ("cat",),
    "closes its output": ("sh", "-c", "exec >&-; sleep 0.1; echo err >&2"),
    "leaves a daemon": ("sh", "-c", "(sleep 0.7; echo late) & echo out"),
    "prints what is no text": ("sh", "-c", r"printf '\377\0\001no end'; printf '\377' >&2; exit 1"),
    "asks who it is": ("sh", "-c", "test -t 0 || test -t 1 || test -t 2 || cat /proc/self/environ"),
    "asks what it was given": (
        "sh",
        "-c",
        "grep -E 'Sig(Blk|Cgt)' /proc/self/status; ulimit -a; umask; ls /proc/self/fd",
    ),
    "has all the words": ("printf", "%s|", "a b", "", "-x", "--", "--stall"),
    "signals its group": (sys.executable, "-c", DEAF + "(0.2); import os; os.killpg(0, 15); time.sleep(0.2)"),
}


def ran(*command: str, stdin: bytes = b"in\n", **given) -> subprocess.CompletedProcess:
    return subprocess.run(command, input=stdin, capture_output=True, timeout=60, start_new_session=True, **given)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_output_and_end_are_those_of_the_bare_command(command):
    bare, done = ran(*command), ran(*DIAG, *command)
    assert (done.stdout, done.returncode) == (bare.stdout, bare.returncode)
    assert done.stderr.startswith(bare.stderr)
    assert (len(done.stderr) > len(bare.stderr)) == bool(bare.returncode)


def test_streams_that_are_one_stay_in_order():
    both = ("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; echo $i >&2; done")
    done = subprocess.run((*DIAG, *both), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.stdout.split() == [str(one).encode() for one in range(1, 9) for _ in "ab"]


def test_a_known_fault_is_explained_after_its_text():
    done = ran(*DIAG, "sh", "-c", f"cat {FAULT} >&2; exit 1")
    assert done.stderr.startswith(FAULT.read_bytes())
    said = done.stderr.decode()[len(FAULT.read_text()) :]
    assert "host/nccl-segment-no-space" in said
    assert "evidence: stderr:" in said


def test_the_report_is_written_and_nothing_else_said(tmp_path):
    done = ran(*DIAG, "--quiet", "--report", str(tmp_path / "x.json"), "sh", "-c", f"cat {FAULT}; exit 1")
    assert (done.returncode, done.stdout, done.stderr) == (1, FAULT.read_bytes(), b"")
    assert '"command": "run"' in (tmp_path / "x.json").read_text()


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        (("no-such-command",), 127, "no-such-command: command not found"),
        (("/no/such",), 127, "/no/such: No such file or directory"),
        (("/tmp",), 126, "/tmp: Permission denied"),
        (("--format", "pdf", "true"), 2, "no format 'pdf'"),
        (("--select", "nope/", "true"), 2, "no check begins with 'nope/'"),
        (("--",), 2, "Missing argument"),
    ],
)
def test_what_cannot_be_started_is_one_line(command, code, says):
    done = ran(*DIAG, *command)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, b"", 1)
    assert says in done.stderr.decode()


@pytest.mark.parametrize("program", [DIAG, ELSEWHERE], ids=["here", "elsewhere"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_diag_reaches_the_command_once(number, program):
    counts = f"""
import signal, sys, time
came = []
signal.signal({int(number)}, lambda *_: came.append(1))
print("up", flush=True)
time.sleep(0.5)
sys.exit(40 + len(came))
"""
    command = (*program, sys.executable, "-c", counts)
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
    assert process.returncode == 41


def test_what_is_asked_to_end_needs_no_explanation():
    with subprocess.Popen((*DIAG, "sleep", "60"), stderr=subprocess.PIPE) as process:
        child = started_by(process.pid)
        process.terminate()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGTERM
    assert not psutil.pid_exists(child)


def test_who_is_asked_to_end_while_it_is_looked_at_ends_at_once():
    with subprocess.Popen((*DIAG, "--stall", "0.3", "sleep", "60"), stderr=subprocess.PIPE) as process:
        started_by(process.pid)
        time.sleep(1)
        process.terminate()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGTERM


def started_by(pid: int) -> int:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if (children := psutil.Process(pid).children()) and children[0].name() == "sleep":
            return children[0].pid
        time.sleep(0.02)
    raise AssertionError("nothing was started")


def test_the_command_outlives_a_diag_that_is_killed():
    with subprocess.Popen((*DIAG, "sleep", "60")) as process:
        child = psutil.Process(started_by(process.pid))
        process.kill()
        process.wait()
        assert child.status() == psutil.STATUS_SLEEPING
        child.kill()


def test_a_reader_that_leaves_ends_the_command_as_without_diag():
    with subprocess.Popen((*DIAG, "yes"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == -signal.SIGPIPE


def test_what_cannot_be_written_is_no_success():
    with open("/dev/full", "wb") as full:
        done = subprocess.run((*DIAG, "echo", "x"), stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (2, b"diag: stdout: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only Linux tells what processes do")
def test_a_stall_is_told_once_and_the_command_goes_on():
    done = ran(*DIAG, "--stall", "0.5", "sh", "-c", "echo out; sleep 4; exit 5")
    assert (done.returncode, done.stdout) == (5, b"out\n")
    first, *rest = done.stderr.decode().split("process/stalled")
    assert "all of its processes wait" in first
    assert len(rest) == 2  # while it stalled, and beside its failure


@pytest.mark.skipif("LC_ALL" in os.environ, reason="the locale is set already")
def test_python_leaves_no_trace_in_the_environment():
    assert ran(*DIAG, "/usr/bin/env", env={"LANG": "C"}).stdout == b"LANG=C\n"


@SOAK
def test_a_gigabyte_passes_whole_in_bounded_memory():
    command = f"{' '.join(map(repr, DIAG))} head -c 1000000000 /dev/zero | cksum"
    assert ran("sh", "-c", command).stdout == ran("sh", "-c", "head -c 1000000000 /dev/zero | cksum").stdout


@SOAK
def test_who_is_killed_for_memory_in_a_group_is_named():
    if not (group := made_group()):
        pytest.skip("no control group with a limit can be made here")
    hungry = "held = [bytearray(10**7) for _ in range(50)]"
    entering = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    try:
        done = ran("sh", "-c", entering, "sh", *DIAG, sys.executable, "-c", hungry)
    finally:
        group.rmdir()
    assert done.returncode == -signal.SIGKILL
    assert "process/killed-for-memory (confidence: high)" in done.stderr.decode()


def made_group() -> Path | None:
    """A control group of 100 MB, of version 2 or 1, where one can be made."""
    for base, limit in (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")):
        group = Path(base, f"diag-test-{os.getpid()}")
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / limit).exists():
                (group / limit).write_text("100000000")
                return group
            group.rmdir()
    return None


def test_what_was_typed_is_not_taken_for_what_was_said() -> None:
    words = "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests."
    done = subprocess.run([*DIAG, "sh", "-c", f"echo '{words}' >&2; exit 3"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("memory/sampler-warm-up-exhausted") == 1
    assert "evidence: stderr:1: RuntimeError" in done.stderr


def test_a_script_that_names_no_interpreter_is_the_shells(tmp_path: Path) -> None:
    script, binary = tmp_path / "script", tmp_path / "binary"
    script.write_text('echo "$1"; exit 3\n')
    binary.write_bytes(b"\0\1\2")
    for path in (script, binary):
        path.chmod(0o755)
    done = subprocess.run([*DIAG, str(script), "a b"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "a b\n")
    assert subprocess.run([*DIAG, str(binary)], capture_output=True).returncode == 126


def test_what_diag_cannot_write_is_not_the_commands_riddle() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([*DIAG, "yes"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.stderr == "diag: stdout: No space left on device\n"


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGABRT])
def test_a_signal_that_would_end_diag_is_the_commands(number: int) -> None:
    with subprocess.Popen(
        [*DIAG, "sh", "-c", f"trap 'echo came; exit 5' {int(number)}; echo up; sleep 9 & wait"], stdout=-1
    ) as ran:
        assert ran.stdout.readline() == b"up\n"
        ran.send_signal(number)
        assert (ran.stdout.readline(), ran.wait(9)) == (b"came\n", 5)
