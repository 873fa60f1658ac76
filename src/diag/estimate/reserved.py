"""The memory of an engine that keeps a reserve for its work and gives the rest to weights and pools.

Its fraction is that of what is free before the weights are loaded. Where none is asked for it computes one from a
reserve, which is a rule of its own: the work need not take that much, and may take more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from diag.estimate.memory import GIB, Case, Division, Term
from diag.estimate.slots import slots
from diag.estimate.work import BASE, captured, layers_peak

if TYPE_CHECKING:
    from diag.estimate.memory import Launch, Outcome
    from diag.estimate.model import Model
    from diag.estimate.slots import Slots

MIB = 2**20
DIGITS = 3
"""Of the fraction that is computed."""
ALONE, JOINED, OFF = 0.3, 1.3, 0.9
"""GiB that are taken before weights are loaded, and how far the pools were off."""
MANY = 300
"""Requests in a graph above which a device's attention needs more."""


@dataclass(frozen=True)
class Reserved:
    """A release's reserve in MiB: `base`, for each token of a step (`least` of them at least), for each request in the
    largest graph, for each rank; for groups of attention (`replicated` and `crowded` for each request in the largest
    graph, `grouped` in all); for latent attention, and for a model that drafts. On devices above `large` GiB it is at
    least `floor`.
    """

    base: float = 512.0
    token: float = 1.5
    least: int = 2048
    graph: float = 2.0
    rank: float = 128.0
    replicated: float = 3.0
    crowded: float = 1.5
    latent: float = 1536.0
    grouped: float = 0.0
    drafts: float = 0.0
    floor: float = 10240.0
    large: float = 60.0
    fitted: bool = True

    def need(self, launch: Launch) -> float:
        """Bytes that the work of a rank is taken to need, by the engine's own rule."""
        shares = launch.shares
        each = self.token * max(launch.tokens, self.least) + self.graph * launch.largest_graph
        return (self.base + each + self.rank * shares.ranks * shares.stages) * MIB

    def reserve(self, model: Model, launch: Launch, total: float) -> float:
        """Bytes that are reserved where no fraction is asked for."""
        told, replicas = self.need(launch) / MIB, launch.shares.replicas
        if replicas > 1:
            crowded = self.crowded if launch.largest_graph > MANY else 0.0
            told += self.grouped + (self.replicated + crowded) * launch.largest_graph * replicas
        if model.latent and launch.largest_graph:
            told += self.latent
        if launch.shares.more or launch.drafted:
            told += self.drafts
        return max(told, self.floor if total > self.large * GIB else 0.0) * MIB

    def asked(self, model: Model, launch: Launch, total: float) -> float:
        """The fraction that holds."""
        if launch.fraction is not None:
            return launch.fraction
        return round((total - self.reserve(model, launch, total)) / total, DIGITS)

    def work(self, model: Model, launch: Launch) -> Term:
        """What the work of a rank takes: by this rule where experts or latent attention work in memory that no formula
        here tells, else the widest layer and the graphs, which may take as much as the rule says."""
        rule = self.need(launch)
        if model.latent or model.experts:
            return Term("work", rule, "hyp")
        value = layers_peak(model, launch, launch.tokens) + captured(model, launch) + BASE * GIB
        return Term("work", value, "fit", max(rule - value, value))

    def divide(self, case: Case) -> Division:
        """The memory of a rank."""
        model, launch, device = case.model, case.launch, case.device
        together = launch.shares.ranks * launch.shares.stages > 1
        context = case.term("context", (JOINED if together else ALONE) * GIB, "fit", OFF * GIB)
        free = device.total - context.bytes if device.free is None else device.free
        asked = free * self.asked(model, launch, device.total)
        inside = (case.weighed(), Term("left by the loader", 0.0, "fit", OFF * GIB), *case.unexplained())
        outside = [context, self.work(model, launch)]
        taken = max(device.total - context.bytes - free, 0.0)
        if taken:
            outside.append(Term("others", taken, "given"))
        return Division(device.total, asked, inside, tuple(outside), free, asked / free)

    def pool(self, case: Case, room: int) -> Slots:
        """The tokens and states that so many bytes hold."""
        return slots(case.model, room, case.launch)

    def refused(self, case: Case, told: Division) -> Outcome | None:
        """Why it does not start: only where nothing is left; what is too long waits or is refused as a request."""
        cut = told.pool
        if cut is None or not cut.capacity:
            return "refused-room"
        return "refused-states" if cut.places == 0 else None

    def fits(self, case: Case) -> tuple[str, ...]:
        """What of this case lies outside of what its constants are from."""
        return tuple(
            name
            for name, outside in {
                "release": not self.fitted,
                "device": not case.device.fitted,
                "drafts": case.launch.drafted,
            }.items()
            if outside
        )
