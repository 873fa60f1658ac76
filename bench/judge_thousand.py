"""A thousand checks on the facts of one machine: judging time; and this host's default run, seconds by phase.

The checks are those of diag, repeated under other ids until there are a thousand. The machine is this host and, since
it may have no accelerator, the largest report among the tests' real captures.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from _measured import diag_program

from diag import engine, plugins
from diag.capture import Held
from diag.sources import Paste

COUNT = 1_000
ROUNDS = 7
CAPTURES = Path(__file__).resolve().parents[1] / "tests" / "captures"


def judged(text: str, loaded: plugins.Loaded) -> None:
    """Print how long a thousand checks take on the facts of a text."""
    examined = engine.examine(Paste("machine", Held(text)).captures(()), loaded, [])
    checks = [replace(one, id=f"{one.id}-{n}") for n, one in enumerate(islice(cycle(loaded.checks.values()), COUNT))]
    spent = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        results = engine.judge(checks, examined.facts, loaded)
        spent.append(time.perf_counter() - start)
    ends = ", ".join(f"{count} {status}" for status, count in Counter(one.status for one in results).most_common())
    print(f"{COUNT} checks on {len(examined.facts)} facts: {median(spent) * 1e3:.0f} ms ({ends})")


def phases() -> None:
    """Print what the phases of this host's default run took."""
    command = (diag_program(), "env-check", "--format", "json", *sys.argv[1:])
    start = time.perf_counter()
    told = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    wall = time.perf_counter() - start
    parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in told["seconds"].items())
    print(f"{' '.join(command[1:])}: {wall:.2f} s ({parts})")
    slow = sorted(told["captures"], key=lambda one: -one["seconds"])[:5]
    print("slowest: " + ", ".join(f"{one['key']} {one['seconds']:.2f} s" for one in slow))


def main() -> None:
    """Judge, then run."""
    loaded = plugins.load([plugins.bundled()])
    texts = sorted(CAPTURES.glob("collect-env-*.txt"), key=lambda path: path.stat().st_size)
    judged(texts[-1].read_text(), loaded)
    phases()


if __name__ == "__main__":
    main()
