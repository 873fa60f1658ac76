"""The facts of one examination: an immutable bag, asked by kind and by machine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from diag.facts.base import Fact
from diag.facts.device import Accelerator, distinct
from diag.facts.engine import LaunchArguments
from diag.facts.host import Listing, Setting
from diag.facts.software import Package
from diag.facts.text import Sighting, Text

F = TypeVar("F", bound=Fact)
T = TypeVar("T")
TICKS = re.compile("`+")
WORDS = re.compile(r"[A-Za-z']{2,40}|[\u4e00-\u9fff]{2}")
LABEL_CAP = 3
"""Words that may stand beside a quoted command without making a sentence."""


class Facts:
    """An immutable bag of facts, asked by kind.

    `asked` are the kinds and the rules it was asked for, the kinds of texts aside: facts of other kinds make no
    difference to whoever asked.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts = tuple(facts)
        self._by_kind: dict[type[Fact], list[Fact]] = {}
        self._by_scope: dict[str, Facts] | None = None
        self._sightings: dict[str, list[Sighting]] | None = None
        self._kinds_read: frozenset[str] | None = None
        self._scopes: tuple[str, ...] | None = None
        self._concluded: dict[object, tuple[Any, set[object]]] = {}
        self.asked: set[object] = set()
        for fact in self._facts:
            self._by_kind.setdefault(type(fact), []).append(fact)

    def __iter__(self) -> Iterator[Fact]:
        self.asked.add(Fact)
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def all(self, kind: type[F]) -> tuple[F, ...]:
        """Every fact of exactly this kind, in the order they were learnt."""
        self.asked.add(kind)
        return tuple(self._by_kind.get(kind, ()))  # type: ignore[arg-type]

    def first(self, kind: type[F]) -> F | None:
        """The first fact of this kind, or None."""
        self.asked.add(kind)
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
        return dict(self.concluded(_variables))

    def devices(self) -> tuple[Accelerator, ...]:
        """One accelerator for each device of a machine, although several sources told of it."""
        return self.concluded(_distinct)

    def concluded(self, conclude: Callable[[Facts], T]) -> T:
        """What a function concludes from these facts, which it does but once."""
        if conclude not in self._concluded:
            before, self.asked = self.asked, set()
            try:
                self._concluded[conclude] = conclude(self), self.asked
            finally:
                self.asked = before | self.asked
        result, asked = self._concluded[conclude]
        self.asked |= asked
        return result  # type: ignore[no-any-return]

    def sightings(self, rule: str) -> Sequence[Sighting]:
        """The lines that match a symptom of a rule, in their order."""
        self.asked.add(rule)
        if self._sightings is None:
            self._sightings = {}
            for one in self._by_kind.get(Sighting, ()):
                self._sightings.setdefault(one.rule, []).append(one)  # type: ignore[attr-defined, arg-type]
        return self._sightings.get(rule, ())

    def listing(self, kind: str) -> Listing | None:
        """What tells that all facts of a kind were told, None where nothing does: see `Listing`."""
        return next((one for one in self.all(Listing) if one.kind == kind), None)

    def whole(self, kind: str) -> bool:
        """Whether all facts of a kind were told, so that what is not among them is not there."""
        return self.listing(kind) is not None

    def read(self, kind: str) -> bool:
        """Whether a text of a kind (`kernel-log`) was read, so that what it does not tell did not happen."""
        return kind in self.kinds_read()

    def kinds_read(self) -> frozenset[str]:
        """The kinds of the texts that were read."""
        if self._kinds_read is None:
            texts = self._by_kind.get(Text, ())
            self._kinds_read = frozenset(kind for one in texts for kind in one.kinds)  # type: ignore[attr-defined]
        return self._kinds_read

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
        if self._by_scope is not None:
            # What is told of a scope already is not looked through again: there are many facts and few are added.
            apart = added._apart()
            more_of = {scope: self._by_scope.get(scope, NONE).adding(own._facts) for scope, own in apart.items()}
            whole._by_scope = {**self._by_scope, **more_of}
        return whole

    def scopes(self) -> tuple[str, ...]:
        """The scopes to judge one by one: those named, or the one unnamed scope."""
        if self._scopes is None:
            self._scopes = tuple(filter(None, self._apart())) or ("",)
        return self._scopes

    def within(self, scope: str) -> Facts:
        """The facts of one scope, with those that belong to every scope (what was asked, what is reference)."""
        apart = self._apart()
        if apart.keys() <= {""}:
            return self
        shared = apart.get("", NONE)
        return shared.adding(apart.get(scope, NONE)._facts) if scope else shared

    def own(self, scope: str) -> set[object]:
        """Of which kinds, and by which rules' symptoms, something is told of this scope alone."""
        alone = self._apart().get(scope, NONE)._by_kind
        rules = {one.rule for one in alone.get(Sighting, ())}  # type: ignore[attr-defined]
        return {Fact, *alone, *rules}

    def _apart(self) -> dict[str, Facts]:
        if self._by_scope is None:
            told: dict[str, list[Fact]] = {}
            for fact in self._facts:
                told.setdefault(fact.origin.scope, []).append(fact)
            self._by_scope = {scope: Facts(facts) for scope, facts in told.items()}
        return self._by_scope


NONE = Facts()


def devices(facts: Facts) -> tuple[Accelerator, ...]:
    """One accelerator for each device of a machine: see `Facts.devices`."""
    return facts.devices()


def _distinct(facts: Facts) -> tuple[Accelerator, ...]:
    return distinct(facts.all(Accelerator))


def _variables(facts: Facts) -> dict[str, Setting]:
    told = [one for one in facts.all(Setting) if one.kind == "environment"]
    lines = {(one.name, one.value): one for one in told}
    settings = {one.name: one for one in told}
    for launch in facts.all(LaunchArguments):
        for name, value in launch.environment if not _quoted(launch.origin.quote) else ():
            own = Setting(origin=launch.origin, name=name, value=value)
            settings[name] = lines.get((name, value), own)
    return settings


def _quoted(line: str) -> bool:
    """Whether a line is a sentence that quotes a command between backticks; a label before them is none."""
    outside = " ".join(TICKS.split(line)[::2]) if TICKS.search(line) else ""
    return len(WORDS.findall(outside)) > LABEL_CAP
