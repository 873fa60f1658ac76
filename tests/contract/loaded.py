"""All that the roots hold, every vector of it, and what the engine makes of a text."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import held
from held import LOADED
from msgspec.structs import replace

from diag import engine, summary
from diag.capture import Capture, Held
from diag.check import Check
from diag.engine import Examination
from diag.facts import Fact, Reference
from diag.finding import Finding
from diag.probe import Probe
from diag.report import Judged, Report, Source, assemble
from diag.sources import Paste
from diag.transcript import PROMPT

REPO = Path(__file__).resolve().parents[2]
LANGUAGES = ("en", "zh")


class Vector(NamedTuple):
    """One text that proves a rule."""

    rule: Check
    name: str
    text: str


def vectors(rule: Check) -> list[Vector]:
    fires = [Vector(rule, f"{rule.id}-fires{number}", text) for number, text in enumerate(rule.fires, 1)]
    return fires + [Vector(rule, f"{rule.id}-silent{number}", text) for number, text in enumerate(rule.silent, 1)]


RULES = list(LOADED.checks.values())
VECTORS = [vector for rule in RULES for vector in vectors(rule)]
PROBES = list(LOADED.probes.values())
LIVE = [probe for probe in PROBES if probe.live]
SAVED = [path.read_text(errors="replace") for path in sorted((REPO / "tests/captures").rglob("*.txt"))]


def examined(captures: Iterable[Capture]) -> Examination:
    return engine.examine(captures, LOADED)


def paste(text: str) -> list[Capture]:
    return list(Paste("vector", Held(text)).captures(()))


@lru_cache(maxsize=256)
def pasted(text: str) -> Examination:
    return examined(paste(text))


def alone(rule: Check, text: str) -> Examination:
    """A text as one rule judges it."""
    return _alone(rule.id, text)


@lru_cache(maxsize=4096)
def _alone(id: str, text: str) -> Examination:
    return engine.examine(paste(text), LOADED, [LOADED.checks[id]])


def verdicts(examination: Examination) -> list[tuple[Any, ...]]:
    """The results without what differs from run to run: times, and the name of the text."""
    return [
        (one.check, one.status, one.scopes, [(found.subject, found.values, evidence(found)) for found in one.findings])
        for one in examination.results
    ]


def same(captures: Iterable[Capture], text: str) -> bool:
    """Whether all rules say of captures what they say of a pasted text.

    They are pure questions put to facts, and are asked where the facts differ in more than the name of the text; where
    more examples are asked for, always.
    """
    taken = list(captures)
    if "DIAG_EXAMPLES" not in os.environ and learnt(taken) == learnt(paste(text)):
        return True
    return verdicts(examined(taken)) == verdicts(pasted(text))


def learnt(captures: Iterable[Capture]) -> list[Fact]:
    """All that is known by captures but the reference, without the names of the texts."""
    told = engine.examine(captures, LOADED, []).facts
    return [replace(one, origin=replace(one.origin, capture="")) for one in told if not isinstance(one, Reference)]


def evidence(found: Finding) -> list[tuple[str, int, str]]:
    return [(one.says, one.origin.line, one.origin.quote) for one in found.evidence]


def statuses(examination: Examination) -> list[tuple[str, str, int]]:
    return [(one.check, one.status, len(one.findings)) for one in examination.results]


def report(examination: Examination, language: str = "en") -> Report:
    rows = summary.machine(examination.facts, language)
    judged = Judged(examination.facts, examination.results, examination.captures, machine=rows)
    source = Source(kind="paste", name="vector")
    return assemble(judged, LOADED.checks, language=language, tool="0", command="env-check", source=source)


def told(probe: Probe, captures: Iterable[Capture]) -> list[Fact]:
    """What one probe reads in captures, among all others, without the places it was read in."""
    facts = [fact for _, read in readings(probe, captures) for fact in read]
    return [replace(fact, origin=None) for fact in facts]


def readings(probe: Probe, captures: Iterable[Capture]) -> list[tuple[Capture, list[Fact]]]:
    """Each part that one probe is given, with what it tells of it."""
    return [(part, read) for key, part, read in held.readings(captures) if key == probe.key]


def own_texts(probe: Probe) -> list[str]:
    """The texts of one probe in all vectors and saved captures, each up to the next shell prompt."""
    return read_texts().get(probe.key, [])


@cache
def read_texts() -> dict[str, list[str]]:
    """The texts that each probe tells something of."""
    kept: dict[str, list[str]] = {}
    for text in sorted({*(vector.text for vector in VECTORS), *SAVED}):
        for key, part, facts in held.readings(paste(text)):
            if facts and not any(PROMPT.match(line.text) for line in part.lines()):
                kept.setdefault(key, []).append(part.content)
    return kept
