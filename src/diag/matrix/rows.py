"""The rows of the matrix, as YAML: releases and known sets become reference facts, rules and known-bad cases checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Literal, TypeVar

from msgspec import Struct, convert, to_builtins
from packaging.specifiers import SpecifierSet

from diag.check import Answer, Check
from diag.documents import Document
from diag.facts import (
    Accelerator,
    Component,
    ComponentName,
    DeviceModel,
    Driver,
    Fact,
    Facts,
    Host,
    KnownSet,
    LaunchArguments,
    Level,
    Origin,
    Package,
    PackageList,
    Pin,
    Python,
    Reference,
    Release,
    Runtime,
    Setting,
    TorchBuild,
    Vendor,
)
from diag.facts.parts import absent
from diag.finding import Finding, Severity, Undecided, Value
from diag.kb import Rule, Seen, Vector, Vectors, Way, Wording
from diag.matrix.when import When, evidence
from diag.versions import parse

Said = Literal["vendor", "maintainer", "project", "metadata", "measured", "contributor", "reporter"]
SLUG = re.compile(r"matrix/[\w./-]{1,80}")
R = TypeVar("R", bound=Reference)
BESIDE = ("Package", "Component", "Engine", "LaunchCommand")
"""The kinds of facts without one of which releases and known sets are of no use."""
KNOWN_BAD: Level = "known-bad"
READS: tuple[type[Fact], ...] = (
    *(Accelerator, Component, ComponentName, DeviceModel, Driver, Host, LaunchArguments, Package, PackageList, Python),
    *(Release, Runtime, Setting, TorchBuild, Vendor),
)
"""What the conditions of rows may look at."""


class Fault(Rule, frozen=True, kw_only=True):
    """A set of versions, or a kind of sets, that is known to fail; `evidence` is who says so."""

    id: str
    when: When
    evidence: Said
    doubt: str = ""

    def __post_init__(self) -> None:
        if self.severity == "error" and (self.doubt or self.evidence == "reporter"):
            raise ValueError(f"{self.id}: what is doubtful, or one reporter's word, is no error")

    def not_applicable(self, facts: Facts) -> str:
        """Why the row does not concern this machine: a distribution of it is known not to be installed."""
        gone = [name for name in self.when.ranges() if absent(facts, name)]
        return f"{', '.join(gone)} not here" if gone else ""

    def run(self, facts: Facts) -> Iterator[Answer]:
        """A finding where every condition is met."""
        answers = list(self.when.answers(facts, self.about))
        if any(one.met is False for one in answers):
            return
        if unknown := "; ".join(one.unknown for one in answers if one.met is None):
            yield Undecided(reason=unknown)
            return
        said = ", ".join(dict.fromkeys(words for one in answers for words, _ in one.shown))
        values: dict[str, Value] = {"versions": said}
        yield Finding(values=values, confidence=self.confidence, evidence=evidence(answers))


class SiteFault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known-bad set in few words, as a site writes it: what it says, when, and the commands that mend it."""

    id: str
    says: str
    when: When
    severity: Severity = "warning"
    about: str = ""
    fix: tuple[str, ...] = ()
    source: str = ""
    checked: str = ""

    def fault(self) -> Fault:
        """The same as a row of ours; its only proof is the site's word."""
        said = Wording(en=self.says, zh=self.says)
        seen = date.fromisoformat(self.checked) if self.checked else date.min
        proof = Vector(text="", source=self.source)
        return Fault(
            id=self.id,
            title=said,
            cause=said,
            summary=Wording(en=f"{{versions}}: {self.says}", zh=f"{{versions}}：{self.says}"),
            severity=self.severity,
            about=self.about,
            evidence="measured",
            when=self.when,
            remedies=(Way(title=said, commands=self.fix, safety="manual", source=self.source),),
            sources=(Seen(url=self.source, seen=seen),),
            vectors=Vectors(fires=(proof,), silent=(proof,)),
        )


class Subject(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the matrix; `common` are fields that its releases share."""

    common: dict[str, Any] = {}
    releases: list[dict[str, Any]] = []
    rules: list[dict[str, Any]] = []
    cases: list[dict[str, Any]] = []


def checks(document: Document, slug: str) -> Iterator[Check]:
    """The checks that rules and known-bad cases become: `matrix/<file>/<row>`, where `slug` is `<file>`."""
    subject = convert(document.content.value, Subject)
    for row in (*subject.rules, *subject.cases):
        stated = dict(row)
        if stated.pop("level", KNOWN_BAD) == KNOWN_BAD:
            fault = _fault(stated)
            yield Check(
                id=f"matrix/{slug}/{fault.id}",
                needs=(),
                uses=READS,
                run=fault.run,
                applies=fault.not_applicable,
                verdict=KNOWN_BAD,
                ranges=fault.when.ranges(),
                **fault.stated("matrix"),
            )


def _fault(row: dict[str, Any]) -> Fault:
    try:
        return convert(row, SiteFault).fault() if "says" in row else convert(row, Fault)
    except ValueError as error:
        raise ValueError(f"{row.get('id', 'a row without an id')}: {error}") from error


def key(fact: Reference) -> str:
    """What a row that an overlay has as well is known by."""
    if isinstance(fact, Release | Pin):
        return f"{fact.package}=={fact.version}"
    return f"set {fact.id}" if isinstance(fact, KnownSet) else ""


def facts(document: Document, capture: str) -> Iterator[Reference]:
    """The releases of a file, with their pins, and its sets that are known to work; `capture` names the file."""
    content = document.content
    subject = convert(content.value, Subject)
    for row, line in zip(subject.releases, content.lines.get("releases", ()), strict=False):
        release = _fact({**subject.common, **row}, Release, capture, line)
        yield release
        for name, specifier in release.pins.items():
            yield Pin(
                origin=release.origin,
                package=release.package,
                version=release.version,
                name=name,
                specifier=specifier,
                source=release.source,
                checked=release.checked,
            )
    for row, line in zip(subject.cases, content.lines.get("cases", ()), strict=False):
        if row.get("level", KNOWN_BAD) != KNOWN_BAD:
            yield _fact(row, KnownSet, capture, line)


def proved(checks: Iterable[Check], told: Iterable[Reference]) -> None:
    """Raise ValueError for what a row of somebody else states that is no id, no version, no range or no day."""
    for one in checks:
        if not SLUG.fullmatch(one.id):
            raise ValueError(f"{one.id!r} is no id: letters, digits, dots and dashes")
    for row in told:
        try:
            date.fromisoformat(row.checked)
            if isinstance(row, Release) and parse(row.version) is None:
                raise ValueError(f"{row.version!r} is no version")
            if isinstance(row, Pin):
                SpecifierSet(row.specifier)
        except ValueError as error:
            raise ValueError(f"{key(row)}: {error}") from error


def _fact(row: Mapping[str, Any], kind: type[R], capture: str, line: int) -> R:
    origin = Origin(capture=capture, line=line)
    return convert({"origin": to_builtins(origin), **row}, kind)
