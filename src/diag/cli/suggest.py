"""The way to a set of versions that works: the verdict on what is there, and the nearest sets that grant the wish."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import to_builtins
from msgspec.structs import replace

from diag.cli.examine import Examined
from diag.cli.matrix import Wish, given, judged, summed
from diag.cli.opening import today, within
from diag.cli.options import Bounds, Content, Live, Output
from diag.errors import DiagError
from diag.facts import Component, Engine, Facts, MatrixVerdict, Package
from diag.facts.models import present_makers
from diag.facts.parts import parts_named
from diag.matrix.verdict import STRANGE
from diag.render.words import WORDS
from diag.report import Report
from diag.ways.nearest import Judge, judge, nearest, rows
from diag.ways.tables import TORCH, Tables
from diag.ways.wished import Given, Wanted, wishes

ONE = ("gpu", "driver", "python", "glibc")
"""Parts that a machine has one of, where a way is looked for."""


def suggest(wish: Wish, *, output: Output, content: Content, bounds: Bounds, live: Live) -> int:
    """Find the nearest sets that grant the wish; the exit code is 1 where none is known."""
    try:
        wanted = wishes(wish.want)
    except ValueError as error:
        raise DiagError(f"--want {str(error)[:80]}: it is neither NAME with a range nor model=NAME") from error
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
    facts = found.examination.facts
    verdicts = [
        with_ways(one, facts.within(one.origin.scope), wanted, tables, decide=decide, language=content.lang)
        for one in report.versions
    ]
    return replace(report, facts={**report.facts, "MatrixVerdict": to_builtins(verdicts)})


def with_ways(
    verdict: MatrixVerdict, view: Facts, wanted: Sequence[Wanted], tables: Tables, *, decide: Judge, language: str
) -> MatrixVerdict:
    """A verdict with the ways that grant all wishes, or with what refuses them."""
    words, notes = WORDS[language], list(verdict.notes)
    parts = told(verdict, view, tables)
    several = [name for name in ONE if ", " in parts.get(name, "")]
    notes += [words["several"].format(name=name) for name in several]
    if several or any(one.rule == STRANGE for one in verdict.reasons):
        return replace(verdict, notes=tuple(notes))
    sought = _named(wanted, view, tables)
    there = Given(
        {name: version for name, version in parts.items() if ", " not in version},
        frozenset(one.name for one in view.all(Component)),
        present_makers(view),
    )
    ways, refused, cut = nearest(there, sought, tables, decide, language)
    for rule, names in refused.items():
        notes.append(words["refused" if rule else "undecided"].format(rule=rule, names=summed(names)))
    notes += [words["cut"]] if cut else []
    if not ways:
        wish = " ".join(filter(None, (*(f"{one.name}{one.specifier}" for one in sought), sought[0].model)))
        known = tables.releases.get(sought[0].name, ())
        newest = words["newest"].format(version=known[0].version) if known else ""
        notes.append(words["no way"].format(wish=wish) + newest)
    return replace(verdict, suggestions=tuple(ways), notes=tuple(notes))


def told(verdict: MatrixVerdict, view: Facts, tables: Tables) -> dict[str, str]:
    """What of a machine ways are made from: all parts, and the distributions that some row names, one device."""
    parts = dict(verdict.components)
    for name in tables.parts:
        versions = dict.fromkeys(one.version for one in parts_named(view, name))
        if name not in parts and versions:
            parts[name] = ", ".join(versions)
    for one in view.all(Package):
        if one.version and one.name not in parts and tables.knows(one.name):
            parts[one.name] = one.version
    if devices := view.devices():
        parts["gpu"] = devices[0].name or devices[0].architecture
    return parts


def _named(wanted: Sequence[Wanted], view: Facts, tables: Tables) -> list[Wanted]:
    """The wishes; where no engine is among them, and not a model alone is wished for, that which is there, too."""
    engines = [one.name for one in view.all(Engine)]
    there = engines or ([TORCH] if view.package(TORCH) else [])
    sought = [one for one in wanted if one.name or one.model]
    if not there and not sought:
        raise DiagError('nothing is wished for: name an engine or a model (--want "NAME>=1.2", --want model=NAME)')
    if not sought:
        return [Wanted(there[0])]
    alone = not any(one.name for one in sought) or any(one.name in {*tables.releases} - {TORCH} for one in sought)
    return sought if alone or not engines else [Wanted(engines[0], model=sought[0].model), *sought]
