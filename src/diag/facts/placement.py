"""What operators on the CPU cost a step of an engine, and so at least all that it generates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from diag.facts.device import Accelerator, Platform
from diag.facts.fallback import BackendFallback
from diag.facts.operators import Operator, OperatorScan, OperatorStep
from diag.facts.reference import EngineStep
from diag.facts.software import TorchBuild

if TYPE_CHECKING:
    from diag.facts.bag import Facts

MEASURED = ("copies", "grows")
"""Placements that a detector saw happen; the others are what the dispatcher would do."""
RATE = 10_000
"""Tokens a second that a step must leave room for: small models on one device come to as many."""
NAMES, TITLES = 6, 4
"""Operators and steps that a sentence names."""


class Cost(NamedTuple):
    """A step with what its operators on the CPU kept the host, in milliseconds; the operators, the longest first.

    That contains what the device still had to do when each of them began.
    """

    step: OperatorStep
    cpu_ms: float
    operators: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Tokens a second that cannot be exceeded: one for each request, in the time on the CPU alone."""
        return 1000 * self.step.batch / self.cpu_ms


def costs(steps: Iterable[OperatorStep], operators: Iterable[Operator]) -> Iterator[Cost]:
    """Each step that came to its end and in which operators of its device ran on the CPU, by what was measured."""
    measured = [one for one in operators if one.placement in MEASURED]
    # A torch that cannot tell overloads has none in the names of a step's operators.
    away = {(one.device, name) for one in measured for name in (one.name, one.name.partition(".")[0])}
    for step in (one for one in steps if not one.error):
        own = {name: us for name, us in step.host_us.items() if us and (step.device, name) in away}
        spent = sum(own.values()) / 1000
        if own:
            limited = spent if step.ms is None else min(spent, step.ms)
            yield Cost(step, limited, tuple(sorted(own, key=lambda name: -own[name])))


def bounding(facts: Facts, device: str) -> list[Cost]:
    """The steps of a kind of device that its operators on the CPU hold below `RATE`, the worst first."""
    told = costs(facts.all(OperatorStep), facts.all(Operator))
    bound = [one for one in told if one.step.device == device and one.rate < RATE]
    return sorted(bound, key=lambda one: one.rate)


def unaccelerated(facts: Facts) -> str:
    """That there is no accelerator whose operators could be elsewhere, empty where there is one or nothing tells."""
    told = {one.available for one in facts.all(TorchBuild)} - {None}
    known = facts.first(OperatorScan) or facts.first(Accelerator)
    return "this machine has no accelerator" if told == {False} and not known else ""


def governing(facts: Facts, device: str) -> BackendFallback | None:
    """What is known of the fallbacks of a kind of device: a plug-in that takes CUDA's place is known by its maker."""
    makers = {maker for one in facts.all(Platform) for maker in one.present}
    rows = facts.all(BackendFallback)
    return next((one for one in rows if one.backend.lower() == device or one.vendor in makers), None)


def listed(names: Iterable[str]) -> str:
    """Operators as a sentence names them."""
    short = [name.removeprefix("aten::") for name in dict.fromkeys(names)]
    return ", ".join(short[:NAMES]) + (", …" if len(short) > NAMES else "")


def titles(facts: Facts, steps: Collection[str], language: str, but: str = "") -> str:
    """What steps of engines are called, each once, in the order in which an engine does them; `but` is not told."""
    known = dict.fromkeys(one.title[language] for one in facts.all(EngineStep) if one.step in steps)
    told = [one for one in known if one != but]
    between = ", " if language == "en" else "、"
    return between.join(told[:TITLES]) + (f"{between}…" if len(told) > TITLES else "")
