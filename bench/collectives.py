"""How well diag times collectives on this machine: against its own batches, and against C++ programs.

    python bench/collectives.py --gloo SOURCE [--osu SOURCE] [--python PATH]

An all-reduce between processes over loopback, of sizes from 1 KiB to 64 MiB, in rounds A B A B: diag's measuring child
under the interpreter with torch, then gloo's own C++ benchmark with as many calls (`_anchors.py` says how alike they
are). SOURCE are unpacked sources of github.com/pytorch/gloo and of the OSU micro-benchmarks; they are built in a
temporary folder (or `--folder`, where gloo is not built twice). Four things are compared:

* per call / batched: the mean of calls timed one by one by that of batches, both diag's: what timing each call costs
* diag / C++: medians, where bytes take the time
* diag - C++: of the fastest call and of the lower decile, where the way through torch takes it
* diag / OSU's over TCP: means, for the order of magnitude alone

Both parts wait for a quiet machine; a round counts where other processes took at most `--foreign` of the processors.
Of each comparison the median of the rounds is told, with its 90 % interval by resampling rounds. A goal is met where
the whole interval is within it, not met where none of it is, else open, as it is with fewer than five rounds. Exit code
0 where all are met, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from statistics import mean, median, quantiles
from types import SimpleNamespace
from typing import Any, NamedTuple

from _anchors import OSU_TRANSPORTS, Ranks, built_gloo, built_osu, diag_calls, gloo_calls, osu_means, watched
from _measured import load

from diag.measure import collectives, sweep

KIB, MIB = 2**10, 2**20
SIZES = (KIB, 64 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
UNBOUNDED = float("inf")
OSU_CALLS, OSU_ROUNDS, OSU_WAIT = 20, 3, 60
RESAMPLED = 2_000
BELIEVED = 5
"""Rounds that must count before an interval is believed."""
ATTEMPTS = 3
"""Of a part, beside one in which the machine was quiet."""
PAUSE = 0.5
"""Seconds for which the machine must be quiet before something is started."""
TIMED = 200_000
"""Empty calls."""


class Round(NamedTuple):
    """Seconds of the samples of one size, and the larger of the shares that other processes took in the two parts."""

    per_call: list[float]
    batched: list[float]
    gloo: list[float]
    foreign: float


class Compared(NamedTuple):
    """A number of a round, what it must be, and from how many bytes to how many that is asked."""

    name: str
    of: Callable[[Round], float]
    least: float
    most: float
    sizes: range
    unit: str = ""


def decile(seconds: list[float]) -> float:
    """The lower decile."""
    return quantiles(seconds, n=10, method="inclusive")[0] if len(seconds) > 1 else seconds[0]


LARGE, SMALL = 2**62, range(64 * KIB + 1)
COMPARED = (
    Compared("per call / batched", lambda one: mean(one.per_call) / mean(one.batched), 0.9, 1.1, range(4 * MIB, LARGE)),
    Compared(
        "diag / C++, median", lambda one: median(one.per_call) / median(one.gloo), 0.9, 1.1, range(16 * MIB, LARGE)
    ),
    Compared(
        "diag - C++, fastest", lambda one: 1e6 * (min(one.per_call) - min(one.gloo)), -UNBOUNDED, 200, SMALL, "µs"
    ),
    Compared(
        "diag - C++, decile", lambda one: 1e6 * (decile(one.per_call) - decile(one.gloo)), -UNBOUNDED, 200, SMALL, "µs"
    ),
)
MAGNITUDE = (0.1, 10, range(MIB, LARGE))
"""Least and most of diag / OSU's over TCP, and where; below, a busy-polling library has nothing in common with gloo."""


def main() -> int:
    """Build, measure, print, and judge."""
    options = _options()
    before = load()
    with _folder(options.folder) as folder:
        gloo = built_gloo(options.gloo, folder)
        osu = built_osu(options.osu, folder) if options.osu else None
        rounds, dropped = measured(options, gloo)
        means = osu_measured(options, osu) if osu else {}
    document: dict[str, Any] = {
        "machine": machine(options),
        "timing_code_ns": timing_code(),
        "sizes": [told(size, taken, dropped[size], means) for size, taken in rounds.items()],
        "load": [before, load()],
    }
    print(json.dumps(document, indent=1, ensure_ascii=False) if options.json else _page(document))
    return 0 if passed(document["sizes"]) else 1


def measured(options: argparse.Namespace, gloo: Path) -> tuple[dict[int, list[Round]], dict[int, int]]:
    """The rounds of each size, until they are enough or the time is over, and how many were dropped."""
    rounds: dict[int, list[Round]] = {size: [] for size in options.sizes}
    dropped = dict.fromkeys(options.sizes, 0)
    end = time.monotonic() + 60 * options.minutes
    while left := [size for size, taken in rounds.items() if len(taken) < options.rounds]:
        for size in left:
            if time.monotonic() > end:
                return rounds, dropped
            if taken := _round(options, gloo, size, end):
                rounds[size].append(taken)
            else:
                dropped[size] += 1
            print(f"{size} bytes: {len(rounds[size])} rounds, {dropped[size]} dropped", file=sys.stderr, flush=True)
    return rounds, dropped


def _round(options: argparse.Namespace, gloo: Path, size: int, end: float) -> Round | None:
    ranks = Ranks(options.ranks, options.python)
    quiet(options.foreign, end)
    own, foreign = diag_calls(ranks, size, options.seconds)
    calls = own["synchronised"]
    for _ in range(ATTEMPTS if foreign <= options.foreign else 0):
        quiet(options.foreign, end)
        theirs, meanwhile = watched(partial(gloo_calls, gloo, ranks, size, len(calls)))
        if meanwhile <= options.foreign:
            return Round(calls, own["free-running"], theirs, max(foreign, meanwhile))
    return None


def osu_measured(options: argparse.Namespace, program: Path) -> dict[str, dict[int, float]]:
    """The median of OSU's means, by transport and bytes."""
    ranks, means = Ranks(options.ranks, options.python), {}
    for transport in OSU_TRANSPORTS:
        quiet(options.foreign, time.monotonic() + OSU_WAIT)
        taken = [osu_means(program, ranks, transport, max(options.sizes), OSU_CALLS) for _ in range(OSU_ROUNDS)]
        means[transport] = {size: median(one[size] for one in taken) for size in taken[0]}
    return means


def quiet(foreign: float, end: float) -> None:
    """Wait until others leave the machine alone, or the time is over."""
    told = False
    while time.monotonic() < end and (others := watched(partial(time.sleep, PAUSE))[1]) > foreign:
        if not told:
            print(f"waiting: others take {others:.0%} of the processors", file=sys.stderr, flush=True)
        told = True


def timing_code() -> dict[str, float]:
    """Nanoseconds of CPU of diag's timing code by call: its loops, around a call and a barrier that do nothing."""
    nothing: Any = SimpleNamespace(
        progress=collectives.Progress(""),
        synchronise=lambda: None,
        torch=SimpleNamespace(distributed=SimpleNamespace(barrier=lambda: None)),
    )
    spent: dict[str, float] = {}
    for mode in ("synchronised", "free-running"):
        start = time.process_time()
        for _ in range(TIMED // sweep.BLOCK):
            sweep.MODES[mode](nothing, lambda: None, sweep.BLOCK)
        spent[mode] = round((time.process_time() - start) / TIMED * 1e9)
    return spent


def told(size: int, rounds: list[Round], dropped: int, osu: dict[str, dict[int, float]]) -> dict[str, Any]:
    """What the document says of a size."""
    document: dict[str, Any] = {"bytes": size, "rounds": len(rounds), "dropped": dropped}
    document["osu_mean_us"] = {transport: round(1e6 * means[size], 1) for transport, means in osu.items()}
    document["compared"] = {}
    if not rounds:
        return document
    document["foreign_cpu"] = round(max(one.foreign for one in rounds), 3)
    document["calls"] = [len(one.per_call) for one in rounds]
    document["diag_us"] = summary([one.per_call for one in rounds])
    document["batched_us"] = summary([one.batched for one in rounds])
    document["gloo_us"] = summary([one.gloo for one in rounds])
    asked = [*COMPARED, *_magnitude(osu, size)]
    document["compared"] = {one.name: judged(one, size, [one.of(round_) for round_ in rounds]) for one in asked}
    return document


def _magnitude(osu: dict[str, dict[int, float]], size: int) -> Iterator[Compared]:
    if "tcp" in osu:
        yield Compared("diag / OSU's, mean", lambda one: mean(one.per_call) / osu["tcp"][size], *MAGNITUDE)


def summary(rounds: list[list[float]]) -> dict[str, float]:
    """Medians over the rounds, in microseconds."""
    numbers = {"min": min, "p10": decile, "median": median, "mean": mean}
    return {name: round(1e6 * median(of(one) for one in rounds), 1) for name, of in numbers.items()}


def judged(compared: Compared, size: int, values: list[float]) -> dict[str, Any]:
    """The median of the rounds, its interval, and whether the goal is met."""
    low, high = interval(values)
    within, without = compared.least <= low and high <= compared.most, high < compared.least or low > compared.most
    goal = "open" if len(values) < BELIEVED or not (within or without) else "met" if within else "not met"
    told = {"median": median(values), "interval": [low, high], "rounds": values, "unit": compared.unit}
    return {**told, "goal": goal if size in compared.sizes else ""}


def interval(values: list[float]) -> tuple[float, float]:
    """The 90 % interval of the median, by resampling."""
    chance = random.Random(0)
    drawn = sorted(median(chance.choices(values, k=len(values))) for _ in range(RESAMPLED))
    return drawn[RESAMPLED // 20], drawn[-RESAMPLED // 20 - 1]


def passed(sizes: list[dict[str, Any]]) -> bool:
    """Whether all goals are met; what was not measured is not."""
    goals = [one["goal"] for size in sizes for one in size["compared"].values()]
    return all(size["rounds"] for size in sizes) and {*goals} <= {"met", ""}


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """What it was measured on and with."""
    versions = "import torch; print(torch.__version__)"
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _said("sh", "-c", "grep -m1 'model name' /proc/cpuinfo | cut -d: -f2"),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "python": _said(options.python, "-c", "import platform; print(platform.python_version())"),
        "torch": _said(options.python, "-c", versions),
        "gloo": _said("git", "-C", str(options.gloo), "rev-parse", "HEAD"),
        "mpi": _said("mpirun", "--version").partition("\n")[0] if options.osu else "",
        "ranks": options.ranks,
        "foreign_cpu_most": options.foreign,
    }


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _page(document: dict[str, Any]) -> str:
    names = list(dict.fromkeys(name for size in document["sizes"] for name in size["compared"]))
    lines = [", ".join(f"{name} {value}" for name, value in document["machine"].items()), ""]
    lines.append(f"{'bytes':>9} {'rounds':>7} {'others':>7} " + " ".join(f"{name:>28}" for name in names))
    for size in document["sizes"]:
        cells = " ".join(f"{_cell(one):>28}" for one in size["compared"].values())
        counted = f"{size['rounds']}/{size['rounds'] + size['dropped']}"
        lines.append(f"{size['bytes']:9} {counted:>7} {_share(size):>7} {cells}".rstrip())
    lines += ["", f"{'µs':>9} {'':20} {'min':>9} {'p10':>9} {'median':>9} {'mean':>9}"]
    for size in document["sizes"]:
        for name, key in (("diag", "diag_us"), ("diag, batched", "batched_us"), ("gloo C++", "gloo_us")):
            numbers = " ".join(f"{one:9.1f}" for one in size.get(key, {}).values())
            lines += [f"{size['bytes']:9} {name:20} {numbers}"] if numbers else []
        for transport, value in size["osu_mean_us"].items():
            lines.append(f"{size['bytes']:9} {'OSU ' + transport:20} {value:39.1f}")
    spent = ", ".join(f"{mode} {value} ns" for mode, value in document["timing_code_ns"].items())
    return "\n".join([*lines, "", f"CPU of the timing code by call: {spent}", f"load averages {document['load']}"])


def _share(size: dict[str, Any]) -> str:
    return f"{size['foreign_cpu']:.1%}" if size["rounds"] else "-"


def _cell(compared: dict[str, Any]) -> str:
    unit = f" {compared['unit']}" if compared["unit"] else ""
    form = ".0f" if unit else ".2f"
    low, high = compared["interval"]
    return f"{compared['median']:{form}} [{low:{form}}, {high:{form}}]{unit} {compared['goal']}".rstrip()


@contextmanager
def _folder(named: Path | None) -> Iterator[Path]:
    if named:
        named.mkdir(parents=True, exist_ok=True)
        yield named
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gloo", type=Path, required=True, metavar="SOURCE")
    parser.add_argument("--osu", type=Path, metavar="SOURCE", help="compare with OSU's program, too; needs Open MPI")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has torch (default: this one)")
    parser.add_argument(
        "--folder", type=Path, help="where gloo is built, and is found again (default: a temporary one)"
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="BYTES")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each size (default: 9)")
    parser.add_argument("--seconds", type=float, default=4, help="diag's budget of a round (default: 4)")
    parser.add_argument("--minutes", type=float, default=30, help="the most that all rounds may take (default: 30)")
    parser.add_argument("--foreign", type=float, default=0.03, help="the most that others may take (default: 0.03)")
    parser.add_argument("--json", action="store_true", help="print one JSON document, with each round's values")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
