"""What was concluded from measurements between ranks: the line they follow, and what a decode step makes of it."""

from __future__ import annotations

from typing import Literal

from diag.estimate.decode import FEW
from diag.facts.base import Passing
from diag.facts.collective import Mode


class CollectiveModel(Passing, frozen=True, kw_only=True):
    """The line that an operation's times follow: `alpha_us` for a call, and bytes by `bandwidth_gbps` (as algbw).

    `fit_error` is the largest relative residual, at `worst_bytes`, of `sizes` sizes. From `knee_bytes` on the bytes
    cost more than the call. `break_bytes` is where a second line begins: the fixed part is then that of the first, the
    bandwidth that of the second. Where it is not `accepted`, `refused` says why, and nothing may be concluded from it.
    `noisy`: the times are the least that was reached.
    """

    op: str
    tool: str
    accepted: bool
    sizes: int
    mode: Mode = ""
    ranks: int | None = None
    nodes: int | None = None
    dtype: str = ""
    backend: str = ""
    alpha_us: float | None = None
    bandwidth_gbps: float | None = None
    busbw_gbps: float | None = None
    knee_bytes: float | None = None
    break_bytes: float | None = None
    fit_error: float | None = None
    worst_bytes: float | None = None
    refused: str = ""
    noisy: bool | None = None

    @property
    def inferred(self) -> bool:
        """It is."""
        return True


class DecodeWish(Passing, frozen=True, kw_only=True):
    """What decode steps are asked about: tokens in a step, the bytes of weights that one reads, and how wide what is
    sent is; `steps` are measured ones, as tokens and milliseconds."""

    batches: tuple[int, ...] = ()
    weights_bytes: float | None = None
    width: int | None = None
    steps: tuple[tuple[int, float], ...] = ()


class DecodeStep(Passing, frozen=True, kw_only=True):
    """A decode step of `batch` tokens of a model on `ranks` tensor-parallel ranks: weights and calls, nothing else.

    `calls` of `bytes` bytes each take `call_us`, which is as `basis` says: of this very size, between two measured
    ones, beyond them, or (`assumed`) what it takes between `measured_ranks` others. `step_ms`, `share` (of the calls in
    it), `gain` (against one device) and `break_even_us` (what a call may take at most for that to be above 1) need the
    bytes of the weights and the bandwidth; `weights_from` and `bandwidth_from` say whose these are.
    `measured_ms` is a step that was measured, `measured_share` the calls' part of that. `chosen`: it is as many ranks
    as a launch asks for, else as were measured. `limit`: what decides in a call. `noisy`: calls take at least that.
    """

    ranks: int
    batch: int
    bytes: int = 0
    calls: int = 0
    call_us: float | None = None
    comm_ms: float = 0.0
    gather_ms: float | None = None
    weights_ms: float | None = None
    step_ms: float | None = None
    share: float | None = None
    gain: float | None = None
    break_even_us: float | None = None
    limit: Literal["", "latency", "bandwidth", "both"] = ""
    basis: Literal["", "measured", "interpolated", "extrapolated", "assumed"] = ""
    measured_ranks: int | None = None
    measured_ms: float | None = None
    measured_share: float | None = None
    chosen: bool = False
    mode: Mode = ""
    noisy: bool | None = None
    device: str = ""
    bandwidth_gbps: float | None = None
    bandwidth_from: Literal["", "table", "measured"] = ""
    weights_bytes: float | None = None
    weights_from: Literal["", "given", "estimated"] = ""
    fits_one: bool | None = None

    @property
    def inferred(self) -> bool:
        """It is."""
        return True

    @property
    def exceeded(self) -> bool:
        """Whether the calls take longer than all of the step that was measured: that was one without these calls."""
        return (self.measured_share or 0.0) > 1

    @property
    def told_share(self) -> float | None:
        """The calls' part of the measured step, else of the model's where that is of few tokens."""
        return self.share if self.measured_share is None and self.batch <= FEW else self.measured_share

    def why_exceeded(self) -> str:
        """What is wrong with a measured step that the calls exceed."""
        told = f"the calls of {self.batch} tokens take {self.comm_ms:.1f} ms, the whole measured step"
        return f"{told} {self.measured_ms or 0:.1f} ms: that was not measured with these calls, or not on these ranks"

    def says(self) -> str:
        """The step in one line."""
        if self.ranks == 1:
            return f"decode step at batch {self.batch} on one device: {self.step_ms or 0:.2f} ms"
        told = f"decode step at batch {self.batch} on {self.ranks} ranks: {self.comm_ms:.2f} ms in {self.calls} calls"
        told += f" of {self.bytes} bytes, {self.call_us:.1f} µs each" if self.call_us else ""
        told += f", {self.step_ms:.2f} ms with the weights" if self.step_ms else ""
        return told + (f", {self.measured_ms:.2f} ms measured" if self.measured_ms else "")
