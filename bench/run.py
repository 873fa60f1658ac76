"""A command under `diag run` against the same command bare, and against one whose output is copied by `tee`, in turns.

Twice: one that writes a gigabyte into a pipe, for what the copying costs, and one that does nothing, for what the start
costs. Exit code 0 where the gigabyte takes at most half as long again as through `tee` (medians) and the start at most
0.1 s of CPU more than that of Python itself, else 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from statistics import median

from _measured import Taken, diag_program, load, timed

SLOWER = 1.5
START = 0.1
"""Seconds of CPU."""


def main() -> int:
    """Measure, print, and judge."""
    options = _options()
    diag, size = shlex.quote(diag_program()), options.megabytes * 10**6
    source = f"head -c {size} /dev/zero"
    copied = {
        "bare": f"{source} | cat > /dev/null",
        "tee": f"{source} | tee /dev/null | cat > /dev/null",
        "diag run": f"{diag} run {source} | cat > /dev/null",
    }
    nothing = {
        "bare": ("true",),
        "python": (sys.executable, "-c", "pass"),
        "diag run": (diag_program(), "run", "true"),
    }
    passing = _medians({name: ("sh", "-c", line) for name, line in copied.items()}, options.rounds, "wall_s")
    starting = _medians(nothing, options.rounds, "cpu_s")
    told = {
        "bytes": size,
        "seconds": {name: round(wall, 3) for name, wall in passing.items()},
        "diag run / bare": round(passing["diag run"] / passing["bare"], 2),
        "diag run / tee": round(passing["diag run"] / passing["tee"], 2),
        "seconds of CPU of a command that does nothing": {name: round(wall, 3) for name, wall in starting.items()},
        "load": load(),
    }
    print(json.dumps(told, indent=1))
    slow = passing["diag run"] > SLOWER * passing["tee"] or starting["diag run"] - starting["python"] > START
    return 1 if slow else 0


def _medians(commands: Mapping[str, Sequence[str]], rounds: int, what: str) -> dict[str, float]:
    """The median time of each, in turns; a first round fills caches."""
    taken: dict[str, list[Taken]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            taken[name].append(timed(command))
    return {name: median(getattr(one, what) for one in runs[1:]) for name, runs in taken.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
