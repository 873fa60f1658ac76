"""Knowledge-base entries and reference rows: YAML files that become checks and facts.

An entry names a symptom in a text, its cause and its way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, convert, field, to_builtins
from msgspec.structs import asdict, replace
from packaging.specifiers import SpecifierSet

from diag.check import Check, RuleKind, Words
from diag.documents import Document
from diag.facts import Facts, Origin, Package, Reference, Text
from diag.finding import Confidence, Evidence, Finding, Remedy, Severity
from diag.symptoms import Hit, Symptoms
from diag.versions import satisfies


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

    text: tuple[str, ...] = ()
    symptoms: Symptoms
    applies: Applies | None = None

    def run(self, facts: Facts) -> Iterator[Finding]:
        """A finding for the first line of each capture and scope that shows the symptom."""
        found: set[tuple[str, str]] = set()
        for window in facts.all(Text):
            place = (window.origin.capture, window.origin.scope)
            if place in found or not any(literal in window.content for literal in self.symptoms.literals):
                continue
            lines = window.content.split("\n")
            if hit := next(self.symptoms.hits(lines), None):
                found.add(place)
                yield self._finding(window.origin, lines[hit.place].strip(), hit)

    def _finding(self, origin: Origin, quote: str, hit: Hit) -> Finding:
        where = replace(origin, line=origin.line + hit.place, quote=quote[:400])
        return Finding(
            values=dict(hit.values), confidence=self.confidence, evidence=(Evidence(says=hit.says, origin=where),)
        )

    def not_applicable(self, facts: Facts) -> str:
        """Why the entry cannot be judged here: other versions, or no text of the kinds it reads.

        A window around its own literal is such a text, whatever it was taken for.
        """
        windows = facts.all(Text)
        own = any(literal in window.content for window in windows for literal in self.symptoms.literals)
        if self.text and not own and not any(set(self.text) & set(window.kinds) for window in windows):
            return f"no {' or '.join(self.text)} here"
        return self.applies.reason(facts) if self.applies else ""


def load(document: Document, slug: str) -> Check:
    """The check an entry file becomes; its id `slug` is its path below `kb/entries`."""
    entry = convert(document.content.value, Entry)
    return Check(
        id=slug,
        needs=(Text,),
        uses=(Package,),
        run=entry.run,
        applies=entry.not_applicable,
        literals=entry.symptoms.literals,
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
