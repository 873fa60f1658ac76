"""The commands that examine: from sources to a report that may leave."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain

from msgspec import Struct, convert, to_builtins

from diag import __version__, bundle, engine, sources, summary
from diag.cli import progress
from diag.cli.emit import check_output, emit
from diag.cli.opening import ahead, live_host, now, open_roots, open_sources, planned, rules, selected
from diag.cli.options import Content, Live, Output, Scope
from diag.cli.place import redact_key
from diag.engine import Examination
from diag.facts import Accelerator, Host, Python
from diag.learn import key_of
from diag.plugins import Loaded
from diag.redact import Known, Redactor
from diag.render.words import WORDS
from diag.report import Judged, Report, Source, assemble

STOPPED = "stopped"


class Question(Struct, frozen=True, kw_only=True):
    """What is asked: the command, its sources (this host where there are none), and what is about to be started."""

    command: str
    sources: tuple[str, ...] = ()
    launch: str | None = None


def run(asked: Question, *, output: Output, content: Content, scope: Scope, live: Live) -> int:
    """Examine and report; the exit code says what was found."""
    deadline = time.monotonic() + scope.timeout if scope.timeout else None
    opened: list[sources.Source] = [live_host(live, deadline)]
    if asked.sources:
        opened = open_sources(asked.sources, deadline)
    loaded, examination = examined(opened, output, scope, asked.launch)
    broken = (*examination.broken, *(lost for one in opened if isinstance(one, bundle.Bundle) for lost in one.broken))
    report = assemble(
        Judged(
            facts=examination.facts,
            results=examination.results,
            captures=examination.captures,
            broken=broken,
            incomplete=unanswered(opened, examination, WORDS[content.lang]),
            machine=summary.machine(examination.facts, content.lang),
            seconds=examination.seconds,
        ),
        loaded.checks,
        language=content.lang,
        tool=__version__,
        command=asked.command,
        source=Source(
            kind=opened[0].kind, name=", ".join(one.name for one in opened if one.kind != "asked"), taken_at=now()
        ),
    )
    if not content.no_redact and not all(isinstance(one, bundle.Bundle) and one.redacted for one in opened):
        told = tuple(host.name for host in examination.facts.all(Host) if host.name)
        known = opened[0].known
        report = redacted(report, Known(known.hosts + told, known.users, known.homes))
    return emit(report, output, loaded)


def examined(
    opened: list[sources.Source], output: Output, scope: Scope, launch: str | None
) -> tuple[Loaded, Examination]:
    """All that was loaded, and what it says of the sources; a host's commands run while the rules are still read."""
    shelf = open_roots(scope)
    check_output(output, shelf.templates)
    with ExitStack() as begun:
        probes = tuple(shelf.probes.values())
        streams = [begun.enter_context(ahead(one.captures(probes))) for one in opened]
        loaded = rules(shelf)
        chosen = selected(loaded.checks.values(), scope)
        if launch is not None:
            opened.append(planned(launch, loaded))
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
    if opened[0].kind == "live" and facts.first(Python) is None:
        reasons.append(words["no interpreter"])
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
