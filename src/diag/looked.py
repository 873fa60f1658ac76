"""What processes do, as captures for the rules that read them: those that stand still, and those that compute.

Nothing is stopped: the kernel's files are read, `py-spy` does not pause whom it looks at (`--nonblocking`), and `perf`
takes samples by a clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from diag.capture import Capture
from diag.processes import family, holding, sampled
from diag.spawn import Children, Command, run

LOOKED = 1.0
"""Seconds for which processes are looked at."""
PYTHONS = 32
"""Processes whose Python stacks are asked for."""
RATE = "199"
"""Samples a second: beside the ticks of any scheduler, and too few to be felt."""
STACKS = 3
"""How often the stacks of processes that compute are asked for."""
LEAST = "0.3"
"""Percent of the samples from which on a function is told of."""


def looked_at(roots: Sequence[int], deadline: float | None) -> Iterator[Capture]:
    """What the kernel says of the processes and those below them, and where they are in Python if `py-spy` is here."""
    yield Capture.of("run/processes", sampled(roots, LOOKED), exit_code=0)
    yield from stacks([one for root in roots for one in family(root)], deadline)


def stacks(pids: Sequence[int], deadline: float | None) -> Iterator[Capture]:
    """Where processes are in Python."""
    pids = pids[:PYTHONS]
    commands = [Command(("py-spy", "dump", "--nonblocking", "--pid", str(one))) for one in pids]
    for one, outcome in zip(pids, run(commands, deadline=deadline), strict=True):
        if outcome.exit_code == 0:
            yield Capture.of(f"py-spy#{one}", outcome.stdout, exit_code=0)


def watched(root: int, seconds: float, deadline: float | None) -> Iterator[Capture]:
    """What a process and those below it hold, and what they compute in so many seconds, if `perf` is here."""
    pids = family(root)
    yield Capture.of("process/holds", holding(pids), exit_code=0)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "perf.data"
        every = ",".join(map(str, pids))
        record = ("perf", "record", "-e", "cpu-clock", "-F", RATE, "-p", every, "-o", str(file))
        bounded = Command((*record, "--", "sleep", str(seconds)), timeout=seconds + 15)
        with Children([bounded], deadline=deadline) as children:
            start = time.monotonic()
            for number in range(STACKS):
                time.sleep(max(0.0, start + seconds * number / STACKS - time.monotonic()))
                yield from stacks(pids, deadline)
            yield Capture.of("run/processes", sampled([root], LOOKED), exit_code=0)
            (recorded,) = children.wait()
        report = ("perf", "report", "--stdio", "--no-children", "-g", "none", "--sort", "pid,dso,symbol")
        told = recorded
        if recorded.exit_code == 0:
            (told,) = run(
                [Command((*report, "--percent-limit", LEAST, "-i", str(file)), timeout=60)], deadline=deadline
            )
    lines = "".join(f"{line.rstrip()}\n" for line in told.stdout.splitlines()) if told is not recorded else ""
    yield Capture.of(
        "perf",
        lines,
        command="perf record; perf report",
        exit_code=told.exit_code,
        error=told.error,
        stderr=told.stderr,
    )
