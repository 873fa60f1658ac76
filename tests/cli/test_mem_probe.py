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
TENANT = """
import time
held = bytearray(b"x") * (200 << 20)
turns = 0
while True:
    turns += 1
    print(turns, flush=True)
    time.sleep(0.02)
"""
HOLDER = """
import time
import hostdev, torch
held = torch.full(({size} << 20,), 7, dtype=torch.uint8, device="hostdev")
turns = 0
while True:
    turns += int(held[turns % 1000].item() == 7)
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


def asked(before: str = "", **request: object) -> dict[str, Any]:
    """What the child tells of the host's memory when a shell starts it behind some words."""
    document = json.dumps({"devices": ["cpu"], "allocate": True, **request})
    command = f"{before} exec {sys.executable} {CHILD} '{document}'"
    return found(subprocess.run(["bash", "-c", command], capture_output=True, text=True))


@pytest.mark.slow
@pytest.mark.parametrize("limit", [500, 1024, 2047])
def test_a_limit_of_address_space_is_found(limit: int, said: list[str]) -> None:
    told = asked(f"ulimit -v {limit * 1024};")["allocation"]
    said.append(
        f"ulimit -v {limit} MiB: {told['limit'] // MIB} MiB found, {told['total'] // MIB} of them touched, "
        f"{told['trials']} trials, {told['seconds']} s"
    )
    assert told["bound"] == "mapping"
    assert 0 <= limit * MIB - told["limit"] <= SLACK
    assert told["total"] <= told["limit"]


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of processes within another one, to have a limit of its own (cgroup v1)."""
    if os.getuid() or not (GROUPS / "memory.limit_in_bytes").exists():
        pytest.skip("no cgroup v1 of memory that may be written")
    above = GROUPS / f"diag-test-{os.getpid()}"
    try:
        above.mkdir()
        (above / "inner").mkdir()
    except OSError as error:
        pytest.skip(f"no group can be made: {error}")
    yield above / "inner"
    for folder in (above / "inner", above):
        for _ in range(50):
            if not (folder / "cgroup.procs").read_text():
                break
            time.sleep(0.1)
        folder.rmdir()


def tenant(command: list[str], **environment: str) -> subprocess.Popen[str]:
    """A process that holds memory and counts its turns, once it has begun."""
    began = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    assert began.stdout
    assert began.stdout.readline()
    return began


def goes_on(process: subprocess.Popen[str]) -> bool:
    """Whether it is at work after the last turn that it had told before; it ends then."""
    assert process.stdout
    with process:
        alive = process.poll() is None
        turns = [int(process.stdout.readline()) for _ in range(3)]
        time.sleep(0.2)
        alive = alive and process.poll() is None
        process.kill()
    return alive and turns == list(range(turns[0], turns[0] + 3))


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "where"), [(1024, "own"), (1536, "above")])
def test_a_groups_limit_is_found_and_a_co_tenant_goes_on(group: Path, limit: int, where: str, said: list[str]) -> None:
    bounding = group if where == "own" else group.parent
    (bounding / "memory.limit_in_bytes").write_text(str(limit * MIB))
    enter = f"echo $$ > {group}/cgroup.procs;"
    beside = tenant(["bash", "-c", f"{enter} exec {sys.executable} -c '{TENANT}'"])
    used = int((bounding / "memory.usage_in_bytes").read_text())
    told = asked(enter, cap=4096 * MIB)["allocation"]
    assert goes_on(beside)
    most, refused = (int((bounding / f"memory.{name}").read_text()) for name in ("max_usage_in_bytes", "failcnt"))
    seen = used + told["total"] + told["left"]
    said.append(
        f"cgroup of {limit} MiB ({where}), {used // MIB} in use: {seen // MIB} MiB found, "
        f"{told['total'] // MIB} touched, {told['seconds']} s; the co-tenant went on"
    )
    assert (told["bound"], told["limit"]) == ("group", limit * MIB)
    assert abs(limit * MIB - seen) <= SLACK
    assert told["total"] >= 0.95 * limit * MIB - used - SLACK
    # The kernel never had to refuse, take back or end anything.
    assert (most <= 0.96 * limit * MIB, refused) == (True, 0)
    assert "oom_kill 0" in (group / "memory.oom_control").read_text()


@pytest.mark.slow
def test_of_a_group_that_is_nearly_full_nothing_is_taken(group: Path) -> None:
    (group / "memory.limit_in_bytes").write_text(str(240 * MIB))
    enter = f"echo $$ > {group}/cgroup.procs;"
    beside = tenant(["bash", "-c", f"{enter} exec {sys.executable} -c '{TENANT}'"])
    told = asked(enter, cap=1024 * MIB)["allocation"]
    assert goes_on(beside)
    assert (told["bound"], told["total"]) == ("group", 0)
    assert "oom_kill 0" in (group / "memory.oom_control").read_text()


def probed(*words: str, beside: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(BACKEND), beside, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run((*DIAG, "mem", "probe", *words), capture_output=True, text=True, env=environment)


def facts(told: subprocess.CompletedProcess[str]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """What was read and what was had of the one device, and the rules that found something."""
    document = json.loads(told.stdout)
    ((read,), (had,)) = document["facts"]["MemoryRead"], document["facts"]["MemoryAllocation"]
    return read, had, [one["id"] for one in document["findings"]]


ALLOCATE = ("--import", "hostdev", "--allocate", "--format", "json")


@FIXTURE
@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "largest", "total", "fires"),
    [
        ({}, 6144, 6144, []),
        ({"HOSTDEV_QUOTA": str(3333 * MIB)}, 3333, 3333, ["memory/less-than-told"]),
        ({"HOSTDEV_PIECE": str(1500 * MIB)}, 1500, 6144, ["memory/less-than-told"]),
    ],
    ids=["whole", "quota", "pieces"],
)
def test_of_a_device_all_but_the_last_is_found(
    setting: dict[str, str], largest: int, total: int, fires: list[str], said: list[str]
) -> None:
    told = probed(*ALLOCATE, HOSTDEV_MEMORY=str(8192 * MIB), **setting)
    assert told.returncode == 0, told.stderr
    read, had, fired = facts(told)
    found = f"{had['largest'] / MIB:.0f} MiB at once, {had['total'] / MIB:.0f} in all, {had['trials']} trials"
    said.append(f"device of 8192 MiB that gives {largest} at once and {total} in all: {found}, {had['seconds']} s")
    assert read["total"] == read["free"] == 8192 * MIB
    assert had["cap"] == 6144 * MIB
    assert 0 <= largest * MIB - had["largest"] <= SLACK
    assert 0 <= total * MIB - had["total"] <= SLACK
    assert fired == fires


@FIXTURE
@pytest.mark.slow
def test_what_a_context_takes_is_told_and_nothing_stays(tmp_path: Path) -> None:
    shared = {"HOSTDEV_SHARED": str(tmp_path / "rows"), "HOSTDEV_CONTEXT": str(500 * MIB)}
    for _ in range(2):
        read, had, _ = facts(probed(*ALLOCATE, HOSTDEV_MEMORY=str(8192 * MIB), **shared))
        assert (read["free"], read["context"]) == (7692 * MIB, 500 * MIB)
        assert 0 <= 7692 * MIB - 2048 * MIB - had["total"] <= SLACK


@FIXTURE
@pytest.mark.slow
def test_nothing_is_allocated_where_another_process_holds_the_device(tmp_path: Path) -> None:
    environment = {
        "HOSTDEV_SHARED": str(tmp_path / "rows"),
        "HOSTDEV_CONTEXT": str(500 * MIB),
        "HOSTDEV_MEMORY": str(8192 * MIB),
    }
    beside = tenant([sys.executable, "-c", HOLDER.format(size=1200)], PYTHONPATH=str(BACKEND), **environment)
    _, had, _ = facts(probed(*ALLOCATE, **environment))
    assert goes_on(beside)
    assert (had["refused"], had["total"]) == ("others hold 1700 MiB of it", 0)


@FIXTURE
@pytest.mark.slow
@pytest.mark.parametrize(("pid", "refused"), [(os.getpid(), True), (2**22, False)], ids=["there", "ended"])
def test_who_holds_a_device_is_known_from_its_tool(pid: int, refused: bool) -> None:
    request = {"imports": ["hostdev"], "allocate": True, "cap": 128 * MIB}
    given = {"given": [{"kind": "DeviceProcess", "index": 0, "pid": pid, "name": "pytest"}]}
    command = [sys.executable, str(CHILD), json.dumps(request), json.dumps(given)]
    environment = {**os.environ, "PYTHONPATH": str(BACKEND)}
    told = found(subprocess.run(command, capture_output=True, text=True, env=environment))
    assert told.get("refused") == (f"held by pytest[{pid}]" if refused else None)
    assert ("allocation" in told) is not refused


@FIXTURE
@pytest.mark.slow
def test_a_platform_that_asks_the_host_is_found(tmp_path: Path) -> None:
    engine = tmp_path / "vllm"
    engine.mkdir()
    (engine / "__init__.py").write_text('print("a word of the engine")\n__version__ = "0.15.1"\n')
    (engine / "platforms.py").write_text(
        "import os\n\n\nclass Platform:\n    def get_device_total_memory(self):\n"
        '        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")\n\n\n'
        "current_platform = Platform()\n"
    )
    told = json.loads(probed("--import", "hostdev", "--format", "json", beside=str(tmp_path)).stdout)
    (one,) = told["facts"]["PlatformMemory"]
    assert (one["platform"], one["version"]) == ("vllm.platforms.Platform", "0.15.1")
    assert [one["id"] for one in told["findings"]] == ["memory/platform-takes-the-hosts"]


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
