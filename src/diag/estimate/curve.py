"""The time of a call by its size: the line it follows, where bandwidth begins to decide, and what lies between sizes.

A call of S bytes takes α + S·β: a fixed part, and a part for each byte. Libraries change their algorithm with the size,
so that one break between two such lines is allowed. A measured curve is no line all the same (of two processes on a
busy host the worst size lies a quarter off): between measured sizes the curve itself is what is believed, and the line
only explains, and goes on beyond the ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, isfinite, log
from statistics import median
from typing import Literal

Basis = Literal["measured", "interpolated", "extrapolated"]
Limit = Literal["latency", "bandwidth", "both"]
Point = tuple[float, float]

DOUBT = 0.1
"""Relative residuals up to which they count by their square; larger ones count by their size."""
REFUSED = 0.25
"""The largest relative residual with which a line explains anything."""
HALVED = 0.5
"""What a break must leave of the loss, for a second line has two more numbers to fit with."""
SIZES = 3
"""Sizes on each line: two lie on one whatever they are."""
ROUNDS = 60
SETTLED = 1e-12
TIMES = (1e-6, 1e13)
"""Microseconds that a call can take: between a picosecond and months."""
DECIDES = 3.0
"""How far below the knee the fixed part decides alone, and how far above it the bytes do."""


@dataclass(frozen=True)
class Line:
    """Microseconds of a call of any size: `fixed`, and `each` for a byte."""

    fixed: float
    each: float

    def at(self, size: float) -> float:
        """Microseconds of a call of this size."""
        return self.fixed + self.each * size

    @property
    def knee(self) -> float:
        """The size at which both parts are equal, infinite where the bytes cost nothing."""
        return self.fixed / self.each if self.each > 0 else inf


@dataclass(frozen=True)
class Fit:
    """The line of a curve, or two that meet at `broken` bytes; `refused` says why it explains nothing, else empty.

    `error` is the largest relative residual, at `worst` bytes.
    """

    lines: tuple[Line, ...] = ()
    broken: float | None = None
    error: float = inf
    worst: float = 0.0
    refused: str = ""

    @property
    def alpha(self) -> float:
        """Microseconds of the smallest calls."""
        return self.lines[0].fixed

    @property
    def bandwidth(self) -> float:
        """GB/s that the largest calls approach: bytes by time, as algbw."""
        return 1e-3 / self.lines[-1].each

    @property
    def knee(self) -> float:
        """The size from which on bytes cost more than the call; no smaller than the break."""
        return max(self.lines[-1].knee, self.broken or 0.0)

    def line_at(self, size: float) -> Line:
        """The line that a size lies on."""
        return self.lines[-1] if self.broken is None or size >= self.broken else self.lines[0]

    def limit(self, size: float) -> Limit:
        """Which part of a call decides at this size."""
        knee = self.line_at(size).knee
        if size < knee / DECIDES:
            return "latency"
        return "bandwidth" if size > knee * DECIDES else "both"


@dataclass(frozen=True)
class Prediction:
    """Microseconds of a call, and whether this very size was measured, lies between two that were, or beyond."""

    us: float
    basis: Basis


class Curve:
    """What calls of several sizes took, in microseconds; of one size told twice the middle counts.

    What is no measurement (no time, less than none, no number) is left out.
    """

    def __init__(self, points: Iterable[Point]) -> None:
        told: dict[float, list[float]] = {}
        for size, us in points:
            if 0 < size < inf and TIMES[0] < us < TIMES[1]:
                told.setdefault(float(size), []).append(float(us))
        self.points: tuple[Point, ...] = tuple((size, median(told[size])) for size in sorted(told))

    @cached_property
    def fit(self) -> Fit:
        """The line or the two lines that explain it."""
        return _fitted(self.points)

    def at(self, size: float) -> Prediction | None:
        """What a call of this size takes; None beyond the ends of a curve that no line explains."""
        if not self.points or not 0 < size < inf:
            return None
        first, last = self.points[0], self.points[-1]
        if first[0] <= size <= last[0]:
            return self._between(size)
        if self.fit.refused:
            return None
        end = first if size < first[0] else last
        beyond = self.fit.line_at(size)
        # The line goes on from the measured end: it must not jump there.
        us = end[1] * beyond.at(size) / beyond.at(end[0])
        return Prediction(us, "extrapolated") if isfinite(us) and us > 0 else None

    def _between(self, size: float) -> Prediction:
        """By a straight line between the logarithms of both neighbours."""
        below = max(one for one in self.points if one[0] <= size)
        if below[0] == size:
            return Prediction(below[1], "measured")
        above = min(one for one in self.points if one[0] > size)
        share = log(size / below[0]) / log(above[0] / below[0])
        us = exp(log(below[1]) + share * log(above[1] / below[1]))
        return Prediction(min(max(us, min(below[1], above[1])), max(below[1], above[1])), "interpolated")


def _fitted(points: Sequence[Point]) -> Fit:
    if len(points) < SIZES:
        count = ("no size was", "one size was", "two sizes were")[len(points)]
        return Fit(refused=f"{count} timed: nothing tells the fixed part of a call from that of its bytes")
    single = _line(points)
    fit = _rated(points, (single,), None)
    if broken := _broken(points, _loss(points, single)):
        at, lines = broken
        fit = _rated(points, lines, points[at][0])
    if fit.lines[-1].each <= 0:
        return _refused(fit, "time does not grow with the size: these sizes tell nothing of the bandwidth")
    if fit.error > REFUSED:
        return _refused(fit, f"calls of {fit.worst:.0f} bytes lie {fit.error:.0%} off the line")
    return fit


def _refused(fit: Fit, why: str) -> Fit:
    return Fit(fit.lines, fit.broken, fit.error, fit.worst, why)


def _rated(points: Sequence[Point], lines: tuple[Line, ...], broken: float | None) -> Fit:
    fit = Fit(lines, broken)
    error, worst = max((abs(fit.line_at(size).at(size) / us - 1), size) for size, us in points)
    return Fit(lines, broken, error, worst)


def _broken(points: Sequence[Point], whole: float) -> tuple[int, tuple[Line, ...]] | None:
    """Where a second line begins that halves the loss, and both lines."""
    found: list[tuple[float, int, tuple[Line, ...]]] = []
    for at in range(SIZES, len(points) - SIZES + 1):
        lines = _line(points[:at]), _line(points[at:])
        found.append((_loss(points[:at], lines[0]) + _loss(points[at:], lines[1]), at, lines))
    least = min(found, default=None, key=lambda one: one[0])
    # What is left of an exact line is rounding: half of it means nothing.
    if least is None or whole <= SETTLED or least[0] > HALVED * whole or least[2][1].each <= 0:
        return None
    return least[1:]


def _residuals(points: Sequence[Point], line: Line) -> list[float]:
    return [line.at(size) / us - 1 for size, us in points]


def _loss(points: Sequence[Point], line: Line) -> float:
    """Huber's: the square of small residuals, and what grows by their size of large ones."""
    told = map(abs, _residuals(points, line))
    return sum(one**2 / 2 if one <= DOUBT else DOUBT * (one - DOUBT / 2) for one in told)


def _line(points: Sequence[Point]) -> Line:
    """The line of the least loss, by weighing each size anew by how far it lies off; neither part is below zero."""
    weights = [1.0] * len(points)
    line = _weighed(points, weights)
    for _ in range(ROUNDS):
        weights = [min(1.0, DOUBT / abs(one)) if one else 1.0 for one in _residuals(points, line)]
        before, line = line, _weighed(points, weights)
        if max(abs(line.at(size) - before.at(size)) / us for size, us in points) < SETTLED:
            break
    return line


def _weighed(points: Sequence[Point], weights: Sequence[float]) -> Line:
    """The line of the least squares of relative residuals."""
    # Sizes in units of the largest, so that squares neither vanish nor overflow.
    unit = points[-1][0]
    rows = [(weight, 1 / us, size / unit / us) for (size, us), weight in zip(points, weights, strict=True)]
    aa, ab, bb = (sum(w * one[i] * one[j] for w, *one in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = sum(w * one for w, one, _ in rows), sum(w * one for w, _, one in rows)
    spread = aa * bb - ab * ab
    fixed, each = ((bb * a - ab * b) / spread, (aa * b - ab * a) / spread) if spread > 0 else (0.0, b / bb)
    if fixed < 0:
        fixed, each = 0.0, b / bb
    elif each < 0:
        fixed, each = a / aa, 0.0
    return Line(fixed, each / unit)
