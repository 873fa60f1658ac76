"""The commands that examine: from sources to a report that may leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from itertools import chain
from pathlib import Path

from msgspec import Struct, convert, to_builtins

from diag import __version__, bundle, engine, plugins, sources, summary
from diag.cli import progress
from diag.cli.emit import check_output, emit
from diag.cli.opening import (
    ahead,
    deadline_of,
    live_host,
    now,
    open_roots,
    open_sources,
    planned,
    rules,
    selected,
    within,
)
from diag.cli.options import Bounds, Content, Live, Output
from diag.cli.place import redact_key
from diag.engine import Examination
from diag.errors import TimeUp
from diag.facts import Accelerator, Facts, Host, Python, Reference
from diag.finding import Broken
from diag.learn import key_of
from diag.plugins import Loaded
from diag.redact import NOTHING_KNOWN, Known, Redactor
from diag.render.words import WORDS
from diag.report import Judged, Report, Source, assemble
from diag.text import printable

STOPPED = "stopped"


class Question(Struct, frozen=True, kw_only=True):
    """What is asked: the command, its sources (this host where there are none), and what is about to be started."""

    command: str
    sources: tuple[str, ...] = ()
    launch: str | None = None


def run(asked: Question, *, output: Output, content: Content, bounds: Bounds, live: Live) -> int:
    """Examine and report; the exit code says what was found."""
    templates: Mapping[str, Path] = plugins.templates(plugins.bundled())
    try:
        # What foreign code prints must not stand in the document.
        with within(bounds.timeout), redirect_stdout(sys.stderr):
            opened = sources_of(asked, bounds, live)
            loaded, examination = examined(opened, output, bounds, asked)
            templates = loaded.templates
            report = reported(asked, opened, loaded, examination, content)
    except TimeUp:
        report = cut_short(asked, content)
    with within(bounds.timeout):
        return emit(report, output, templates)


def sources_of(asked: Question, bounds: Bounds, live: Live) -> list[sources.Source]:
    """What is examined: the sources named, or this host."""
    deadline = deadline_of(bounds)
    return open_sources(asked.sources, deadline) if asked.sources else [live_host(live, deadline)]


def reported(
    asked: Question, opened: list[sources.Source], loaded: Loaded, examination: Examination, content: Content
) -> Report:
    """The report of an examination, as it may leave."""
    judged = Judged(
        facts=examination.facts,
        results=examination.results,
        captures=examination.captures,
        broken=(*examination.broken, *_lost(opened)),
        incomplete=unanswered(opened, examination, WORDS[content.lang]),
        machine=summary.machine(examination.facts, content.lang),
        seconds=examination.seconds,
    )
    name = ", ".join(one.name for one in opened if one.kind != "asked")
    source = Source(kind=opened[0].kind, name=name, taken_at=now())
    report = assemble(
        judged, loaded.checks, language=content.lang, tool=__version__, command=asked.command, source=source
    )
    if content.no_redact:
        return report
    told = tuple(host.name for host in examination.facts.all(Host) if host.name)
    known = opened[0].known
    return redacted(report, Known(known.hosts + told, known.users, known.homes))


def cut_short(asked: Question, content: Content) -> Report:
    """The report of a run that was ended by its time bound before anything could be judged."""
    what = ", ".join(map(printable, asked.sources)) or "this host"
    judged = Judged(Facts(), (), incomplete=[WORDS[content.lang]["time bound"].format(stopped=what)])
    source = Source(kind="paste" if asked.sources else "live", name=what, taken_at=now())
    report = assemble(judged, {}, language=content.lang, tool=__version__, command=asked.command, source=source)
    return report if content.no_redact else redacted(report, NOTHING_KNOWN)


def _lost(opened: Sequence[sources.Source]) -> Iterator[Broken]:
    for one in opened:
        if isinstance(one, bundle.Bundle):
            yield from one.broken


def examined(
    opened: list[sources.Source], output: Output, bounds: Bounds, asked: Question
) -> tuple[Loaded, Examination]:
    """All that was loaded, and what it says of the sources; a host's commands run while the rules are still read."""
    shelf = open_roots(bounds)
    check_output(output, shelf.templates, list(map(Path, asked.sources)))
    with ExitStack() as begun:
        probes = tuple(shelf.probes.values())
        streams = [begun.enter_context(ahead(one.captures(probes))) for one in opened]
        loaded = rules(shelf)
        chosen = selected(loaded.checks.values(), bounds)
        if asked.launch is not None:
            opened.append(planned(asked.launch, loaded))
            streams.append(opened[-1].captures(()))
        with progress.shown("examining this host" if opened[0].kind == "live" else "reading"):
            return loaded, engine.examine(chain.from_iterable(streams), loaded, chosen)


def unanswered(opened: Sequence[sources.Source], examination: Examination, words: Mapping[str, str]) -> list[str]:
    """Why the question could not be answered, empty where it was."""
    reasons = []
    facts = examination.facts
    stopped = [key_of(one) for one in examination.captures if one.error.startswith(STOPPED)]
    stopped += [one.name for one in opened if isinstance(one, sources.Paste) and one.stopped]
    if stopped:
        reasons.append(words["time bound"].format(stopped=", ".join(stopped)))
    if lost := [one.where for one in _lost(opened)]:
        reasons.append(words["damaged"].format(lost=", ".join(lost[:5])))
    if opened[0].kind == "live" and facts.first(Python) is None:
        reasons.append(words["no interpreter"])
    if all(isinstance(fact, Reference) for fact in facts):
        return [*reasons, words["nothing known"]]
    without = [scope for scope in facts.scopes() if facts.within(scope).first(Accelerator) is None]
    if without:
        named = f" ({', '.join(without)})" if without != [""] else ""
        reasons.append(words["no accelerator"].format(scopes=named))
    if not any(result.status in ("pass", "fail") for result in examination.results):
        reasons.append(words["nothing judged"])
    return reasons


def redacted(report: Report, known: Known) -> Report:
    """The report as it may leave."""
    return convert(Redactor(redact_key(), known).value(to_builtins(report)), Report)
