"""Whether a launch starts, whether it lives on, what it can hold, and how sure that is.

A verdict is only as good as its terms: where a term may be off by more than what is between this verdict and another,
or a hypothesis alone makes the difference, it is of low confidence, and a launch that would start is `tight`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from diag.estimate.memory import GIB, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal

    from diag.estimate.memory import Case, Division, Launch, Term

    Confidence = Literal["high", "medium", "low"]

TIGHT = 0.5
"""GiB that must be left for an engine not to be on the edge."""
FAIR = ("starts", "tight")
"""Outcomes of what starts."""
HIGHEST, FINE = 0.99, 0.01
"""The highest part of a device that is ever advised, and the steps in which it is looked for."""


@dataclass(frozen=True)
class Demand:
    """Requests that are served at once, each with so many tokens when it ends."""

    requests: int
    length: int


@dataclass(frozen=True)
class Plan:
    """What comes of a launch. `doubts` are what its figures have not been tried on, or what decides by a hair.

    `used` is the part of the pool that the demand needs: above 1 requests wait or are preempted, and nothing crashes.
    """

    case: Case
    division: Division
    outcome: Outcome
    confidence: Confidence
    doubts: tuple[str, ...]
    used: float | None = None

    @property
    def starts(self) -> bool:
        """Whether it does."""
        return self.outcome in FAIR

    @property
    def capacity_limited(self) -> bool | None:
        """Whether the demand exceeds the pool; None where none is told or there is no pool."""
        return None if self.used is None else self.used > 1


def plan(case: Case, demand: Demand | None = None) -> Plan:
    """The plan of a launch."""
    told = pooled(case, case.rules.divide(case))
    outcome = outcome_of(case, told)
    doubts = (*case.rules.fits(case), *decisive(case, told, outcome))
    confidence: Confidence = "low" if {"hypothesis", "hair"} & {*doubts} else "medium" if doubts else "high"
    if outcome == "starts" and confidence == "low":
        outcome = "tight"
    used = share(case.launch, told, demand) if demand and told.pool else None
    return Plan(case, told, outcome, confidence, doubts, used)


def share(launch: Launch, told: Division, demand: Demand) -> float:
    """The part of a rank's pool that its part of the demand needs."""
    requests = ceil(demand.requests / (launch.engines * launch.shares.replicas))
    return told.pool.share(requests, demand.length, launch.tokens) if told.pool else float("inf")


def pooled(case: Case, told: Division) -> Division:
    """A division with the pool that its room makes, where there is any."""
    return replace(told, pool=case.rules.pool(case, int(told.room)) if told.room > 0 else None)


def outcome_of(case: Case, told: Division) -> Outcome:
    """What comes of a division of the memory."""
    if reason := case.rules.refused(case, told):
        return reason
    if told.spare < 0:
        return "oom-at-runtime"
    return "tight" if told.spare < TIGHT * GIB else "starts"


def decisive(case: Case, told: Division, outcome: Outcome) -> Iterator[str]:
    """What makes the difference: how far terms may be off, or a hypothesis."""
    edges = (shifted(case, told, less), shifted(case, told, more))
    if any(apart(outcome_of(case, one), outcome) for one in edges):
        yield "hair"
    if any(one.origin == "hyp" and one.bytes for one in told.terms):
        without = shifted(case, told, proven)
        if apart(outcome_of(case, without), outcome):
            yield "hypothesis"


def less(one: Term) -> float:
    """The least that a term may be."""
    return one.bytes - one.off


def more(one: Term) -> float:
    """The most that a term may be."""
    return one.bytes + one.off


def proven(one: Term) -> float:
    """A term, if it is no hypothesis."""
    return 0.0 if one.origin == "hyp" else one.bytes


def shifted(case: Case, told: Division, value: Callable[[Term], float]) -> Division:
    """A division with other bytes of its terms."""
    inside, outside = (
        tuple(replace(one, bytes=max(value(one), 0.0)) for one in terms) for terms in (told.inside, told.outside)
    )
    free = told.free
    if case.device.free is None:
        free -= sum(one.bytes for one in outside if one.name == "context")
        free += sum(one.bytes for one in told.outside if one.name == "context")
    return pooled(case, replace(told, inside=inside, outside=outside, free=free))


def apart(one: Outcome, other: Outcome) -> bool:
    """Whether these are different answers to whether it starts and lives."""
    return (one in FAIR) != (other in FAIR)


def safest(case: Case, demand: Demand | None = None) -> float | None:
    """The highest fraction with which it starts, in steps of a hundredth; None where there is none."""
    steps = range(round(HIGHEST / FINE), 0, -1)
    tried = (replace(case, launch=replace(case.launch, fraction=step * FINE)) for step in steps)
    return next((one.launch.fraction for one in tried if plan(one, demand).outcome == "starts"), None)
