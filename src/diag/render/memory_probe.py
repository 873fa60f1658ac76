"""What devices say of their memory and what of it could be had, as a table in GiB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.facts import MemoryAllocation, MemoryRead
from diag.render.collectives import aligned
from diag.report import Report

GIB = 2**30
HEAD = ("device", "", "total", "free", "context", "tried", "largest", "in all", "trials", "s", "")
LEFT = (True, True, *(False,) * 8, True)


def table(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """A row for each device."""
    read = {one.device: one for one in report.told(MemoryRead)}
    if not read:
        return
    found = {one.device: one for one in report.told(MemoryAllocation)}
    yield from ("", words["memory"])
    yield from aligned([HEAD, *(row(one, found.get(name)) for name, one in read.items())], LEFT)


def row(one: MemoryRead, found: MemoryAllocation | None) -> tuple[str, ...]:
    """A device."""
    own = (one.device, one.name, gib(one.total), gib(one.free), gib(one.context))
    if found is None or found.refused:
        return (*own, "", "", "", "", "", found.refused if found else "")
    return (
        *own,
        gib(found.cap),
        gib(found.largest),
        gib(found.total),
        str(found.trials),
        f"{found.seconds or 0:.2g}",
        "",
    )


def gib(value: float | None) -> str:
    """Bytes in GiB."""
    return "" if value is None else f"{value / GIB:.2f}"
