"""Knowledge-base entries and reference rows: YAML files that become checks and facts.

An entry names a symptom in a text, its cause and its way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, convert, field, to_builtins
from msgspec.structs import asdict, replace
from packaging.specifiers import SpecifierSet

from diag.capture import HELD_CAP
from diag.check import Check, RuleKind, Words
from diag.documents import Document
from diag.facts import Facts, Origin, Package, Reference, Sighting
from diag.finding import Confidence, Evidence, Finding, Remedy, Severity
from diag.symptoms import Symptoms
from diag.text import cut
from diag.versions import satisfies

TextKind = Literal[
    "kernel-log", "engine-log", "traceback", "collective-log", "container-log", "installer-log", "tool-output"
]
"""Where the text of an entry comes from."""
TEXT_KINDS: tuple[TextKind, ...] = get_args(TextKind)


class Wording(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sentence in both languages."""

    en: str
    zh: str


class Seen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source that was really read, and when."""

    url: str
    seen: date


class Vector(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text that must make a rule fire, or a near miss that must leave it silent."""

    text: str
    source: str = field(default="", name="from")
    why: str = ""


class Vectors(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The proof of a rule."""

    fires: Annotated[tuple[Vector, ...], Meta(min_length=1)]
    silent: Annotated[tuple[Vector, ...], Meta(min_length=1)]


class Way(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A remedy as an entry writes it."""

    title: Wording
    commands: tuple[str, ...] = ()
    safety: Literal["safe", "disruptive", "manual"]
    verify: str = ""
    source: str = ""


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every rule written as data states."""

    title: Wording
    severity: Severity
    confidence: Confidence = "high"
    about: str = ""
    summary: Wording | None = None
    cause: Wording
    remedies: Annotated[tuple[Way, ...], Meta(min_length=1)]
    sources: Annotated[tuple[Seen, ...], Meta(min_length=1)]
    vectors: Vectors
    explains: tuple[str, ...] = ()
    consequence: bool = False

    def stated(self, kind: RuleKind) -> dict[str, Any]:
        """The fields of a `Check` that do not depend on how the rule is found."""
        return {
            "severity": self.severity,
            "about": self.about,
            "words": {language: self._words(language) for language in ("en", "zh")},
            "remedies": tuple(self._remedies()),
            "sources": tuple(one.url for one in self.sources),
            "fires": tuple(one.text for one in self.vectors.fires),
            "silent": tuple(one.text for one in self.vectors.silent),
            "explains": self.explains,
            "consequence": self.consequence,
            "kind": kind,
            "explanation": self.cause.en,
            "checked": max(one.seen for one in self.sources).isoformat(),
        }

    def _words(self, language: str) -> Words:
        title: str = getattr(self.title, language)
        return Words(
            title=title,
            summary=getattr(self.summary, language) if self.summary else title,
            cause=getattr(self.cause, language),
        )

    def _remedies(self) -> Iterator[Remedy]:
        for number, way in enumerate(self.remedies, 1):
            yield Remedy(key=str(number), **{**asdict(way), "title": asdict(way.title)})


class Applies(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The versions of a component that an entry is about."""

    component: str
    version: str

    def __post_init__(self) -> None:
        SpecifierSet(self.version)

    def reason(self, facts: Facts) -> str:
        """Why the entry does not concern this machine, empty where it may."""
        package = facts.package(self.component)
        if package and satisfies(package.version, self.version) is False:
            return f"{self.component} {package.version} is not in {self.version}"
        return ""


class Entry(Rule, frozen=True, kw_only=True):
    """One symptom: the file `kb/entries/<component>/<slug>.yaml`."""

    text: Annotated[tuple[TextKind, ...], Meta(min_length=1)]
    symptoms: Symptoms
    applies: Applies | None = None

    def run(self, slug: str, facts: Facts) -> Iterator[Finding]:
        """One finding for each text that shows the symptom, at the first line that does."""
        shown: dict[str, list[Sighting]] = {}
        for one in facts.sightings(slug):
            if self.symptoms.stand([line.text for line in one.near], one.values):
                shown.setdefault(one.origin.capture, []).append(one)
        for sightings in shown.values():
            yield Finding(
                values=dict(sightings[0].values),
                confidence=self.confidence,
                evidence=tuple(_evidence(sightings, (*self.symptoms.contains, *self.symptoms.contains_any))),
            )

    def not_applicable(self, slug: str, facts: Facts) -> str:
        """Why the entry cannot be judged here: other versions, or no text of the kinds it reads.

        A line that matches is such a text, whatever it was taken for.
        """
        if facts.kinds_read().isdisjoint(self.text) and not facts.sightings(slug):
            return f"no {' or '.join(self.text)} here"
        return self.applies.reason(facts) if self.applies else ""


def _evidence(shown: Sequence[Sighting], context: Iterable[str]) -> Iterator[Evidence]:
    """The first line that shows a symptom, and those near it that had to be there."""
    first = shown[0]
    speakers = sorted({name for one in shown for name in one.speakers})
    times = sum(one.times for one in shown)
    yield Evidence(says=first.matched, origin=first.origin, times=times, speakers=tuple(speakers))
    for literal in context:
        for line in [line for line in first.near if literal in line.text][:1]:
            quote = cut(line.text.strip(), HELD_CAP)
            yield Evidence(says=literal, origin=replace(first.origin, line=line.number, quote=quote))


def load(document: Document, slug: str) -> Check:
    """The check an entry file becomes; its id `slug` is its path below `kb/entries`."""
    entry = convert(document.content.value, Entry)
    if document.new:
        entry.symptoms.check()
    return Check(
        id=slug,
        needs=(),
        uses=(Package,),
        run=partial(entry.run, slug),
        applies=partial(entry.not_applicable, slug),
        symptoms=entry.symptoms,
        reads=entry.text,
        confidence=entry.confidence,
        ranges={entry.applies.component: (entry.applies.version,)} if entry.applies else {},
        **entry.stated("entry"),
    )


def beside(document: Document) -> tuple[str, ...]:
    """The kinds of facts without one of which the rows of a file are of no use, none where they always are."""
    found = re.search(rb"^beside: (\w+(?:, \w+)*)$", document.text, re.MULTILINE)
    return tuple(found[1].decode().split(", ")) if found else ()


def references(document: Document, kinds: Mapping[str, type[Reference]]) -> Iterable[Reference]:
    """The rows of a reference file as facts whose origin is file and line."""
    content = document.content
    stated = content.value
    if stated["fact"] not in kinds:
        raise ValueError(f"no kind of reference is called {stated['fact']!r}; there are {', '.join(sorted(kinds))}")
    kind, common = kinds[stated["fact"]], stated.get("common", {})
    for row, line in zip(stated["rows"], content.lines["rows"], strict=True):
        origin = Origin(capture=f"reference/{document.path.stem}", line=line)
        yield convert({"origin": to_builtins(origin), **common, **row}, kind)
