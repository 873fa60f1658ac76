"""What an isolation measured: between two ranks each, by each rank itself, and that nobody is to blame.

Pairs are a matrix by source and target, or the slowest of a large world. Who is to blame is told by findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median

from diag.estimate.isolation import APART, MARGIN, RATIO, RATIOS
from diag.facts import CollectivePair, CollectiveVerdict, RankTiming
from diag.render.collectives import aligned, figure, size
from diag.report import Report

WIDEST = 16
"""Ranks up to which the matrix is shown."""
SHOWN = 12
"""Pairs that are shown of a larger world, and ranks: the slowest alone, and as many that come latest."""
HEAD = ("rank", "alone", "in a call")
SMALL = 64 * 2**10
"""Bytes up to which a pair counts as one with small messages."""


def matrices(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of a matrix for each size: microseconds of a message there and a short one back."""
    measured = sorted(report.told(CollectivePair), key=lambda one: one.bytes)
    calm = bool(_calm(report))
    for bytes, group in groupby(measured, key=lambda one: one.bytes):
        pairs = list(group)
        yield ""
        yield words["pairs"].format(size=size(bytes), passes=min(one.passes for one in pairs))
        ranks = sorted({rank for one in pairs for rank in (one.source, one.target)})
        yield from _matrix(ranks, pairs, calm) if len(ranks) <= WIDEST else _slowest(pairs, calm)


def ranks(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of a table of what each rank did by itself: microseconds alone, and of its stay in a call."""
    told = [one for one in report.told(RankTiming) if one.alone_us or one.in_call_us]
    if not told:
        return
    shown = told if len(told) <= WIDEST else _outstanding(told)
    yield ""
    yield words["ranks"] + (f" {words['more ranks'].format(count=len(told) - len(shown))}" if shown != told else "")
    rows = [(str(one.rank), figure(_alone(one)), figure(_in_call(one))) for one in shown]
    yield from aligned([HEAD, *rows], (False,) * 3)


def blameless(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines that say that nobody is to blame, and from where on somebody would be."""
    votes = any(one.in_call_us for one in report.told(RankTiming))
    for one in _calm(report):
        yield ""
        yield words["nobody"].format(
            times=f"{one.threshold:.1f}",
            small=f"{one.threshold / RATIO * RATIOS[False]:.1f}",
            late=words["late"].format(share=f"{MARGIN:.0%}") if votes else "",
            measured=one.measured,
            possible=one.possible,
            apart=figure(APART * 1e6),
        )


def _calm(report: Report) -> list[CollectiveVerdict]:
    return [one for one in report.told(CollectiveVerdict) if one.kind == "healthy"]


def _outstanding(told: Sequence[RankTiming]) -> list[RankTiming]:
    slowest = sorted(told, key=lambda one: -(_alone(one) or 0.0))[:SHOWN]
    latest = sorted((one for one in told if one.in_call_us), key=lambda one: median(one.in_call_us))[:SHOWN]
    chosen = {one.rank for one in (*slowest, *latest)}
    return [one for one in told if one.rank in chosen]


def _alone(one: RankTiming) -> float | None:
    return min(one.alone_us, default=None)


def _in_call(one: RankTiming) -> float | None:
    return median(one.in_call_us) if one.in_call_us else None


def _matrix(ranks: Sequence[int], pairs: Sequence[CollectivePair], calm: bool) -> Iterator[str]:
    told = {(one.source, one.target): _cell(one, calm) for one in pairs}
    rows = [["", *map(str, ranks)]]
    rows += [[str(source), *(told.get((source, target), "-") for target in ranks)] for source in ranks]
    width = max(len(cell) for row in rows for cell in row)
    for row in rows:
        yield "  " + " ".join(cell.rjust(width) for cell in row)


def _slowest(pairs: Sequence[CollectivePair], calm: bool) -> Iterator[str]:
    for one in sorted(pairs, key=lambda one: -_times(one))[:SHOWN]:
        yield f"  {one.source} > {one.target}  {_cell(one, calm)}  {_times(one):.1f}x"


def _cell(one: CollectivePair, calm: bool) -> str:
    """The figure, marked where it is wrong or, unless all was found healthy, slow."""
    if one.us is None:
        return "-"
    slow = not calm and _times(one) > RATIOS[one.bytes > SMALL]
    return figure(one.us) + ("?" if one.wrong else "!" if slow else "")


def _times(one: CollectivePair) -> float:
    return one.us / one.base_us if one.us and one.base_us else 0.0
