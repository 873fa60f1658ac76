"""Whose machine a text speaks of: several in one paste are kept apart.

A new machine begins where the shell prompt names another host, where a machine has a second value of what it can have
only one of (its driver, its torch), or where a report comes once more and says something else. What this cannot know:
two machines that differ in nothing that was read; they are judged as one, which changes no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from diag.capture import Capture
from diag.facts import Fact, Host, Origin
from diag.probe import Probe

NOWHERE = Origin(capture="")


@dataclass(frozen=True)
class Section:
    """Lines of a longer text that one probe reads.

    `host` is the one the shell prompt before them names; `once` says that a machine prints such a text once, so that a
    second one that differs is another machine's.
    """

    probe: Probe
    part: Capture
    first: int
    host: str
    once: bool


def scoped(
    sections: Iterable[Section], read: Callable[[Probe, Capture], list[Fact]], *, several: bool, named: bool
) -> Iterator[Fact]:
    """The facts of all sections, each with the scope of the machine it is about.

    A single machine has no scope unless it must be `named`. One whose host the prompt tells is named after it, which is
    a fact, too; with `several` texts the others are named after theirs.
    """
    machines: list[_Machine] = []
    kept: list[tuple[_Machine, list[Fact]]] = []
    for section in sections:
        if told := read(section.probe, section.part):
            machine = _machine(machines, section, told, several)
            machine.take(section, told)
            kept.append((machine, told))
    for machine, told in kept:
        scope = machine.name if len(machines) > 1 or named else ""
        if scope and scope == machine.host:
            yield Host(origin=Origin(capture=told[0].origin.capture, scope=scope), name=scope)
        for fact in told:
            yield fact.of(scope or fact.origin.scope)


def _machine(machines: list[_Machine], section: Section, told: list[Fact], several: bool) -> _Machine:
    """The machine a section is about: an earlier one of that host, the last one spoken of, or a new one."""
    same_host = (one for one in reversed(machines) if section.host and one.host == section.host)
    if machine := next((one for one in same_host if not one.contradicts(told)), None):
        return machine
    if machines and not machines[-1].is_other(section, told):
        return machines[-1]
    names = (section.host, section.part.key if several else "", f"environment {len(machines) + 1}")
    taken = {one.name for one in machines}
    machines.append(_Machine(next(name for name in names if name and name not in taken), section.host))
    return machines[-1]


@dataclass
class _Machine:
    """What is known so far of one machine: its host name, what it has once, and what each report said of it."""

    name: str
    host: str
    single: dict[str, set[str]] = field(default_factory=dict)
    seen: dict[str, list[Fact]] = field(default_factory=dict)

    def is_other(self, section: Section, told: list[Fact]) -> bool:
        """Whether a section cannot be about this machine."""
        if section.host and self.host:
            return section.host != self.host or self.contradicts(told)
        if section.once and self.seen.get(section.probe.key, bare := _bare(told)) != bare:
            return True
        return self.contradicts(told)

    def contradicts(self, told: list[Fact]) -> bool:
        """Whether a section tells another value of what a machine has once."""
        single = _single(told)
        return any(known.isdisjoint(single.get(name, known)) for name, known in self.single.items())

    def take(self, section: Section, told: list[Fact]) -> None:
        """Learn what a section told."""
        self.host = self.host or section.host
        self.seen[section.probe.key] = _bare(told)
        for name, values in _single(told).items():
            self.single.setdefault(name, set()).update(values)


def _bare(told: Iterable[Fact]) -> list[Fact]:
    return [replace(fact, origin=NOWHERE) for fact in told]


def _single(told: Iterable[Fact]) -> dict[str, set[str]]:
    single: dict[str, set[str]] = {}
    for fact in told:
        if identity := fact.identity():
            single.setdefault(identity[0], set()).add(identity[1])
    return single
