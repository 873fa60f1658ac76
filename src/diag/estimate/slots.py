"""The pools of an engine that keeps tokens one by one, and the states of linear layers in slots beside them.

A token costs the same wherever it stands. A state takes a slot, and where prefixes are cached so do states that are
kept for later requests: of so many slots to a request only one serves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from diag.estimate.pool import indexed_bytes, state_bytes, token_bytes

if TYPE_CHECKING:
    from diag.estimate.memory import Launch
    from diag.estimate.model import Model

WINDOWED = 0.8
"""Tokens that layers with a window keep, for each that the others keep."""
STATES = 0.9
"""Bytes for states, for each byte for tokens, where nothing is said."""
CACHED, UNCACHED = 3, 1
"""Slots to a request, where prefixes are cached and where they are not."""


@dataclass(frozen=True)
class Slots:
    """So many tokens of `bytes` bytes each; `slots` states, of which a request needs `each`; 0 where there are none."""

    tokens: int
    bytes: int
    slots: int = 0
    each: int = UNCACHED
    state_bytes: int = 0

    @property
    def capacity(self) -> int:
        """Tokens that fit."""
        return self.tokens

    @property
    def places(self) -> int | None:
        """Requests that have a state at once; None where no layer keeps one."""
        return self.slots // self.each if self.state_bytes else None

    def concurrency(self, length: int, batched: int = 0) -> float:
        """Requests of that length that fit."""
        fit = self.tokens / length
        return fit if self.places is None else min(fit, self.places)

    def share(self, requests: int, length: int, batched: int = 0) -> float:
        """The part of the pool that so many requests of that length need; above 1 some wait."""
        return requests / self.concurrency(length) if self.concurrency(length) else float("inf")

    def longest(self, batched: int = 0) -> int:
        """Tokens of the longest request."""
        return self.tokens


def cell(model: Model, launch: Launch) -> int:
    """Bytes of a token on a rank, in all layers."""
    per_layer = token_bytes(model, launch.shares.attention, launch.kept.cache)
    whole = model.count("full") + launch.shares.more
    windowed = WINDOWED * model.count("sliding", "chunked")
    own = int(per_layer * (whole + windowed)) // launch.shares.stages
    return max(own + indexed_bytes(model) * model.layers, 1)


def slots(model: Model, room: int, launch: Launch) -> Slots:
    """The pools in so many bytes."""
    per_token = cell(model, launch)
    each = state_bytes(model, launch.shares.attention, launch.kept) * model.count("linear") // launch.shares.stages
    if not each:
        return Slots(room // per_token, per_token)
    kept = launch.slots
    if kept is None:
        usual = int(room * STATES / (1 + STATES)) // each
        kept = usual if launch.cached_prefixes else launch.requests or usual
    per_request = CACHED if launch.cached_prefixes else UNCACHED
    return Slots(max(room - kept * each, 0) // per_token, per_token, kept, per_request, each)
