"""What an engine's instance takes of a device's memory before it serves, and what that leaves for its KV cache.

vLLM takes a part of the device's whole memory as its budget, profiles one step with as many tokens and requests as it
may ever have, and gives what is left of the budget to the KV cache. What a release charges to the budget, and how much
its sampler takes, are its `Semantics`: data, not code. Each term says where it comes from: read in the engine's source
(`src`), fitted to printed start-ups (`fit`), a hypothesis (`hyp`), printed by this very engine (`printed`), or given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from diag.estimate.pool import Pool, Shares, Widths, pool

if TYPE_CHECKING:
    from diag.estimate.model import Model

GIB = 2**30
FLOAT32 = 4
GATED = 3
"""Matrices of a feed-forward part with a gate."""
WHOLE, USUAL = Shares(), Widths()
Origin = Literal["src", "fit", "hyp", "printed", "given"]


@dataclass(frozen=True)
class Semantics:
    """What a release of an engine does: `utilization` where none is asked for, bytes that its sampler takes for each
    entry of the logits of a request, whether graphs are charged to the budget, and whether it starts beside others.
    """

    utilization: float = 0.92
    sampled: float = 14.0
    graphs_charged: bool = True
    free_checked: bool = True


@dataclass(frozen=True)
class Launch:
    """What an engine is started with: tokens and requests of its largest step, the longest request, its KV cache.

    `width` are bytes of a number of the model, `kept` those that are kept of it.
    """

    tokens: int
    requests: int
    length: int
    utilization: float | None = None
    shares: Shares = WHOLE
    width: int = 2
    kept: Widths = USUAL
    eager: bool = False
    shared_prefixes: bool = False


@dataclass(frozen=True)
class Term:
    """A part of the budget: bytes on one rank, where the figure comes from, and how many bytes it may be off."""

    name: str
    bytes: float
    origin: Origin
    off: float = 0.0


@dataclass(frozen=True)
class Budget:
    """A device's memory as one rank of an engine divides it, in bytes."""

    total: float
    asked: float
    terms: tuple[Term, ...]
    pool: Pool | None = None

    @property
    def room(self) -> float:
        """What is left for the KV cache; negative where nothing is."""
        return self.asked - sum(one.bytes for one in self.terms)

    @property
    def off(self) -> float:
        """How many bytes that may be off."""
        return sum(one.off for one in self.terms)


@dataclass(frozen=True)
class Fitted:
    """Constants that were fitted to printed start-ups of vLLM on H100: GiB, and how far they were off."""

    base: float = 0.13
    residual: float = 4.25
    alone: float = 0.25
    together: float = 2.1
    staged: float = 0.07
    activation_off: float = 0.06
    other_off: float = 0.2


FITTED = Fitted()


def activation(model: Model, launch: Launch, semantics: Semantics, fitted: Fitted = FITTED) -> float:
    """Bytes of the peak while profiling: the widest layer on all tokens, or the sampler on all requests."""
    ranks, tokens, width = launch.shares.ranks, launch.tokens, launch.width
    wide = tokens * (GATED * dense_width(model) / ranks + fitted.residual * model.hidden) * width
    # Two of the sampler's copies are in float32, whatever the model's type is.
    sampled = semantics.sampled + (launch.width - 2)
    sampling = launch.requests * model.vocabulary * sampled + tokens * model.hidden * width
    return max(wide, sampling + experts_workspace(model, launch)) + fitted.base * GIB


def dense_width(model: Model) -> int:
    """The width of the widest feed-forward part that all tokens take."""
    if model.experts is None:
        return model.intermediate
    return max(model.intermediate if model.experts.dense else 0, model.experts.shared)


def experts_workspace(model: Model, launch: Launch) -> float:
    """Bytes that the experts of a layer work in, for all tokens of a step."""
    one = model.experts
    if one is None:
        return 0.0
    inner = one.width // launch.shares.ranks
    return launch.tokens * one.taken * (max(2 * inner, model.hidden) + inner) * launch.width


def other(launch: Launch, fitted: Fitted = FITTED) -> float:
    """Bytes that are not torch's: what a library that joins ranks keeps, above all."""
    if launch.shares.ranks > 1:
        return fitted.together * GIB
    return (fitted.staged if launch.shares.stages > 1 else fitted.alone) * GIB


def budget(
    model: Model, launch: Launch, semantics: Semantics, *, total: float, weights: Term, known: tuple[Term, ...] = ()
) -> Budget:
    """The budget of a rank of a device with so many bytes; terms that are known take the place of estimated ones."""
    told = {one.name: one for one in (*known, weights)}
    work = activation(model, launch, semantics)
    terms = (
        told.get("weights", weights),
        told.get("activation") or Term("activation", work, "fit", FITTED.activation_off * work),
        told.get("other") or Term("other", other(launch), "fit", FITTED.other_off * GIB),
        *(told[name] for name in ("graphs",) if name in told and semantics.graphs_charged and not launch.eager),
    )
    asked = total * (semantics.utilization if launch.utilization is None else launch.utilization)
    whole = Budget(total, asked, terms)
    if whole.room <= 0:
        return whole
    states = 2 if launch.shared_prefixes else 1
    return replace(whole, pool=pool(model, int(whole.room), launch.shares, launch.kept, states=states))
