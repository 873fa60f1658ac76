"""The verdict on a set of versions: what is asked about, judged, and its document."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field, json, to_builtins
from msgspec.structs import asdict, replace

from diag.check import Check
from diag.cli.emit import check_output, emit, write
from diag.cli.examine import Examined, Question, examined, reported
from diag.cli.opening import selected, within
from diag.cli.options import Bounds, Content, Live, Output
from diag.cli.settings import settings
from diag.errors import DiagError
from diag.facts import (
    ComponentName,
    Level,
    MatrixVerdict,
    Origin,
    Reason,
    Suggestion,
)
from diag.facts.words import MOST, WORD
from diag.finding import SEVERITIES
from diag.plugins import Loaded
from diag.render.words import WORDS
from diag.report import Report
from diag.versions import canonical, order, parse

FEW = 4
"""Releases that are named one by one below this number."""
BAD = ("known-bad", "metadata-conflict")
GRAVEST = ("known-bad", "metadata-conflict", "unknown", "allowed-by-metadata", "reported", "verified")


class Wish(Struct, frozen=True, kw_only=True):
    """What is asked about: words that name parts, a text that tells of a machine, a launch, and wishes."""

    components: tuple[str, ...] = ()
    source: str | None = None
    launch: str | None = None
    want: tuple[str, ...] = ()
    seeks: bool = False


def check(wish: Wish, *, output: Output, content: Content, bounds: Bounds, live: Live) -> int:
    """Judge the set; the exit code is 1 where a reason at or above `--fail-on` stands behind the verdict."""
    found, report = judged(wish, content=content, bounds=bounds, live=live, output=output)
    given(report, found, output, bounds)
    counted = SEVERITIES[: SEVERITIES.index(output.fail_on) + 1] if output.fail_on != "never" else ()
    if any(one.severity in counted for verdict in report.versions for one in verdict.deciding if one.verdict in BAD):
        return 1
    return 0 if report.versions else 4


def given(report: Report, found: Examined, output: Output, bounds: Bounds) -> None:
    """Write the document, or the report in the form asked for."""
    if output.form == "json" and not output.quiet:
        write(json.format(json.encode(extract(report)), indent=2).decode() + "\n")
    with within(bounds.timeout):
        emit(report, replace(output, quiet=output.quiet or output.form == "json"), found.loaded.templates)


def judged(wish: Wish, *, content: Content, bounds: Bounds, live: Live, output: Output) -> tuple[Examined, Report]:
    """The examination of what is asked about by the rules on versions, and its report."""
    question = asked(wish)
    decided = settings()

    def choose(loaded: Loaded) -> list[Check]:
        known(wish.components, loaded)
        return [one for one in selected(loaded.checks.values(), bounds, decided) if one.verdict]

    def opening(shelf: Any) -> None:
        check_output(output, shelf.templates, [Path(wish.source)] if wish.source else [])

    with within(bounds.timeout):
        found = examined(question, bounds, live, choose=choose, opening=opening)
        report = reported(question, found, content)
    if found.loaded.overlaid:
        note = WORDS[content.lang]["overlay"].format(names=summed(sorted(found.loaded.overlaid)))
        noted = [replace(one, notes=(*one.notes, note)) for one in report.versions]
        report = replace(report, facts={**report.facts, "MatrixVerdict": to_builtins(noted)})
    return found, replace(report, incomplete=(), untouched=(), verdict=_word(report))


def summed(names: Sequence[str]) -> str:
    """Releases in few words: the newest and the oldest of many."""
    return ", ".join(names) if len(names) < FEW else f"{names[0]} … {names[-1]} ({len(names)})"


def _word(report: Report) -> Any:
    """The report's own word for what was found: the verdicts stand beside it."""
    if report.versions and report.verdict == "incomplete":
        return "warn" if any(one.severity == "warning" for one in report.findings) else "pass"
    return report.verdict


def asked(wish: Wish) -> Question:
    """The question that the words make."""
    if len(wish.components) > MOST:
        raise DiagError(f"{len(wish.components)} components are too many: at most {MOST}")
    names: dict[str, str] = {}
    for one in wish.components:
        word = WORD.fullmatch(one)
        if word is None:
            raise DiagError(f"{one[:80]!r} is neither NAME==VERSION nor NAME=VALUE")
        if word["sign"] != "=" and parse(word["version"]) is None:
            raise DiagError(f"{one}: {word['version']!r} is no version of a distribution")
        name = canonical(word["name"])
        if name in names and name != "gpu":
            raise DiagError(f"{one}: {names[name]} was named before")
        names[name] = one
    texts = {"launch": wish.launch} if wish.launch is not None else {}
    if wish.components:
        texts["matrix"] = f"diag matrix check {shlex.join(wish.components)}"
    sources = (wish.source,) if wish.source else ()
    here = not wish.components
    wanted = None if here or sources else partial(_needed, [f'"{key}"'.encode() for key in texts])
    command = "matrix suggest" if wish.seeks else "matrix check"
    return Question(command=command, sources=sources, texts=texts, here=here, wanted=wanted)


def _needed(keys: Sequence[bytes], source: bytes) -> bool:
    """Whether a module has a part in judging what is asked in words."""
    return any(word in source for word in (b"verdict=", b"@deduction(", *keys))


def known(components: Sequence[str], loaded: Loaded) -> None:
    """Refuse words whose name is that of no part, or whose value is no version of it."""
    rows = {one.name: one for one in loaded.references if isinstance(one, ComponentName)}
    names = list(rows)
    for word in components:
        name, sign, value = re.split(r"(={1,3})", word, maxsplit=1)
        if sign == "=" and name.lower() not in names:
            near = get_close_matches(name.lower(), names, 1)
            meant = f"did you mean {near[0]}=? " if near else ""
            raise DiagError(f"{word}: no part is called {name!r}; {meant}a distribution is {name}==VERSION")
        if sign == "=" and rows[name.lower()].kind not in ("device", "model") and not order(value):
            raise DiagError(f"{word}: {value!r} is no version, as 570.124.06, 12.8 or 8.3.RC1 is")


class Document(Struct, frozen=True, kw_only=True):
    """The document `diag/matrix/1`: the verdict on the versions of one machine, `scope` names it where there are more.

    `components` are the parts that were judged. Every reason names its rule, its source and the day on which that was
    checked; those that have the verdict of the whole stand behind it. `suggestions` are those of `matrix suggest`.
    """

    schema_: Literal["diag/matrix/1"] = field(name="schema")
    verdict: Level
    components: dict[str, str]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]
    undecided: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]
    scope: str = ""


def extract(report: Report) -> Document:
    """The verdict as a document: of several machines the gravest."""
    verdicts = sorted(report.versions, key=lambda one: GRAVEST.index(one.verdict))
    first = verdicts[0] if verdicts else MatrixVerdict(origin=Origin(capture="matrix"), verdict="unknown")
    told = {name: value for name, value in asdict(first).items() if name != "origin"}
    return Document(schema_="diag/matrix/1", **told, scope=first.origin.scope)
