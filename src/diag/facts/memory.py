"""A device's memory as an engine will divide it: what is asked about, the plan, and the config that it is about."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from diag.estimate.memory import Origin, Outcome
from diag.facts.base import Passing


class ModelConfig(Passing, frozen=True, kw_only=True):
    """A whole `config.json` of a model, as one line of JSON."""

    text: str

    def told(self) -> dict[str, Any]:
        """How long it is: what it says is told by others."""
        return {"characters": len(self.text)}


class MemoryWish(Passing, frozen=True, kw_only=True):
    """What is asked of a plan: bytes of a device, how many there are, bytes of the weights, requests with tokens each.

    `requests` are served at once, each with `length` tokens when it ends. `weights_from` says whose the bytes are.
    """

    device_bytes: float | None = None
    devices: int | None = None
    weights_bytes: float | None = None
    weights_from: Literal["given", "checkpoint"] = "given"
    requests: int | None = None
    length: int | None = None


class MemoryTerm(Struct, frozen=True):
    """A part of a device's memory in bytes, where its figure comes from, by how much it may be off, and on which side.

    `inside` is what the engine counts as its own.
    """

    name: str
    bytes: float
    origin: Origin
    off: float
    inside: bool


class MemoryChange(Struct, frozen=True):
    """What a launch would come to with other flags: the outcome, tokens that fit, the part that the demand needs."""

    flags: tuple[tuple[str, str], ...]
    outcome: Outcome
    tokens: int
    used: float | None = None


class MemoryPlan(Passing, frozen=True, kw_only=True):
    """What comes of a launch on each of `ranks` times `stages` devices of `total` bytes, of which it asks for `asked`.

    `free` is what was free before, `room` is for the KV cache and states, `spare` what nothing takes. `tokens` fit,
    `concurrency` requests of `length` do; `longest` is the longest. `used` is the part of the pool that the demand
    needs: above 1 it is `capacity_limited`, which is queueing, no failure. `doubts` are why the confidence is not high.
    `fraction` is what was asked for or taken by default, `safest` the highest with which it starts. `calibrated` are
    the terms that the engine printed.
    """

    engine: str
    version: str = ""
    model: str = ""
    device: str = ""
    ranks: int = 1
    stages: int = 1
    engines: int = 1
    total: float
    asked: float
    fraction: float
    free: float
    room: float
    spare: float
    terms: tuple[MemoryTerm, ...]
    outcome: Outcome
    confidence: Literal["high", "medium", "low"]
    doubts: tuple[str, ...] = ()
    tokens: int = 0
    places: int | None = None
    length: int = 0
    requests: int = 0
    batched: int = 0
    longest: int | None = None
    concurrency: float | None = None
    demand: tuple[int, int] | None = None
    used: float | None = None
    capacity_limited: bool | None = None
    safest: float | None = None
    calibrated: tuple[str, ...] = ()
    advice: tuple[MemoryChange, ...] = ()

    @property
    def inferred(self) -> bool:
        """It is."""
        return True

    @property
    def starts(self) -> bool:
        """Whether it does."""
        return self.outcome in ("starts", "tight")

    def term(self, name: str) -> MemoryTerm | None:
        """The part of that name."""
        return next((one for one in self.terms if one.name == name), None)

    def says(self) -> str:
        """The plan in one line."""
        asked, total, room, spare = (one / 2**30 for one in (self.asked, self.total, self.room, self.spare))
        told = f"{self.outcome} ({self.confidence} confidence): {asked:.2f} of {total:.2f} GiB asked"
        return f"{told}, {room:.2f} GiB for the KV cache ({self.tokens} tokens), {spare:.2f} GiB over"
