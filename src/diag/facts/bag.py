"""The facts of one examination: an immutable bag, asked by kind and by machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from diag.facts.base import Fact
from diag.facts.device import Accelerator, distinct
from diag.facts.engine import LaunchArguments
from diag.facts.host import Listing, Setting
from diag.facts.software import Package
from diag.facts.text import Sighting, Text

F = TypeVar("F", bound=Fact)
TICKS = re.compile("`+")
WORDS = re.compile(r"[A-Za-z']{2,40}|[\u4e00-\u9fff]{2}")
LABEL_CAP = 3
"""Words that may stand beside a quoted command without making a sentence."""


class Facts:
    """An immutable bag of facts, asked by kind."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts = tuple(facts)
        self._by_kind: dict[type[Fact], list[Fact]] = {}
        self._by_scope: dict[str, list[Fact]] | None = None
        self._devices: tuple[Accelerator, ...] | None = None
        self._environment: dict[str, Setting] | None = None
        self._sightings: dict[str, list[Sighting]] | None = None
        for fact in self._facts:
            self._by_kind.setdefault(type(fact), []).append(fact)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def all(self, kind: type[F]) -> tuple[F, ...]:
        """Every fact of exactly this kind, in the order they were learnt."""
        return tuple(self._by_kind.get(kind, ()))  # type: ignore[arg-type]

    def first(self, kind: type[F]) -> F | None:
        """The first fact of this kind, or None."""
        found = self._by_kind.get(kind)
        return found[0] if found else None  # type: ignore[return-value]

    def field(self, kind: type[F], name: str) -> Any:
        """The first value told for a field of this kind, or None."""
        return next((fact.told()[name] for fact in self.all(kind) if name in fact.told()), None)

    def package(self, name: str) -> Package | None:
        """The installed distribution of this name (PEP 503 form), or None where none was told."""
        return next((package for package in self.all(Package) if package.name == name), None)

    def environment(self) -> dict[str, Setting]:
        """The variables of the environment by name; what a launch sets for itself outdoes the others.

        Of a launch that a sentence quotes nothing is taken: it may be advice. A variable that a line of its own sets to
        the same value is told by that line.
        """
        if self._environment is None:
            self._environment = self._variables()
        return dict(self._environment)

    def devices(self) -> tuple[Accelerator, ...]:
        """One accelerator for each device of a machine, although several sources told of it."""
        if self._devices is None:
            self._devices = distinct(self.all(Accelerator))
        return self._devices

    def _variables(self) -> dict[str, Setting]:
        told = [one for one in self.all(Setting) if one.kind == "environment"]
        lines = {(one.name, one.value): one for one in told}
        settings = {one.name: one for one in told}
        for launch in self.all(LaunchArguments):
            for name, value in launch.environment if not _quoted(launch.origin.quote) else ():
                own = Setting(origin=launch.origin, name=name, value=value)
                settings[name] = lines.get((name, value), own)
        return settings

    def sightings(self, rule: str) -> Sequence[Sighting]:
        """The lines that match a symptom of a rule, in their order."""
        if self._sightings is None:
            self._sightings = {}
            for one in self.all(Sighting):
                self._sightings.setdefault(one.rule, []).append(one)
        return self._sightings.get(rule, ())

    def listing(self, kind: str) -> Listing | None:
        """What tells that all facts of a kind were told, None where nothing does: see `Listing`."""
        return next((one for one in self.all(Listing) if one.kind == kind), None)

    def whole(self, kind: str) -> bool:
        """Whether all facts of a kind were told, so that what is not among them is not there."""
        return self.listing(kind) is not None

    def read(self, kind: str) -> bool:
        """Whether a text of a kind (`kernel-log`) was read, so that what it does not tell did not happen."""
        return any(kind in one.kinds for one in self.all(Text))

    def adding(self, more: Iterable[Fact]) -> Facts:
        """A new bag that holds these facts and more."""
        added = Facts(more)
        if not added._facts:
            return self
        whole = Facts()
        whole._facts = self._facts + added._facts
        whole._by_kind = {**self._by_kind}
        for kind, facts in added._by_kind.items():
            whole._by_kind[kind] = [*self._by_kind.get(kind, ()), *facts]
        return whole

    def scopes(self) -> tuple[str, ...]:
        """The scopes to judge one by one: those named, or the one unnamed scope."""
        named = dict.fromkeys(fact.origin.scope for fact in self._facts if fact.origin.scope)
        return tuple(named) or ("",)

    def within(self, scope: str) -> Facts:
        """The facts of one scope, with those that belong to every scope (what was asked, what is reference)."""
        if self._by_scope is None:
            self._by_scope = {}
            for fact in self._facts:
                self._by_scope.setdefault(fact.origin.scope, []).append(fact)
        if self._by_scope.keys() <= {""}:
            return self
        shared = self._by_scope.get("", ())
        return Facts((*shared, *self._by_scope.get(scope, ())) if scope else shared)


def devices(facts: Facts) -> tuple[Accelerator, ...]:
    """One accelerator for each device of a machine: see `Facts.devices`."""
    return facts.devices()


def _quoted(line: str) -> bool:
    """Whether a line is a sentence that quotes a command between backticks; a label before them is none."""
    outside = " ".join(TICKS.split(line)[::2]) if TICKS.search(line) else ""
    return len(WORDS.findall(outside)) > LABEL_CAP
