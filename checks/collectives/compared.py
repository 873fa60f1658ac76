"""What the results between ranks were compared with: of each operation the row that says most, or why there is none.

A row says most where it is of the very machine and size, bandwidth decides and a machine may fail by it; of several
such rows the one that is missed most.

What it cannot know: whether a machine of which no row speaks is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from diag.api import (
    Accelerator,
    Collective,
    CollectiveBaseline,
    CollectiveCompared,
    Comparison,
    DeviceModel,
    Fact,
    Facts,
    Link,
    Package,
    Platform,
    Vendor,
    best_placed,
    compared_collectives,
    deduction,
    measured_model,
)

BINDING = ("pass", "measured")
"""Who stands for a row by which a machine may fail."""


@deduction(
    needs=(Collective,),
    uses=(Accelerator, CollectiveBaseline, DeviceModel, Link, Package, Platform, Vendor),
    tells=(CollectiveCompared,),
)
def collectives_compared(facts: Facts) -> Iterator[Fact]:
    """One for each operation of a world."""
    worlds: dict[tuple[object, ...], list[Collective]] = {}
    for one in best_placed(facts.all(Collective)):
        worlds.setdefault((one.tool, one.op, one.ranks, one.nodes, one.dtype, one.device), []).append(one)
    found: dict[int, list[Comparison]] = {}
    for pair in compared_collectives(facts):
        found.setdefault(id(pair.measured), []).append(pair)
    for rows in worlds.values():
        pairs = [pair for one in rows for pair in found.get(id(one), ())]
        yield CollectiveCompared(
            origin=rows[0].origin,
            results=len(rows),
            compared=len({id(pair.measured) for pair in pairs}),
            **{name: getattr(rows[0], name) for name in ("op", "tool", "ranks", "nodes", "dtype", "device")},
            **(_row(pairs) if pairs else _nothing(facts, rows[0])),
        )


def _row(pairs: Sequence[Comparison]) -> dict[str, Any]:
    one = min(pairs, key=_says_less)
    return {
        "model": one.row.device,
        "bytes": one.measured.bytes,
        "value": one.value,
        "ratio": one.ratio,
        "differs": one.differs,
        "standing": one.row.standing,
        "source": one.row.source,
        "busbw_gbps": one.row.busbw_gbps,
        "latency_us": one.row.latency_us,
    }


def _says_less(pair: Comparison) -> tuple[bool, bool, bool, float]:
    return bool(pair.differs), not pair.saturated, pair.row.standing not in BINDING, pair.ratio


def _nothing(facts: Facts, one: Collective) -> dict[str, Any]:
    model = measured_model(facts, one)
    if model is not None:
        return {"model": model.name, "lacks": "row"}
    return {"lacks": "model" if one.device else "device"}
