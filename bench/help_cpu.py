"""CPU time (user and system) of `diag --help`; exit code 0 where the median is at most 0.25 s, else 1."""

from __future__ import annotations

import argparse
import json
import sys
from statistics import median

from _measured import diag_program, load, timed

LIMIT = 0.25
"""Seconds."""


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--diag", default="", help="the diag to measure (default: that of this environment)")
    parser.add_argument("--runs", type=int, default=11, help="runs that count, after one that does not (default: 11)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    before = load()
    taken = [timed((options.diag or diag_program(), "--help")) for _ in range(options.runs + 1)][1:]
    cpu, wall = median(one.cpu_s for one in taken), median(one.wall_s for one in taken)
    passed = cpu <= LIMIT and all(one.exit_code == 0 for one in taken)
    document = {"cpu": cpu, "wall": wall, "limit": LIMIT, "runs": options.runs, "passed": passed}
    verdict = "met" if passed else "NOT MET"
    page = f"diag --help: {cpu:.3f} s of CPU, {wall:.3f} s wall (at most {LIMIT} s of CPU: {verdict})"
    load_averages = [before, load()]
    print(json.dumps({**document, "load": load_averages}) if options.json else f"{page}\nload averages {load_averages}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
