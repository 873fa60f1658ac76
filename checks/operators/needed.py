"""The operators that steps of an engine reach, or that were asked about, and that do not run on the accelerator by the
dispatcher's table.

From what a step calls the way leads down through operators that torch makes of others, and ends where the backend has
a kernel: a backend that brings its own `sort` needs none of those that torch's `sort` is made of.

What it cannot know: what a kernel does. One that copies to the CPU by itself is the backend's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from diag.api import EngineOperator, EngineStep, Fact, Facts, Operator, OperatorTable, Placement, deduction


@deduction(tells=(Operator,), needs=(OperatorTable, EngineOperator), uses=(EngineStep,))
def needed(facts: Facts) -> Iterator[Fact]:
    """Each such operator, with the steps that reach it in their order."""
    rows = {one.name: one for one in facts.all(EngineOperator)}
    steps = [one.step for one in facts.all(EngineStep)]
    for table in facts.all(OperatorTable):
        own, away = frozenset((*table.native, *table.python)), _away(table)
        reached = {step: _reached(rows, step, own) for step in steps}
        for name, placement in away.items():
            users = [step for step in steps if name in reached[step]]
            made = placement == "missing" and name in rows and rows[name].calls
            if name in table.asked or (users and not made):
                yield Operator(
                    origin=table.origin,
                    name=name,
                    device=table.device,
                    detector="static",
                    placement=placement,
                    owner=table.owners.get(name, ""),
                    steps=tuple(users),
                    shape=rows[name].shape if name in rows else "",
                )


def _away(table: OperatorTable) -> dict[str, Placement]:
    """What does not run on its device."""
    kinds: tuple[tuple[Placement, tuple[str, ...]], ...] = (
        ("missing", table.missing),
        ("backend-fallback", table.backend_fallback),
        ("fallback", table.fallback),
    )
    return {name: placement for placement, names in kinds for name in names}


def _reached(rows: Mapping[str, EngineOperator], step: str, own: frozenset[str]) -> set[str]:
    """The operators that a step comes to where the backend has these kernels of its own."""
    mine = {name: row for name, row in rows.items() if step in row.steps}
    waiting = list(mine.keys() - {called for row in mine.values() for called in row.calls})
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += () if name in own or name not in rows else rows[name].calls
    return found
