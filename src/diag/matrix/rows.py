"""The rows of the matrix, as YAML: releases and known sets become reference facts, rules and known-bad cases checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct, convert, to_builtins

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
from diag.finding import Finding, Undecided, Value
from diag.kb import Rule
from diag.matrix.when import When, evidence

Said = Literal["vendor", "maintainer", "project", "metadata", "measured", "contributor", "reporter"]
R = TypeVar("R", bound=Reference)
BESIDE = ("Package", "Component", "LaunchCommand")
"""The kinds of facts without one of which releases and known sets are of no use."""
KNOWN_BAD: Level = "known-bad"
READS: tuple[type[Fact], ...] = (
    *(Accelerator, Component, ComponentName, DeviceModel, Driver, Host, LaunchArguments, Package, PackageList, Python),
    *(Runtime, Setting, TorchBuild, Vendor),
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
            fault = convert(stated, Fault)
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


def _fact(row: Mapping[str, Any], kind: type[R], capture: str, line: int) -> R:
    origin = Origin(capture=capture, line=line)
    return convert({"origin": to_builtins(origin), **row}, kind)
