"""The commands about sets of versions: the verdict on one, and the way to one that works."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, json, to_builtins
from msgspec.structs import replace

from diag.check import Check
from diag.cli.emit import check_output, emit, write
from diag.cli.examine import Examined, Question, examined, reported
from diag.cli.opening import selected, today, within
from diag.cli.options import Bounds, Content, Live, Output
from diag.cli.settings import settings
from diag.errors import DiagError
from diag.facts import LEVELS, ComponentName, Engine, Facts, MatrixVerdict, Platform
from diag.matrix.verdict import STRANGE
from diag.plugins import Loaded
from diag.render.words import WORDS
from diag.report import Report
from diag.suggest import Judge, judge, nearest, rows
from diag.ways import TORCH, Tables, Wanted, wishes

WORD = re.compile(r"(?P<name>[A-Za-z][\w.-]*)(?P<sign>===?|=)(?P<version>\w[^\s=<>]*(?: [\w().-]+)*)")
Words = Mapping[str, str]
FEW = 4
"""Releases that are named one by one below this number."""
GRAVEST = ("known-bad", "metadata-conflict", "unknown", "allowed-by-metadata", "reported", "verified")


class Wish(Struct, frozen=True, kw_only=True):
    """What is asked about: words that name parts, a text that tells of a machine, a launch, and wishes."""

    components: tuple[str, ...] = ()
    source: str | None = None
    launch: str | None = None
    want: tuple[str, ...] = ()


def check(wish: Wish, *, output: Output, content: Content, bounds: Bounds, live: Live) -> int:
    """Judge the set; the exit code is 1 where a reason of severity error stands behind the verdict."""
    found, report = judged(wish, content=content, bounds=bounds, live=live, output=output)
    given(report, found, output, bounds)
    return 1 if any(one.severity == "error" for verdict in report.versions for one in verdict.deciding) else 0


def suggest(wish: Wish, *, output: Output, content: Content, bounds: Bounds, live: Live) -> int:
    """Find the nearest sets that grant the wish; the exit code is 1 where none is known."""
    try:
        wanted = wishes(wish.want)
    except ValueError as error:
        raise DiagError(f"--want {error}: it is neither NAME with a range nor model=NAME") from error
    found, report = judged(wish, content=content, bounds=bounds, live=live, output=output)
    with within(bounds.timeout):
        report = suggested(report, found, wanted, content)
    given(report, found, output, bounds)
    return 0 if any(one.suggestions for one in report.versions) else 1


def suggested(report: Report, found: Examined, wanted: Sequence[Wanted], content: Content) -> Report:
    """The report with the ways to sets that work, or with the proof that none is known."""
    tables = rows(found.loaded)
    checks = [one for one in found.loaded.checks.values() if one.verdict]
    decide = judge(found.loaded, checks, language=content.lang, today=today())
    facts, words = found.examination.facts, WORDS[content.lang]
    verdicts = [
        with_ways(one, facts.within(one.origin.scope), wanted, tables, decide=decide, words=words)
        for one in report.versions
    ]
    return replace(report, facts={**report.facts, "MatrixVerdict": to_builtins(verdicts)})


def with_ways(
    verdict: MatrixVerdict, view: Facts, wanted: Sequence[Wanted], tables: Tables, *, decide: Judge, words: Words
) -> MatrixVerdict:
    """A verdict with the ways that grant each wish, or with what refuses them."""
    makers = frozenset(name for one in view.all(Platform) for name in one.present)
    parts = {name: version for name, version in verdict.components.items() if ", " not in version}
    ways, notes = [], list(verdict.notes)
    for wish in _named(wanted, view) if not any(one.rule == STRANGE for one in verdict.reasons) else ():
        nearby, refused = nearest(parts, wish, tables, makers, decide)
        ways += nearby
        notes += [words["refused"].format(rule=rule, names=_summed(names)) for rule, names in refused.items()]
        if not nearby:
            known = tables.releases.get(wish.name, ())
            newest = words["newest"].format(version=known[0].version) if known else ""
            notes.append(words["no way"].format(wish=f"{wish.name}{wish.specifier} {wish.model}".strip()) + newest)
    return replace(verdict, suggestions=tuple(ways), notes=tuple(notes))


def _summed(names: Sequence[str]) -> str:
    """Releases in few words: the newest and the oldest of many."""
    return ", ".join(names) if len(names) < FEW else f"{names[0]} … {names[-1]} ({len(names)})"


def _named(wanted: Sequence[Wanted], view: Facts) -> list[Wanted]:
    """The wishes; where no distribution is named the engine that is there, else torch."""
    engines = [one.name for one in view.all(Engine)] or ([TORCH] if view.package(TORCH) else [])
    return [
        one if one.name or one.model else one._replace(name=name) for one in wanted for name in (engines[:1] or [""])
    ]


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
        note = WORDS[content.lang]["overlay"].format(names=_summed(sorted(found.loaded.overlaid)))
        noted = [replace(one, notes=(*one.notes, note)) for one in report.versions]
        report = replace(report, facts={**report.facts, "MatrixVerdict": to_builtins(noted)})
    return found, replace(report, incomplete=(), untouched=(), verdict=_word(report))


def _word(report: Report) -> Any:
    """The report's own word for what was found: the verdicts stand beside it."""
    if report.versions and report.verdict == "incomplete":
        return "warn" if any(one.severity == "warning" for one in report.findings) else "pass"
    return report.verdict


def asked(wish: Wish) -> Question:
    """The question that the words make."""
    for one in wish.components:
        if not WORD.fullmatch(one):
            raise DiagError(f"{one!r} is neither NAME==VERSION nor NAME=VALUE")
    texts = {"launch": wish.launch} if wish.launch is not None else {}
    if wish.components:
        texts["matrix"] = f"diag matrix check {shlex.join(wish.components)}"
    sources = (wish.source,) if wish.source else ()
    here = not wish.components
    wanted = None if here or sources else partial(_needed, [f'"{key}"'.encode() for key in texts])
    return Question(command="matrix check", sources=sources, texts=texts, here=here, wanted=wanted)


def _needed(keys: Sequence[bytes], source: bytes) -> bool:
    """Whether a module has a part in judging what is asked in words."""
    return any(word in source for word in (b"verdict=", b"@deduction(", *keys))


def known(components: Sequence[str], loaded: Loaded) -> None:
    """Refuse words whose name is that of no part."""
    names = [one.name for one in loaded.references if isinstance(one, ComponentName)]
    for word in components:
        name, sign, _ = re.split(r"(={1,3})", word, maxsplit=1)
        if sign == "=" and name.lower() not in names:
            near = get_close_matches(name.lower(), names, 1)
            meant = f"did you mean {near[0]}=? " if near else ""
            raise DiagError(f"{word}: no part is called {name!r}; {meant}a distribution is {name}==VERSION")


def extract(report: Report) -> dict[str, Any]:
    """The document `diag/matrix/1`: of several machines the gravest verdict."""
    verdicts = sorted(report.versions, key=lambda one: GRAVEST.index(one.verdict))
    if not verdicts:
        return {"schema": "diag/matrix/1", "verdict": LEVELS[-1], "components": {}, "reasons": [], "suggestions": []}
    return {"schema": "diag/matrix/1", **_plain(verdicts[0])}


def _plain(verdict: MatrixVerdict) -> dict[str, Any]:
    told: dict[str, Any] = to_builtins(verdict)
    scope = told.pop("origin")["scope"]
    return {**told, "scope": scope} if scope else told
