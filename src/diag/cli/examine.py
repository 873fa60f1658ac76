"""The commands that examine: from sources to a report that may leave."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, structs, to_builtins

from diag import __version__, engine, plugins, sources, summary
from diag.capture import QUOTE_CAP
from diag.check import Check
from diag.cli import progress
from diag.cli.emit import check_output, emit, is_json
from diag.cli.opening import (
    ahead,
    asked_about,
    deadline_of,
    live_host,
    now,
    open_roots,
    open_sources,
    rules,
    selected,
    today,
    within,
)
from diag.cli.options import Bounds, Content, Live, Output
from diag.cli.place import redact_key
from diag.cli.settings import known_waivers, settings
from diag.cli.unanswered import ERROR, lost, stopped, unanswered, uncaused, unmeasured
from diag.engine import Examination
from diag.errors import TimeUp
from diag.facts import CollectiveWorld, Facts, Host, Text
from diag.finding import Waiver
from diag.matrix.verdict import verdicts
from diag.plugins import Loaded, Shelf
from diag.redact import NOTHING_KNOWN, Known, Redactor
from diag.render.words import WORDS
from diag.report import Judged, Report, Source, assemble
from diag.sources import Source as Opened
from diag.text import cut, plain, printable
from diag.unexplained import unexplained

OWN = frozenset(
    (
        *("schema", "tool", "command", "language", "verdict", "untouched", "ignored", "id", "kind", "severity"),
        *("confidence", "strength", "safety", "status", "source", "related", "fingerprint", "until", "ended"),
    )
)
"""Fields of a report whose words are diag's own, of closed sets: no name can stand in them."""
TITLES = (("results", "title"), ("findings", "title"))
"""The same of these: a title is filled from nothing."""
FREE = ("facts", "values")
"""Fields whose own keys are not the report's, whatever they are called."""


DOING = {"live": "examining this host", "run": ""}
"""What is said meanwhile; nothing where a command writes to the same terminal."""
EXPLAIN, RUN, COMM, DEVICE, OPS = "explain", "run", "comm", "device", "ops"
MEMORY, PROBE = "mem plan", "mem probe"
HOST = "cpu"
SUBJECTS = {COMM: "collectives/", DEVICE: "device/", OPS: "operators/", MEMORY: "memory/", PROBE: "memory/"}
"""Commands that measure, and how the rules begin that are about what they measure."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked: the command, its sources, those that are open already, and the texts asked about, by key.

    Without sources it is about this host, unless `here` is False. `wanted` answers of a module's source whether it is
    needed. With `sought` it is about accelerators, and what was measured between processors is no answer.
    """

    command: str
    sources: tuple[str, ...] = ()
    opened: tuple[Opened, ...] = ()
    texts: dict[str, str] = {}
    here: bool = True
    wanted: Callable[[bytes], bool] | None = None
    sought: bool = False


@dataclass(frozen=True)
class Examined:
    """What was opened and loaded, and what it says; `waivers` and `ignored` (prefixes of rules) as the user decided."""

    opened: Sequence[sources.Source]
    loaded: Loaded
    examination: Examination
    waivers: Sequence[Waiver] = ()
    ignored: Sequence[str] = ()


def run(asked: Question, *, output: Output, content: Content, bounds: Bounds, live: Live) -> int:
    """Examine and report; the exit code says what was found."""
    templates: Mapping[str, Path] = plugins.templates(plugins.bundled())
    with within(bounds.timeout):
        decided = settings()

    def opening(shelf: Shelf) -> None:
        check_output(output, shelf.templates, list(map(Path, asked.sources)))

    def choose(loaded: Loaded) -> list[Check]:
        known_waivers(decided.waive, loaded.checks)
        chosen = selected(loaded.checks.values(), bounds, decided)
        if asked.command in SUBJECTS and not (bounds.select or decided.select):
            return [one for one in chosen if concerns(one, SUBJECTS[asked.command])]
        return chosen

    try:
        # What foreign code prints must not stand in the document.
        with within(bounds.timeout), redirect_stdout(sys.stderr):
            found = examined(asked, bounds, live, choose=choose, opening=opening)
            templates = found.loaded.templates
            found = replace(found, waivers=decided.waive, ignored=(*bounds.ignore, *decided.ignore))
            report = reported(asked, found, content, digests=is_json(output))
    except TimeUp:
        report = cut_short(asked, content)
    with within(bounds.timeout):
        return emit(report, output, templates)


def examined(
    asked: Question,
    bounds: Bounds,
    live: Live,
    *,
    choose: Callable[[Loaded], list[Check]],
    opening: Callable[[Shelf], None] = lambda shelf: None,
) -> Examined:
    """The sources, judged by the rules chosen; a host's commands run while the rules are still read."""
    deadline = deadline_of(bounds)
    opened = [*asked.opened, *open_sources(asked.sources, deadline)]
    if not opened and asked.here:
        opened.append(live_host(live, deadline))
    shelf = open_roots(bounds, asked.wanted)
    opening(shelf)
    with ExitStack() as begun:
        probes = tuple(shelf.probes.values())
        streams = [begun.enter_context(ahead(one.captures(probes))) for one in opened]
        loaded = rules(shelf)
        chosen = choose(loaded)
        if asked.texts:
            opened.append(asked_about(asked.texts, loaded))
            streams.append(opened[-1].captures(()))
        with progress.shown(DOING.get(opened[0].kind, "reading")):
            return Examined(opened, loaded, engine.examine(chain.from_iterable(streams), loaded, chosen))


def reported(asked: Question, found: Examined, content: Content, *, digests: bool = True) -> Report:
    """The report of an examination, as it may leave."""
    examination, checks = found.examination, found.loaded.checks
    day = today()
    versions = verdicts(examination.facts, examination.results, checks, language=content.lang, today=day)
    words = WORDS[content.lang]
    gate = gate_of(content, known(found))
    rest = None
    if asked.command in (EXPLAIN, RUN):
        failed = [one.origin for one in examination.facts.all(Text) if ERROR in one.kinds]
        rest = None if caused(found) else unexplained(examination.captures, failed, gate.text if gate else str)
        incomplete = uncaused(found.opened, examination, rest, words)
    elif asked.command in SUBJECTS:
        incomplete = unmeasured(examination, checks, SUBJECTS[asked.command], words)
        if asked.sought and any(one.device == HOST for one in examination.facts.all(CollectiveWorld)):
            incomplete.append(words["between processes"])
    else:
        incomplete = unanswered(found.opened, examination, checks, words)
    judged = Judged(
        facts=examination.facts.adding(versions),
        results=examination.results,
        captures=examination.captures,
        broken=(*examination.broken, *lost(found.opened)),
        incomplete=incomplete,
        unexplained=rest,
        machine=summary.machine(examination.facts, content.lang),
        seconds=examination.seconds,
        waivers=found.waivers,
        ignored=found.ignored,
        today=day,
        digests=digests and not stopped(found.opened),
    )
    names = [one.name for one in found.opened if one.kind != "asked"] or [one.name for one in found.opened]
    source = Source(kind=found.opened[0].kind, name=", ".join(names), taken_at=now())
    report = assemble(judged, checks, language=content.lang, tool=__version__, command=asked.command, source=source)
    return leaving(report, gate)


def concerns(check: Check, subject: str) -> bool:
    """Whether a rule is about what a command measures, or about what explains a fault of it."""
    return any(one.startswith(subject) for one in (check.id, *check.explains))


def caused(found: Examined) -> bool:
    """Whether a finding of severity error names a cause, not only that something failed."""
    results = (one for one in found.examination.results if one.severity == "error" and one.findings)
    return any(not found.loaded.checks[one.check].consequence for one in results)


def known(found: Examined) -> Known:
    """What of the machines must not leave them by name: what the source knows, and the hosts that facts tell of."""
    told = tuple(host.name for host in found.examination.facts.all(Host) if host.name)
    own = found.opened[0].known
    return Known(own.hosts + told, own.users, own.homes)


def cut_short(asked: Question, content: Content) -> Report:
    """The report of a run that was ended by its time bound before anything could be judged."""
    what = ", ".join(map(printable, (*asked.sources, *(one.name for one in asked.opened)))) or "this host"
    judged = Judged(Facts(), (), incomplete=[WORDS[content.lang]["time bound"].format(stopped=what)])
    source = Source(kind="paste" if asked.sources else "live", name=what, taken_at=now())
    report = assemble(judged, {}, language=content.lang, tool=__version__, command=asked.command, source=source)
    return leaving(report, gate_of(content, NOTHING_KNOWN))


def gate_of(content: Content, known: Known) -> Redactor | None:
    """The exit gate, None where all is to leave as it was read."""
    return None if content.no_redact else Redactor(redact_key(), known)


def leaving(report: Report, gate: Redactor | None) -> Report:
    """The report as it may leave: behind the gate quotes are cut, and nothing hides or turns what is shown."""
    whole = to_builtins(report)
    gated = _owned(gate.value(_owned(whole, whole, _blank)), whole, _as_it_was) if gate else whole
    kept = convert(_cut(gated), Report)
    if report.unexplained and kept.unexplained:
        settled = structs.replace(kept.unexplained, templates=report.unexplained.templates)
        return structs.replace(kept, unexplained=settled)
    return kept


def _cut(value: Any, name: str = "") -> Any:
    """A document whose quotes are short, and whose texts consist of characters that are seen."""
    if isinstance(value, str):
        return cut(plain(value), QUOTE_CAP) if name == "quote" else plain(value)
    if isinstance(value, dict):
        return {key: _cut(one, key) for key, one in value.items()}
    return [_cut(one, name) for one in value] if isinstance(value, (list, tuple)) else value


def _is_own(name: str, parent: str) -> bool:
    return name in OWN or (parent, name) in TITLES


def _owned(value: Any, was: Any, own: Callable[[Any, Any], Any], name: str = "", parent: str = "") -> Any:
    """A document in which `own` says what stands for diag's own words; `was` is the same document at first.

    Those words are many and need not pass the gate, and come back as they were: a host may be called `error`, a
    severity is one.
    """
    if isinstance(value, dict) and name not in FREE:
        return {key: _owned(one, was[key], own, key, name) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_owned(one, before, own, name, parent) for one, before in zip(value, was, strict=True)]
    return own(value, was) if _is_own(name, parent) else value


def _blank(value: Any, was: Any) -> Any:
    return "" if isinstance(value, str) else value


def _as_it_was(value: Any, was: Any) -> Any:
    return was
