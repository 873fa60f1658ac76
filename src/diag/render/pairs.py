"""What was measured between two ranks each: a matrix by source and target, or the slowest pairs of a large world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from diag.estimate.isolation import RATIOS
from diag.facts import CollectivePair
from diag.render.collectives import figure, size
from diag.report import Report

WIDEST = 16
"""Ranks up to which the matrix is shown."""
SHOWN = 12
"""Pairs that are shown of a larger world."""
SMALL = 64 * 2**10
"""Bytes up to which a pair counts as one with small messages."""


def matrices(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of a matrix for each size: microseconds of a message there and a short one back."""
    measured = sorted(report.told(CollectivePair), key=lambda one: one.bytes)
    for bytes, group in groupby(measured, key=lambda one: one.bytes):
        pairs = list(group)
        yield ""
        yield words["pairs"].format(size=size(bytes), passes=min(one.passes for one in pairs))
        ranks = sorted({rank for one in pairs for rank in (one.source, one.target)})
        yield from _matrix(ranks, pairs) if len(ranks) <= WIDEST else _slowest(pairs)


def _matrix(ranks: Sequence[int], pairs: Sequence[CollectivePair]) -> Iterator[str]:
    told = {(one.source, one.target): _cell(one) for one in pairs}
    rows = [["", *map(str, ranks)]]
    rows += [[str(source), *(told.get((source, target), "-") for target in ranks)] for source in ranks]
    width = max(len(cell) for row in rows for cell in row)
    for row in rows:
        yield "  " + " ".join(cell.rjust(width) for cell in row)


def _slowest(pairs: Sequence[CollectivePair]) -> Iterator[str]:
    for one in sorted(pairs, key=lambda one: -_times(one))[:SHOWN]:
        yield f"  {one.source} > {one.target}  {_cell(one)}  {_times(one):.1f}x"


def _cell(one: CollectivePair) -> str:
    """The figure, marked where it is slow or wrong."""
    if one.us is None:
        return "-"
    return figure(one.us) + ("?" if one.wrong else "!" if _times(one) > RATIOS[one.bytes > SMALL] else "")


def _times(one: CollectivePair) -> float:
    return one.us / one.base_us if one.us and one.base_us else 0.0
