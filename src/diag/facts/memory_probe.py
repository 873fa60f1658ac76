"""What devices say of their memory, and what of it can really be had."""

from __future__ import annotations

from typing import Literal

from diag.facts.base import Passing

Bound = Literal["", "mapping", "group", "host", "time"]
NEAR = 0.02
"""The part by which totals of the same memory differ at most, as they are told in different places."""


class MemoryRead(Passing, frozen=True, kw_only=True):
    """A device's memory in bytes by torch's own call: `total`, `free`, and what its properties state.

    `context` is what a process takes by using the device at all. `integrated`: its memory is the host's, of which
    there are `host_total`. `device` is as torch calls it, `address` its place on the bus.
    """

    device: str
    name: str = ""
    address: str = ""
    total: float
    free: float
    stated: float | None = None
    context: float | None = None
    integrated: bool | None = None
    host_total: float | None = None


class MemoryAllocation(Passing, frozen=True, kw_only=True):
    """What could be allocated of a device, in bytes: the `largest` single block, and the `total` of `blocks` of them.

    Nothing beyond `cap` was tried; a limit is found to `step` bytes. Where nothing was tried `refused` says why. Of the
    host's memory `bound` says what ended the trials before `cap`: no more could be mapped (`mapping`), a control group
    (`group`) or the host had no more than is kept for it, or it took too long (`time`). `limit` is the address space,
    or what the group states, that was met; `left` is what was not touched before it.
    """

    device: str
    cap: float = 0.0
    largest: float = 0.0
    total: float = 0.0
    blocks: int = 1
    step: float = 0.0
    trials: int = 0
    bound: Bound = ""
    limit: float | None = None
    left: float | None = None
    seconds: float | None = None
    refused: str = ""

    @property
    def limited(self) -> bool:
        """Whether less could be had than was tried, for a reason that stays."""
        return not self.refused and self.bound not in ("host", "time") and self.cap - self.total >= 2 * self.step


class PlatformMemory(Passing, frozen=True, kw_only=True):
    """The bytes that an engine's platform (the class that speaks for its devices) takes for its first device's memory.

    `host_total` are those of the host.
    """

    engine: str
    version: str = ""
    platform: str
    total: float
    host_total: float


def near_host(total: float, host_total: float | None) -> bool:
    """Whether a device's total may be the host's."""
    return bool(host_total) and abs(total / (host_total or 1) - 1) <= NEAR
