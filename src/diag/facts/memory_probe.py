"""What devices say of their memory, and what of it can really be had."""

from __future__ import annotations

from diag.facts.base import Passing


class MemoryRead(Passing, frozen=True, kw_only=True):
    """A device's memory in bytes by torch's own call: `total`, `free`, and what its properties state.

    `context` is what a process takes by using the device at all. `integrated`: its memory is the host's, of which
    there are `host_total`. `device` is as torch calls it.
    """

    device: str
    name: str = ""
    total: float
    free: float
    stated: float | None = None
    context: float | None = None
    integrated: bool | None = None
    host_total: float | None = None


class MemoryAllocation(Passing, frozen=True, kw_only=True):
    """What could be allocated of a device, in bytes: the `largest` single block, and the `total` of `blocks` of them.

    Nothing beyond `cap` was tried; a limit is found to `step` bytes. Where nothing was tried `refused` says why.
    """

    device: str
    cap: float = 0.0
    largest: float = 0.0
    total: float = 0.0
    blocks: int = 1
    step: float = 0.0
    trials: int = 0
    seconds: float | None = None
    refused: str = ""

    @property
    def limited(self) -> bool:
        """Whether less could be had than was tried."""
        return not self.refused and self.cap - self.total >= 2 * self.step
