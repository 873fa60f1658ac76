"""`diag mem probe`: what of memory can be had, under limits of the host, on a device made for this, beside others."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
CHILD = Path(__file__).parents[2] / "src" / "diag" / "measure" / "memory.py"
BACKEND = Path(__file__).parents[1] / "backend"
GROUPS = Path("/sys/fs/cgroup/memory")
MIB = 2**20
SLACK = 64 * MIB
OWN = 48 * MIB
"""Address space that the interpreter of a trial has itself, at most."""
TENANT = """
import sys, time
held = bytearray(b"x") * (200 << 20)
turns = 0
while True:
    turns += 1
    print(turns, flush=True)
    time.sleep(0.02)
"""
FIXTURE = pytest.mark.skipif(
    not (importlib.util.find_spec("torch") and shutil.which("g++")), reason="no torch or no compiler for the backend"
)


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    (one,) = json.loads(done.stdout)["devices"]
    told: dict[str, Any] = one
    return told


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1024, 2048])
def test_a_limit_of_address_space_is_found(limit: int, said: list[str]) -> None:
    request = json.dumps({"devices": ["cpu"], "allocate": True})
    command = f"ulimit -v {limit * 1024}; exec {sys.executable} {CHILD} '{request}'"
    told = found(subprocess.run(["bash", "-c", command], capture_output=True, text=True))["allocation"]
    off = limit * MIB - told["largest"]
    said.append(
        f"ulimit -v {limit} MiB: {told['largest'] // MIB} MiB found in {told['trials']} trials, {told['seconds']} s"
    )
    assert 0 <= off <= SLACK + OWN


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of processes with a limit of its own (cgroup v1)."""
    if os.getuid() or not (GROUPS / "memory.limit_in_bytes").exists():
        pytest.skip("no cgroup v1 of memory that may be written")
    made = GROUPS / f"diag-test-{os.getpid()}"
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"no group can be made: {error}")
    yield made
    for _ in range(50):
        if not (made / "cgroup.procs").read_text():
            break
        time.sleep(0.1)
    made.rmdir()


@pytest.mark.slow
def test_a_groups_limit_is_found_and_a_co_tenant_goes_on(group: Path, said: list[str]) -> None:
    limit = 1024
    (group / "memory.limit_in_bytes").write_text(str(limit * MIB))
    enter = f"echo $$ > {group}/cgroup.procs; exec "
    command = ["bash", "-c", enter + f"{sys.executable} -c '{TENANT}'"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tenant:
        assert tenant.stdout
        tenant.stdout.readline()
        used = int((group / "memory.usage_in_bytes").read_text())
        request = json.dumps({"devices": ["cpu"], "allocate": True, "cap": 4096 * MIB})
        ask = enter + f"{sys.executable} {CHILD} '{request}'"
        told = found(subprocess.run(["bash", "-c", ask], capture_output=True, text=True))["allocation"]
        alive = tenant.poll() is None
        before, after = int(tenant.stdout.readline()), int(tenant.stdout.readline())
        tenant.kill()
    assert (alive, after) == (True, before + 1)
    truth = limit * MIB - used
    said.append(
        f"cgroup of {limit} MiB, {used // MIB} in use: {told['largest'] // MIB} MiB found in {told['trials']} trials, "
        f"{told['seconds']} s; the co-tenant went on"
    )
    assert abs(truth - told["largest"]) <= SLACK


def probed(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(BACKEND), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run((*DIAG, "mem", "probe", *words), capture_output=True, text=True, env=environment)


@FIXTURE
@pytest.mark.slow
def test_of_a_device_all_but_the_last_is_had() -> None:
    told = probed("--import", "hostdev", "--allocate", "--format", "json", HOSTDEV_MEMORY=str(4096 * MIB))
    assert told.returncode == 0, told.stderr
    facts = json.loads(told.stdout)["facts"]
    ((read,), (had,)) = facts["MemoryRead"], facts["MemoryAllocation"]
    assert read["total"] == 4096 * MIB
    assert (had["cap"], had["largest"], had["blocks"]) == (2048 * MIB, 2048 * MIB, 1)


@FIXTURE
@pytest.mark.slow
def test_without_allocating_it_reads_alone() -> None:
    told = probed("--import", "hostdev")
    assert told.returncode == 0
    assert "hostdev:0" in told.stdout
    assert "largest" not in told.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--limit", "2GiB"), "--limit is about allocating"),
        (("--allocate", "--limit", "1KiB"), "it is not a size of 64 MiB and more"),
        (("--allocate", "--limit", "much"), "it is not a size"),
        (("--device", "GPU 0"), "it is not a name"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    told = probed(*words)
    assert (told.returncode, told.stdout) == (2, "")
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_without_an_accelerator_it_says_so() -> None:
    told = probed()
    assert told.returncode == 4
    assert "nothing is told of memory" in told.stdout
    assert ": ?" not in told.stdout
