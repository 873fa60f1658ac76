"""All-reduces over loopback by three programs: diag's measuring child, gloo's own benchmark, OSU's over Open MPI.

The first two are measured alike: as many processes, float32, in place, gloo's ring over TCP on `lo`, a barrier before
each call, as many calls, and of each call the seconds of its slowest rank. For that gloo's program is built with
`gloo_benchmark.patch`: its buffers are otherwise out of place, there is no barrier between its calls, and it tells no
single call. OSU's times other algorithms of another library, and tells one mean.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

from diag.measure import collectives, sweep

PATIENCE = 120
"""Seconds after which ranks are killed."""
PATCH = Path(__file__).with_name("gloo_benchmark.patch")
WARM_UP = 10
OSU_TRANSPORTS = {"tcp": ("tcp,self", "--mca", "btl_tcp_if_include", "lo"), "shared memory": ("vader,self",)}
Result = TypeVar("Result")


class Ranks(NamedTuple):
    """How many processes, and the interpreter with torch."""

    number: int
    python: str


def watched(act: Callable[[], Result]) -> tuple[Result, float]:
    """What an act gives, and the share of the processors that neither this process nor its children took meanwhile."""

    def now() -> tuple[float, float, float]:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall, own, busy = sweep.ticks()
        return wall, own + usage.ru_utime + usage.ru_stime, busy

    before = now()
    given = act()
    wall, own, busy = (after - then for after, then in zip(now(), before, strict=True))
    return given, max(0.0, (busy - own) / (wall * (os.cpu_count() or 1)))


def diag_calls(ranks: Ranks, size: int, budget: float) -> tuple[dict[str, list[float]], float]:
    """Seconds of the samples of each mode, without the block that warms up; what others took, as diag tells it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    request = {"device": "cpu", "backend": "gloo", "dtype": "fp32", "patience": PATIENCE, "budget": budget}
    request |= {"ops": ["all_reduce"], "sizes": [size], "modes": ["synchronised", "free-running"]}
    command = (ranks.python, collectives.__file__, json.dumps(request))
    # As torchrun sets it; the threads of an idle pool would take the processors that gloo's need.
    common = {"WORLD_SIZE": str(ranks.number), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **address}
    document = json.loads(_together([(command, {"RANK": str(rank), **common}) for rank in range(ranks.number)])[0][0])
    if "trouble" in document or not all(one["correct"] for one in document["results"]):
        raise SystemExit(f"diag measured nothing: {document}")
    seconds = {one["mode"]: [*chain(*sweep.counted(one["blocks"]))] for one in document["results"]}
    return seconds, max(one["foreign_cpu"] for one in document["results"])


def gloo_calls(program: Path, ranks: Ranks, size: int, calls: int) -> list[float]:
    """Seconds of each call."""
    with tempfile.TemporaryDirectory() as meeting:
        command = (
            *(str(program), "-s", str(ranks.number), "--shared-path", meeting, "-t", "tcp", "--tcp-device", "lo"),
            *("--no-verify", "--elements", str(size // 4), "--warmup-iters", str(WARM_UP)),
            *("--iteration-count", str(calls), "new_allreduce_ring"),
        )
        said = _together([((*command, "-r", str(rank)), {}) for rank in range(ranks.number)])
    nanoseconds = [[int(one) for one in err.split()] for _, err in said]
    if {len(one) for one in nanoseconds} != {calls}:
        raise SystemExit(f"{program} did not tell {calls} calls")
    return [max(call) / 1e9 for call in zip(*nanoseconds, strict=True)]


def osu_means(program: Path, ranks: Ranks, transport: str, largest: int, calls: int) -> dict[int, float]:
    """Mean seconds of a call of the slowest rank, by bytes."""
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    command = (
        *("mpirun", "-np", str(ranks.number), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
        *("--mca", "pml", "ob1", "--mca", "btl", *OSU_TRANSPORTS[transport]),
        *(str(program), "-f", "-m", str(largest), "-i", str(calls), "-x", str(WARM_UP), "-M", str(8 * largest)),
    )
    rows = [line.split() for line in _together([(command, root)])[0][0].splitlines() if line[:1].isdigit()]
    return {int(size): float(slowest) / 1e6 for size, _, _, slowest, _ in rows}


def _together(commands: Sequence[tuple[Sequence[str], Mapping[str, str]]]) -> list[tuple[str, str]]:
    """Run commands side by side, each with variables of its own; what they wrote."""
    with tempfile.TemporaryDirectory() as folder:
        places = [(Path(folder, f"{number}.out"), Path(folder, f"{number}.err")) for number in range(len(commands))]
        started = []
        for (command, variables), (out, err) in zip(commands, places, strict=True):
            with out.open("w") as out_file, err.open("w") as err_file:
                environment = os.environ | variables
                started.append(subprocess.Popen(command, stdout=out_file, stderr=err_file, env=environment))
        end = time.monotonic() + PATIENCE
        try:
            for one in started:
                one.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            pass
        finally:
            for one in started:
                one.kill()
                one.wait()
        said = [(out.read_text(), err.read_text()) for out, err in places]
    if any(one.returncode for one in started):
        raise SystemExit(
            f"{commands[0][0][0]} ended with {[one.returncode for one in started]}:\n"
            + "\n".join(err[-2000:] for _, err in said)
        )
    return said


def built_gloo(source: Path, folder: Path) -> Path:
    """Gloo's benchmark, built of a copy of its source; one that was built in this folder before is taken again."""
    copied, build = folder / "gloo", folder / "gloo-build"
    program = build / "gloo" / "benchmark" / "benchmark"
    if program.exists():
        return program
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns(".git"))
    _do("patch", "--strip=1", f"--directory={copied}", f"--input={PATCH}")
    options = ("-DBUILD_BENCHMARK=ON", "-DUSE_REDIS=OFF", "-DCMAKE_BUILD_TYPE=Release")
    _do("cmake", "-S", str(copied), "-B", str(build), *options)
    _do("cmake", "--build", str(build), "--target", "benchmark", "--parallel", str(os.cpu_count() or 1))
    return program


def built_osu(source: Path, folder: Path) -> Path:
    """OSU's all-reduce, built with the compiler of Open MPI."""
    program, sources = folder / "osu_allreduce", source / "mpi" / "collective"
    version = (source / "configure.ac").read_text().partition("AC_INIT([OSU-Micro-Benchmarks], [")[2].partition("]")[0]
    files = (str(sources / "osu_allreduce.c"), str(sources / "osu_coll.c"))
    _do("mpicc", "-O3", "-w", f'-DPACKAGE_VERSION="{version}"', "-o", str(program), *files, "-lm")
    return program


def _do(name: str, *arguments: str) -> None:
    # What pip installed stands beside the interpreter.
    found = shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if not found:
        raise SystemExit(f"no {name} on PATH: apt-get install cmake g++ patch, or libopenmpi-dev openmpi-bin for OSU's")
    done = subprocess.run((found, *arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
