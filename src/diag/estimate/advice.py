"""What would help: the cheapest change of each kind with which a launch does what is asked, by the same model."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

from diag.estimate.plan import FINE, HIGHEST, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from diag.estimate.memory import Case, Launch
    from diag.estimate.plan import Demand, Plan

Lever = Literal["fraction", "requests", "tokens", "cache", "eager", "length", "ranks"]
FEWEST, SMALLEST = 8, 1024
"""Requests and tokens of a step below which nobody serves."""
COARSE, SHOWN = 4, 2
"""Of fractions each so many is tried beside another lever, and so many pairs are told."""
ROUND = 1024
"""Tokens that a length is rounded to."""


class Change(NamedTuple):
    """Values of one or two of the launch's levers, and what comes of them."""

    levers: tuple[tuple[Lever, float], ...]
    plan: Plan


def advice(case: Case, demand: Demand | None = None, devices: int = 1) -> list[Change]:
    """The first change of each kind that helps, the cheapest kind first; of two kinds where no single one does.

    `devices` are those that there are.
    """
    now = plan(case, demand)
    # What does not start is to start first; how much it holds is another question.
    demand = demand if now.outcome == "starts" else None
    if enough(plan(case, demand)):
        return []
    ladders = {lever: list(steps(case, now, devices)) for lever, steps in LEVERS.items()}
    single = (first(case, demand, [[(lever, value)] for value in values]) for lever, values in ladders.items())
    if found := [one for one in single if one]:
        return found
    ladders["fraction"] = ladders["fraction"][::COARSE]
    pairs = (
        first(case, demand, [[(one, value), (other, second)] for value in ladders[one] for second in ladders[other]])
        for one, other in combinations(ladders, 2)
    )
    return [one for one in pairs if one][:SHOWN]


def enough(told: Plan) -> bool:
    """Whether it starts with something to spare and holds what is asked."""
    return told.outcome == "starts" and not told.capacity_limited


def first(case: Case, demand: Demand | None, tried: list[list[tuple[Lever, float]]]) -> Change | None:
    """The first of these changes that helps."""
    for levers in tried:
        launch = case.launch
        for lever, value in levers:
            launch = moved(launch, lever, value)
        if enough(found := plan(replace(case, launch=launch), demand)):
            return Change(tuple(levers), found)
    return None


def moved(launch: Launch, lever: Lever, value: float) -> Launch:
    """A launch with one lever moved."""
    whole = int(value)
    moves: dict[Lever, Callable[[], Launch]] = {
        "fraction": lambda: replace(launch, fraction=value),
        "requests": lambda: replace(launch, requests=whole),
        "tokens": lambda: replace(launch, tokens=whole),
        "cache": lambda: replace(launch, kept=replace(launch.kept, cache=whole)),
        "eager": lambda: replace(launch, eager=bool(whole)),
        "length": lambda: replace(launch, length=whole),
        "ranks": lambda: replace(launch, shares=replace(launch.shares, ranks=whole)),
    }
    return moves[lever]()


def fractions(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """Those nearest to the present one first, in both directions where it starts."""
    present = now.division.fraction
    steps = (round(step * FINE, 3) for step in range(1, round(HIGHEST / FINE) + 1))
    yield from sorted(steps, key=lambda one: abs(one - present))


def fewer(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """Half as many requests, and so on."""
    yield from halved(case.launch.requests, FEWEST)


def smaller(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """Steps of half as many tokens, and so on."""
    yield from halved(case.launch.tokens, SMALLEST)


def halved(value: int, least: int) -> Iterator[float]:
    """The half, its half, and so on, down to the least."""
    while (value := value // 2) >= least:
        yield value


def narrower(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """A cache in 8 bits."""
    if case.launch.kept.cache > 1:
        yield 1


def uncaptured(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """No graphs."""
    if not case.launch.eager:
        yield 1


def shorter(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """The longest request that fits, where the one asked for does not."""
    longest = now.division.pool.longest(case.launch.tokens) // ROUND * ROUND if now.division.pool else 0
    if now.outcome == "refused-length" and longest:
        yield longest


def wider(case: Case, now: Plan, devices: int) -> Iterator[float]:
    """Twice as many ranks, and so on, as many as there are devices and heads."""
    shares, heads = case.launch.shares, case.model.heads
    ranks = 2 * shares.ranks
    while ranks * shares.stages * case.launch.engines <= devices and not heads % ranks:
        yield ranks
        ranks *= 2


LEVERS: dict[Lever, Callable[[Case, Plan, int], Iterator[float]]] = {
    "fraction": fractions,
    "requests": fewer,
    "tokens": smaller,
    "cache": narrower,
    "eager": uncaptured,
    "length": shorter,
    "ranks": wider,
}
"""The cheapest first."""
