"""What processes do that stand still: as captures, for the rules that read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.capture import Capture
from diag.processes import family, sampled
from diag.spawn import Command, run

LOOKED = 1.0
"""Seconds for which processes are looked at."""
PYTHONS = 32
"""Processes whose Python stacks are asked for."""


def looked_at(roots: Sequence[int], deadline: float | None) -> Iterator[Capture]:
    """What the kernel says of the processes and those below them, and where they are in Python if `py-spy` is here."""
    yield Capture.of("run/processes", sampled(roots, LOOKED), exit_code=0)
    pids = [one for root in roots for one in family(root)][:PYTHONS]
    commands = [Command(("py-spy", "dump", "--nonblocking", "--pid", str(one))) for one in pids]
    for one, outcome in zip(pids, run(commands, deadline=deadline), strict=True):
        if outcome.exit_code == 0:
            yield Capture.of(f"py-spy#{one}", outcome.stdout, exit_code=0)
