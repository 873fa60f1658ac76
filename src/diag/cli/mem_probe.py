"""`diag mem probe`: what devices say of their memory, and what of it can really be allocated."""

from __future__ import annotations

import re
import sys

from msgspec import json

from diag.cli.mem_plan import bytes_of
from diag.cli.opening import deadline_of, now
from diag.cli.options import Bounds, Content, Live, Output
from diag.cli.place import target_python
from diag.cli.planning import Probed
from diag.errors import DiagError
from diag.probe import Cost
from diag.sources import LiveHost

NAME = re.compile(r"[a-z][a-z0-9_]{0,30}(:\d{1,3})?")
READ, ALLOCATE, PLATFORM = "memory/read", "memory/allocation", "memory/platform"
COSTS: tuple[Cost, ...] = ("passive", "active", "deep")
HOST = "cpu"
LEAST = 2**26


def run(asked: Probed, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Ask, allocate where that is wanted, and report."""
    from diag.cli import examine

    if strange := [one for one in asked.device if not NAME.fullmatch(one)]:
        raise DiagError(f"--device {strange[0]!r}: it is not a name such as cuda, cuda:1 or cpu")
    cap = bytes_of(asked.limit) if asked.limit else None
    if asked.limit and (not cap or cap < LEAST):
        raise DiagError(f"--limit {asked.limit}: it is not a size of 64 MiB and more, such as 2GiB")
    if asked.limit and not asked.allocate:
        raise DiagError("--limit is about allocating: --allocate")
    key = ALLOCATE if asked.allocate else READ
    request = {
        "devices": list(dict.fromkeys(asked.device)),
        "imports": asked.imports,
        "allocate": asked.allocate,
        "cap": int(cap) if cap else None,
    }
    arguments = {key: (json.encode(request).decode(),)}
    python, deadline = target_python(asked.python), deadline_of(bounds)
    # What the engine takes for a device's memory is no question about the host's.
    measures = (key,) if set(asked.device) == {HOST} else (key, PLATFORM)
    host = LiveHost(python, sys.executable, COSTS, deadline, now, arguments=arguments, measures=measures)
    question = examine.Question(command=examine.PROBE, opened=(host,))
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())
