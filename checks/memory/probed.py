"""What devices say of their memory, by torch's own call, and what of it can be allocated where that is asked for.

The read-out takes a process that ends at once; allocating runs only where it is asked for (`--deep`, `diag mem probe
--allocate`), and not where others hold the device, by what its own tool told before or by what is missing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diag.api import (
    Accelerator,
    Capture,
    DeviceProcess,
    Fact,
    MemoryAllocation,
    MemoryRead,
    Recognise,
    Unavailable,
    by_torch,
    probe,
)

SCHEMA = "diag/memory/1"
READ = ("address", "total", "free", "stated", "context", "integrated", "host_total")
FOUND = ("cap", "largest", "total", "blocks", "step", "trials", "bound", "limit", "left", "seconds")


@probe(
    "memory/read",
    tells=(MemoryRead,),
    measure="memory",
    arguments=('{"patience": 30}',),
    interpreter="target",
    cost="active",
    timeout=120.0,
    spared=by_torch(1),
)
def read(capture: Capture) -> Iterator[Fact]:
    """What each device tells."""
    yield from _told(capture)


@probe(
    "memory/allocation",
    tells=(MemoryRead, MemoryAllocation),
    measure="memory",
    arguments=('{"allocate": true}',),
    interpreter="target",
    cost="deep",
    timeout=600.0,
    spared=by_torch(1),
    given=(Accelerator, DeviceProcess),
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0),
)
def allocation(capture: Capture) -> Iterator[Fact]:
    """What each device tells, and what could be had of it."""
    yield from _told(capture)


def _told(capture: Capture) -> Iterator[Fact]:
    document = capture.document(SCHEMA)
    if document is None:
        return
    devices: list[dict[str, Any]] = document.get("devices", [])
    if not devices:
        reason = document.get("error") or document.get("unseen") or "torch sees no accelerator"
        yield _untold(capture, reason)
    for one in devices:
        origin = capture.said(f'"device": "{one["device"]}"')
        if "total" not in one:
            yield _untold(capture, one.get("error") or "it told nothing")
            continue
        figures = {name: one[name] for name in READ if one.get(name) is not None}
        yield MemoryRead(origin=origin, device=one["device"], name=one.get("name") or "", **figures)
        if "refused" in one:
            yield MemoryAllocation(origin=origin, device=one["device"], refused=one["refused"])
        elif found := one.get("allocation"):
            figures = {name: found[name] for name in FOUND if found.get(name) is not None}
            yield MemoryAllocation(origin=origin, device=one["device"], **figures)


def _untold(capture: Capture, reason: str) -> Unavailable:
    return Unavailable(origin=capture.said(reason), what="memory/read", reason=reason, tells=(MemoryRead.__name__,))
