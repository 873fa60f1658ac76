"""Measured collectives beside those of an earlier run: what was measured alike, and how much longer it takes now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from diag.facts.collective import Collective, CollectiveEarlier

ALIKE = ("tool", "op", "bytes", "dtype", "mode", "ranks", "in_place")
"""What must be the same of two measurements that are compared."""
SLOWER = 1.2
"""How many times as long it takes from which on that is called slower."""


class Against(NamedTuple):
    """A measurement beside the earlier one of its like: `ratio` is how many times as long it takes, None where noise
    hides that; `slower` whether that is much, and more than both runs' intervals."""

    now: Collective
    then: CollectiveEarlier
    ratio: float | None
    slower: bool


def against_earlier(now: Iterable[Collective], then: Iterable[CollectiveEarlier]) -> list[Against]:
    """Every measurement of which the like was measured earlier, in their order."""
    before = {_kind(one): one for one in then}
    return [_against(one, before[_kind(one)]) for one in now if _kind(one) in before]


def _kind(one: Collective) -> tuple[object, ...]:
    return tuple(getattr(one, name) for name in ALIKE)


def _against(now: Collective, then: CollectiveEarlier) -> Against:
    """What is noisy is slower than it is, never faster: its fastest call counts, and it tells of no speed."""
    typical = now.latency_us.min if now.noisy else now.latency_us.typical
    earlier = then.latency_us.typical
    if not typical or not earlier:
        return Against(now, then, None, slower=False)
    apart = typical - earlier > (now.interval90_us or 0.0) + (then.interval90_us or 0.0)
    slower = apart and typical / earlier >= SLOWER
    told = slower or not (now.noisy or then.noisy)
    return Against(now, then, typical / earlier if told else None, slower)
