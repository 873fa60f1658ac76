"""`diag ops --pid`: a process of torch that holds a device file, looked at while it computes; it goes on meanwhile."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()", "ops", "--format", "json", "--pid")
ROOT = pytest.mark.skipif(
    bool(os.getuid()) or not shutil.which("perf") or not importlib.util.find_spec("torch"),
    reason="needs root, perf and torch",
)
APART = """
mount -t tmpfs tmpfs /dev/shm && mkdir /dev/shm/d && cp -a /dev/null /dev/zero /dev/urandom /dev/random /dev/shm/d/ &&
mknod /dev/shm/d/davinci0 c 1 3 && mount --bind /dev/shm/d /dev && exec "$@"
"""
"""A folder of devices of its own, with one that bears an accelerator's name."""
COUNTS = """
import sys, time, torch
held = open("/dev/davinci0", "rb")
numbers, rounds = torch.empty(1 << 18), 0
end = time.monotonic() + 600
while time.monotonic() < end:
    {work}
    rounds += 1
    print(rounds, flush=True)
"""


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process that does some work over and over, and the file in which it counts."""
    counted = tmp_path / "counted"
    code = COUNTS.format(work=request.param)
    with counted.open("wb") as output:
        command = ("unshare", "-m", "sh", "-c", APART, "sh", sys.executable, "-c", code)
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
    while not counted.stat().st_size and process.poll() is None:
        pass
    if process.poll() is not None:
        assert process.stderr
        pytest.skip(f"no device file of its own here: {process.stderr.read().decode()[-200:]}")
    yield process, counted
    process.kill()
    process.communicate()


def told(pid: int) -> tuple[int, dict]:
    ran = subprocess.run((*DIAG, str(pid)), capture_output=True, text=True)
    return ran.returncode, json.loads(ran.stdout)


@ROOT
@pytest.mark.slow
@pytest.mark.parametrize("server", ["numbers.exponential_()"], indirect=True)
def test_a_server_that_computes_on_the_cpu_is_named_and_goes_on(server):
    process, counted = server
    _, report = told(process.pid)
    (found,) = (one for one in report["findings"] if one["id"] == "operators/server-computes-on-cpu")
    assert "exponential" in found["summary"]
    assert "/dev/davinci0" in found["summary"]
    before = counted.stat().st_size
    assert process.poll() is None
    while counted.stat().st_size == before:
        assert process.poll() is None


@ROOT
@pytest.mark.slow
@pytest.mark.parametrize("server", ["sum(range(10_000))"], indirect=True)
def test_a_server_that_computes_in_python_alone_is_not_accused(server):
    code, report = told(server[0].pid)
    assert (code, report["findings"], report["incomplete"]) == (0, [], [])


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_without_an_accelerator_is_no_answer():
    with subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE) as process:
        code, report = told(process.pid)
        process.kill()
    assert (code, report["findings"]) == (4, [])
    assert "device file of an accelerator" in " ".join(report["incomplete"])


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(("pid", "reason"), [(2, "the kernel's own"), (2**22, "no such process")])
def test_what_cannot_be_looked_at_is_said(pid, reason):
    ran = subprocess.run((*DIAG, str(pid)), capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert reason in ran.stderr
