"""Whose machine a text speaks of: several in one paste are kept apart.

A new machine begins where the shell prompt names another host, where a machine has a second value of what it can have
only one of (its driver, its torch), or where a report comes once more and says something else. What this cannot know:
two machines that differ in nothing that was read; they are judged as one, which changes no verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from diag.capture import Capture
from diag.facts import Fact, Host, Origin, Unavailable
from diag.probe import Probe
from diag.sections import Section

Bare = tuple[type[Fact], dict[str, Any]]
"""What lasts of a fact, without the places it was read in."""


class Told(NamedTuple):
    """What one section told: the line it begins at, the scope of the machine it is about, and the facts of it."""

    first: int
    scope: str
    facts: list[Fact]


def scoped(sections: Iterable[Section], read: Callable[[Probe, Capture], list[Fact]], name: str) -> Iterator[Told]:
    """What a text's sections tell, each with the scope of the machine it is about.

    A single machine's is `name`. Of several, one whose host the prompt tells is named after it, which is a fact, too;
    the others are numbered.
    """
    machines = _Machines(name)
    kept: list[tuple[int, _Machine, list[Fact]]] = []
    for section in sections:
        if told := read(section.probe, section.part):
            machine = machines.of(section, told)
            machine.take(section, told)
            kept.append((section.first, machine, told))
    for first, machine, told in kept:
        scope = machine.name if len(machines.all) > 1 else name
        facts = [fact.of(scope) for fact in told]
        if scope and scope == machine.host:
            facts.insert(0, Host(origin=Origin(capture=told[0].origin.capture, scope=scope), name=scope))
        yield Told(first, scope, facts)


class _Machines:
    """The machines spoken of so far, in order, and the last one of each host."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all: dict[str, _Machine] = {}
        self.last: _Machine | None = None
        self.hosts: dict[str, _Machine] = {}

    def of(self, section: Section, told: list[Fact]) -> _Machine:
        """The machine a section is about: the last one of that host, the last one spoken of, or a new one."""
        candidates = (self.hosts.get(section.host), self.last)
        same = (one for one in candidates if one and not one.is_other(section, told))
        self.last = next(same, None) or self._new(section)
        if section.host:
            self.hosts[section.host] = self.last
        return self.last

    def _new(self, section: Section) -> _Machine:
        free = section.host and section.host not in self.all
        name = section.host if free else f"{self.text}#{len(self.all) + 1}"
        return self.all.setdefault(name, _Machine(name, section.host))


@dataclass
class _Machine:
    """What is known so far of one machine: its host name, what it has once, and what each report said of it."""

    name: str
    host: str
    single: dict[str, set[str]] = field(default_factory=dict)
    seen: dict[str, list[Bare]] = field(default_factory=dict)

    def is_other(self, section: Section, told: list[Fact]) -> bool:
        """Whether a section cannot be about this machine."""
        # A host that is named may print a report again after something was changed; only what it has once decides.
        if section.host and self.host:
            return section.host != self.host or self.contradicts(told)
        earlier, bare = self.seen.get(section.probe.key), _bare(told)
        refused = any(isinstance(fact, Unavailable) for fact in told)
        # A tool that answers after its refusal was repaired; one that refuses after an answer is asked in a container.
        if section.once and earlier and (refused or bare) and earlier != bare:
            return True
        return self.contradicts(told)

    def contradicts(self, told: list[Fact]) -> bool:
        """Whether a section tells another value of what a machine has once."""
        single = _single(told)
        return any(known.isdisjoint(single.get(name, known)) for name, known in self.single.items())

    def take(self, section: Section, told: list[Fact]) -> None:
        """Learn what a section told."""
        self.host = self.host or section.host
        self.seen[section.probe.key] = _bare(told) or self.seen.get(section.probe.key, [])
        for name, values in _single(told).items():
            self.single.setdefault(name, set()).update(values)


def _bare(told: Iterable[Fact]) -> list[Bare]:
    return [(type(fact), lasting) for fact in told if (lasting := fact.lasting())]


def _single(told: Iterable[Fact]) -> dict[str, set[str]]:
    single: dict[str, set[str]] = {}
    for fact in told:
        if identity := fact.identity():
            single.setdefault(identity[0], set()).add(identity[1])
    return single
