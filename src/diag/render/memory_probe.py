"""What devices say of their memory and what of it could be had, as a table in GiB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.facts import Accelerator, MemoryAllocation, MemoryRead
from diag.render.collectives import aligned
from diag.report import Report

GIB = 2**30
MIB = 2**20
HEAD = ("device", "", "total", "reserved", "free", "context", "tried", "largest", "in all", "trials", "s", "")
LEFT = (True, True, *(False,) * 9, True)


def table(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """A row for each device."""
    read = {one.device: one for one in report.told(MemoryRead)}
    if not read:
        return
    found = {one.device: one for one in report.told(MemoryAllocation)}
    sizes = {one.address: one.memory_mib for one in report.told(Accelerator) if one.seen_by == "tool" and one.address}
    rows = [row(one, sizes.get(one.address), found.get(name), words) for name, one in read.items()]
    yield from ("", words["memory"])
    yield from aligned([HEAD, *rows], LEFT)


def row(
    one: MemoryRead, tools_mib: float | None, found: MemoryAllocation | None, words: Mapping[str, str]
) -> tuple[str, ...]:
    """A device; what is reserved is what its tool counts beyond the total that torch tells."""
    reserved = None if tools_mib is None else max(tools_mib * MIB - one.total, 0)
    own = (one.device, one.name, gib(one.total), gib(reserved), gib(one.free), gib(one.context))
    notes = [words["memory shared"]] if one.integrated else []
    if found is None or found.refused:
        return (*own, "", "", "", "", "", "; ".join([*notes, *([found.refused] if found else [])]))
    if found.bound:
        notes.append(words[f"memory bound {found.bound}"].format(limit=gib(found.limit), left=gib(found.left)))
    return (
        *own,
        gib(found.cap),
        gib(found.largest),
        gib(found.total),
        str(found.trials),
        f"{found.seconds or 0:.2g}",
        "; ".join(notes),
    )


def gib(value: float | None) -> str:
    """Bytes in GiB."""
    return "" if value is None else f"{value / GIB:.2f}"
