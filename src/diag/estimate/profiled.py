"""The memory of an engine that takes a part of the whole device, profiles one step, and gives the rest to its KV cache.

The profile is one step with as many tokens and requests as there may ever be. What a release charges to its part, and
how much its sampler takes, are its rules: data, not code. The constants are fitted to printed start-ups on one kind of
device, of releases 0.18 to 0.20, with up to 1024 requests and 8192 tokens a step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from diag.estimate.memory import GIB, Case, Division, Term, fragments
from diag.estimate.pool import pool, state_bytes
from diag.estimate.work import BASE, captured, layers_peak, sampler_peak

if TYPE_CHECKING:
    from diag.estimate.memory import Launch, Outcome
    from diag.estimate.model import Model
    from diag.estimate.pool import Pool

FLOAT32 = 4
REQUESTS, TOKENS = 1024, 8192
"""The largest step of the start-ups that the constants were fitted to."""


@dataclass(frozen=True)
class Fitted:
    """Constants in GiB, and how far they were off (`…_off`: a part of the term, else GiB).

    What is not torch's is `staged` where ranks only follow each other. The context before the engine's first look
    takes `context`, with a library that joins ranks `joined`. `linear` is the part of the device that newer releases
    take beyond all this for layers with a state.
    """

    staged: float = 0.07
    context: float = 0.51
    joined: float = 1.53
    activation_off: float = 0.06
    other_off: float = 0.2
    graphs_off: float = 0.5
    far_off: float = 0.5
    linear: float = 0.09


FITTED = Fitted()


@dataclass(frozen=True)
class Profiled:
    """What a release does: the part it takes where none is asked for, and bytes of its sampler for each logit.

    `graphs_charged` to that part, `free_checked` before, `states_checked` against the requests, `others_charged`: what
    others take counts as its own. `unprofiled` are copies of each request's state that it takes only when it serves.
    `alone` and `together` are GiB that are not torch's, on one rank and where ranks share layers. `whole_prompts`: a
    step has the longest prompt whole. `fitted`: it is one of those that the constants are from.
    """

    fraction: float = 0.92
    sampled: float = 14.0
    alone: float = 0.25
    together: float = 2.1
    graphs_charged: bool = True
    free_checked: bool = True
    states_checked: bool = True
    others_charged: bool = False
    unprofiled: int = 0
    whole_prompts: bool = False
    fitted: bool = True

    def divide(self, case: Case) -> Division:
        """The memory of a rank."""
        model, launch, device = case.model, case.launch, case.device
        far = not self.fitted or not device.fitted or far_step(launch)
        work = activation(model, launch, self)
        rest = self.other(launch)
        peak = case.term("activation", work, "fit", work * (FITTED.far_off if far else FITTED.activation_off))
        beside = case.term("other", rest, "fit", rest if not device.fitted else FITTED.other_off * GIB)
        drawn = captured(model, launch)
        graphs = case.term("graphs", drawn, "fit", drawn * (1.0 if far else FITTED.graphs_off))
        context = case.term("context", before(launch), "fit", FITTED.other_off * GIB)
        inside = [case.weighed(), peak, beside, *case.unexplained()]
        outside = [context, fragments(peak.bytes)]
        if drawn:
            (inside if self.graphs_charged else outside).append(graphs)
        if not self.fitted and model.count("linear") and not self.unprofiled:
            beyond = FITTED.linear * device.total
            inside.append(Term("linear layers in the profile", 0.0, "hyp", beyond))
            outside.append(Term("linear layers beyond it", 0.0, "hyp", beyond))
        if self.unprofiled and model.count("linear"):
            outside.append(Term("states beyond the profile", unprofiled(model, launch, self.unprofiled), "hyp"))
        asked = device.total * (self.fraction if launch.fraction is None else launch.fraction)
        if launch.pool_bytes is not None:
            asked = sum(one.bytes for one in inside) + launch.pool_bytes
        free = device.total - context.bytes if device.free is None else device.free
        taken = max(device.total - context.bytes - free, 0.0)
        if taken:
            (inside if self.others_charged else outside).append(Term("others", taken, "given"))
        return Division(device.total, asked, tuple(inside), tuple(outside), free, asked / device.total)

    def pool(self, case: Case, room: int) -> Pool:
        """The blocks that so many bytes are cut into."""
        launch = case.launch
        return pool(case.model, room, launch.shares, launch.kept, states=2 if launch.cached_prefixes else 1)

    def refused(self, case: Case, told: Division) -> Outcome | None:
        """Why it does not start with this division."""
        launch, cut = case.launch, told.pool
        if self.free_checked and told.free < told.asked:
            return "refused-free"
        if cut is None:
            return "refused-room"
        if cut.concurrency(launch.length, launch.tokens) < 1:
            return "refused-length"
        stated = cut.places is not None and self.states_checked and launch.largest_graph > 0
        return "refused-states" if stated and (cut.places or 0) < launch.requests else None

    def other(self, launch: Launch) -> float:
        """Bytes that are not torch's: what a library that joins ranks keeps, above all."""
        if launch.shares.ranks > 1:
            return self.together * GIB
        return (FITTED.staged if launch.shares.stages > 1 else self.alone) * GIB

    def fits(self, case: Case) -> tuple[str, ...]:
        """What of this case lies outside of what the constants were fitted on."""
        told = {
            "release": not self.fitted,
            "device": not case.device.fitted,
            "step": far_step(case.launch),
            "drafts": case.launch.drafted,
            "linear": bool(case.model.count("linear")) and not self.fitted,
        }
        return tuple(name for name, outside in told.items() if outside)


def far_step(launch: Launch) -> bool:
    """Whether its step is larger than any that the constants were fitted to."""
    return launch.requests > REQUESTS or launch.tokens > 2 * TOKENS


def activation(model: Model, launch: Launch, rules: Profiled) -> float:
    """Bytes of the peak while profiling: the widest layer on all tokens, or the sampler on all requests."""
    tokens = max(launch.tokens, launch.length) if rules.whole_prompts else launch.tokens
    peak = max(layers_peak(model, launch, tokens), sampler_peak(model, launch, tokens, rules.sampled))
    return peak + BASE * GIB


def before(launch: Launch) -> float:
    """Bytes that are taken before the engine first looks."""
    together = launch.shares.ranks * launch.shares.stages > 1
    return (FITTED.joined if together else FITTED.context) * GIB


def unprofiled(model: Model, launch: Launch, copies: int) -> float:
    """Bytes of states in float32 of all requests, in all layers that keep one."""
    wide = replace(launch.kept, state=FLOAT32)
    return float(copies * launch.requests * model.count("linear") * state_bytes(model, launch.shares.attention, wide))
