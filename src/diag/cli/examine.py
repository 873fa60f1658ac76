"""The commands that examine: sources to captures, captures to a report, the report to where it is wanted."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path

from msgspec import DecodeError, convert, json, to_builtins

from diag import __version__, bundle, engine, plugins, sources, summary
from diag.capture import Capture
from diag.check import Check
from diag.cli import progress
from diag.cli.options import Live, Output, Scope
from diag.cli.place import config_folder, redact_key, target_python
from diag.engine import Examination
from diag.errors import DiagError
from diag.facts import Accelerator, Host, LaunchArguments
from diag.learn import learn
from diag.output import written
from diag.plugins import Loaded, Shelf
from diag.probe import COSTS
from diag.redact import Known, Redactor
from diag.render import Look, form_of, formats, render
from diag.render.words import WORDS
from diag.report import Judged, Report, Source, assemble
from diag.sources import LiveHost

STOPPED = "stopped"


def run(command: str, asked: Sequence[str], *, output: Output, scope: Scope, live: Live, launch: str | None) -> int:
    """Examine and report; the exit code says what was found."""
    deadline = time.monotonic() + scope.timeout if scope.timeout else None
    opened: list[sources.Source] = open_sources(asked, deadline) if asked else [live_host(live, deadline)]
    loaded, examination = examined(opened, output, scope, launch)
    broken = (*examination.broken, *(lost for one in opened if isinstance(one, bundle.Bundle) for lost in one.broken))
    report = assemble(
        Judged(
            facts=examination.facts,
            results=examination.results,
            captures=examination.captures,
            broken=broken,
            incomplete=unanswered(opened, examination, WORDS[output.lang]),
            machine=summary.machine(examination.facts, output.lang),
            seconds=examination.seconds,
        ),
        loaded.checks,
        language=output.lang,
        tool=__version__,
        command=command,
        source=Source(
            kind=opened[0].kind, name=", ".join(one.name for one in opened if one.kind != "asked"), taken_at=now()
        ),
    )
    if not output.no_redact and not all(isinstance(one, bundle.Bundle) and one.redacted for one in opened):
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
        loaded = shelf.loaded()
        gc.enable()
        chosen = selected(loaded.checks.values(), scope)
        if launch is not None:
            opened.append(planned(launch, loaded))
            streams.append(opened[-1].captures(()))
        with progress.shown("examining this host" if opened[0].kind == "live" else "reading"):
            return loaded, engine.examine(chain.from_iterable(streams), loaded, chosen)


@contextmanager
def ahead(captures: Iterable[Capture]) -> Iterator[Iterable[Capture]]:
    """The captures, the first taken at once, which starts a host's commands; none is left running in the end."""
    rest = iter(captures)
    try:
        first = next(rest, None)
        yield rest if first is None else chain((first,), rest)
    finally:
        if isinstance(rest, Generator):
            rest.close()


def planned(launch: str, loaded: Loaded) -> sources.Asked:
    """The launch line that is asked about; one that no probe understands is a mistake."""
    asked = sources.Asked({"launch": launch})
    if learn(asked.captures(()), loaded).facts.first(LaunchArguments) is None:
        raise DiagError(f"--launch {launch!r}: no engine is started in it")
    return asked


def open_roots(scope: Scope) -> Shelf:
    """The roots in order: bundled, installed, the user's, and those named."""
    named = [Path(one) for one in os.environ.get("DIAG_ROOTS", "").split(os.pathsep) if one]
    for folder in (*named, *scope.root):
        if not folder.is_dir():
            raise DiagError(f"root {folder} is not a folder")
    return Shelf(plugins.roots((*named, *scope.root), config_folder()))


def load(scope: Scope) -> Loaded:
    """Everything the roots hold."""
    return open_roots(scope).loaded()


def check_output(output: Output, templates: Mapping[str, Path]) -> None:
    """Refuse a form or a place for the report before anything is measured."""
    if output.form not in formats(templates):
        raise DiagError(f"no format {output.form!r}; there are {', '.join(formats(templates))}")
    for path in output.report:
        form_of(path)
        if not path.parent.is_dir():
            raise DiagError(f"cannot write {path}: {path.parent} is not a folder")


def selected(checks: Iterable[Check], scope: Scope) -> list[Check]:
    """The checks whose ids the user wants; a prefix that fits none is a mistake."""
    checks = list(checks)
    for prefix in (*scope.select, *scope.ignore):
        if not any(check.id.startswith(prefix) for check in checks):
            raise DiagError(f"no check begins with {prefix!r} (diag checks list)")
    wanted = scope.select or ("",)
    return [one for one in checks if one.id.startswith(wanted) and not one.id.startswith(scope.ignore)]


def open_sources(asked: Sequence[str], deadline: float | None) -> list[sources.Source]:
    """The sources named; where there are several, each bundle is a machine of its own."""
    names = [Path(one).name for one in asked]
    return [
        _opened(one, one if names.count(name) > 1 else name, len(asked) > 1, deadline)
        for one, name in zip(asked, names, strict=True)
    ]


def _opened(asked: str, name: str, several: bool, deadline: float | None) -> sources.Source:
    path = Path(asked)
    if asked != "-" and sources.is_archive(path):
        return bundle.read(path, scope=name if several else "")
    return sources.paste(path, name, deadline) if asked != "-" else sources.piped(sys.stdin.buffer, deadline)


def live_host(live: Live, deadline: float | None) -> LiveHost:
    """This host, as far as the level allows to look at it."""
    if live.quick and live.deep:
        raise DiagError("--quick and --deep exclude each other")
    costs = COSTS[:1] if live.quick else COSTS
    return LiveHost(target_python(live.python), sys.executable, costs, deadline, now)


def unanswered(opened: Sequence[sources.Source], examination: Examination, words: Mapping[str, str]) -> list[str]:
    """Why the question could not be answered, empty where it was."""
    reasons = []
    stopped = [one.key for one in examination.captures if one.error.startswith(STOPPED)]
    stopped += [one.name for one in opened if isinstance(one, sources.Paste) and one.stopped]
    if stopped:
        reasons.append(words["time bound"].format(stopped=", ".join(stopped)))
    if opened[0].kind in ("live", "bundle") and examination.facts.first(Accelerator) is None:
        reasons.append(words["no accelerator"])
    if not any(result.status in ("pass", "fail") for result in examination.results):
        reasons.append(words["nothing judged"])
    return reasons


def redacted(report: Report, known: Known) -> Report:
    """The report as it may leave."""
    return convert(Redactor(redact_key(), known).value(to_builtins(report)), Report)


def rerender(document: Path, output: Output) -> int:
    """Read a report and give it another form."""
    try:
        report = json.decode(document.read_bytes(), type=Report)
    except (DecodeError, UnicodeDecodeError) as error:
        raise DiagError(f"{document} is not a report: {error}") from error
    return emit(report, output, load(Scope()))


def emit(report: Report, output: Output, loaded: Loaded) -> int:
    """Write to stdout and to the named files; the exit code of the report."""
    if not output.quiet:
        write(render(report, output.form, loaded.templates, look()))
    for path in output.report:
        with written(path) as file:
            file.write(render(report, form_of(path), loaded.templates).encode("utf-8", "backslashreplace"))
    return report.exit_code(output.fail_on)


def write(text: str) -> None:
    """Text to stdout, in characters that stdout can take."""
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def look() -> Look:
    """How stdout looks: columns and colours on a terminal, neither into a pipe."""
    if not sys.stdout.isatty():
        return Look()
    return Look(width=shutil.get_terminal_size().columns, colour="NO_COLOR" not in os.environ)


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
