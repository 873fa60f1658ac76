"""How fast the machine copies memory: the first measurement, staged."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, MemoryBandwidth, Recognise, Request, probe

COPY_SECONDS = 0.004
COPY_MIB = (16, 64)


def next_copy(taken: tuple[Capture, ...]) -> Request | None:
    """A larger buffer until one copy takes long enough to be timed."""
    if len(taken) == len(COPY_MIB):
        return None
    measured = taken[-1].document("diag/host-memory/1") if taken else None
    if measured and measured["seconds"] >= COPY_SECONDS:
        return None
    return Request((str(COPY_MIB[len(taken)]), "3"))


@probe(
    "host/memory-copy",
    tells=(MemoryBandwidth,),
    measure="host_memory",
    cost="active",
    next=next_copy,
    recognise=Recognise(('"schema": "diag/host-memory/1"',), lines=0),
)
def memory_copy(capture: Capture) -> Iterator[Fact]:
    """How fast one core copies memory."""
    measured = capture.document("diag/host-memory/1")
    if measured and 0 < measured["seconds"] < 1e6 and 0 < measured["bytes"] < 2**50:
        gbps = measured["bytes"] / measured["seconds"] / 1e9
        yield MemoryBandwidth(
            origin=capture.said(f"{measured['bytes']} bytes in {measured['seconds']:.6f} s"),
            subject="host, one core",
            gbps=round(gbps, 2),
            bytes=measured["bytes"],
            seconds=measured["seconds"],
        )
