"""The commands that examine: sources to captures, captures to a report, the report to where it is wanted."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path

from diag import __version__, bundle, engine, plugins, sources, summary
from diag.capture import Capture
from diag.check import Check
from diag.cli.options import Live, Output, Scope
from diag.cli.place import config_folder, redact_key, target_python
from diag.errors import DiagError
from diag.facts import Accelerator, Facts
from diag.finding import Result
from diag.plugins import Loaded
from diag.probe import COSTS
from diag.redact import Redactor
from diag.render import Look, form_of, formats, render
from diag.report import Judged, Report, ReportedBroken, Source, assemble
from diag.sources import LiveHost

STOPPED = "stopped"


def run(command: str, asked: list[str], *, output: Output, scope: Scope, live: Live, launch: str | None) -> int:
    """Examine and report; the exit code says what was found."""
    deadline = time.monotonic() + scope.timeout if scope.timeout else None
    loaded = load(scope)
    check_output(output, loaded)
    chosen = selected(loaded.checks.values(), scope)
    opened = open_sources(asked, live, deadline)
    if launch is not None:
        opened.append(sources.Asked({"launch": launch}))
    probes = tuple(loaded.probes.values())
    examination = engine.examine(chain.from_iterable(one.captures(probes) for one in opened), loaded, chosen)
    broken = (*examination.broken, *(lost for one in opened if isinstance(one, bundle.Bundle) for lost in one.broken))
    report = assemble(
        Judged(
            facts=examination.facts,
            results=examination.results,
            captures=examination.captures,
            broken=[ReportedBroken(where=one.where, error=one.error) for one in broken],
            incomplete=unanswered(opened[0].kind, examination.facts, examination.results, examination.captures),
            machine=summary.machine(examination.facts, output.lang.value),
            seconds=examination.seconds,
        ),
        loaded.checks,
        language=output.lang.value,
        tool=__version__,
        command=command,
        source=Source(kind=opened[0].kind, name=", ".join(one.name for one in opened[:1]), taken_at=now()),
    )
    if not output.no_redact:
        report = redacted(report, opened)
    return emit(report, output, loaded)


def load(scope: Scope) -> Loaded:
    """Everything the roots hold: bundled, installed, the user's, and those named."""
    named = [Path(one) for one in os.environ.get("DIAG_ROOTS", "").split(os.pathsep) if one]
    for folder in (*named, *(scope.root or ())):
        if not folder.is_dir():
            raise DiagError(f"root {folder} is not a folder")
    return plugins.load(plugins.roots((*named, *(scope.root or ())), config_folder()))


def check_output(output: Output, loaded: Loaded) -> None:
    """Refuse a form or a place for the report before anything is measured."""
    if output.form not in formats(loaded.templates):
        raise DiagError(f"no format {output.form!r}; there are {', '.join(formats(loaded.templates))}")
    for path in output.report or ():
        form_of(path)
        if not path.parent.is_dir():
            raise DiagError(f"cannot write {path}: {path.parent} is not a folder")


def selected(checks: Iterable[Check], scope: Scope) -> list[Check]:
    """The checks whose ids the user wants; a prefix that fits none is a mistake."""
    checks = list(checks)
    for prefix in (*(scope.select or ()), *(scope.ignore or ())):
        if not any(check.id.startswith(prefix) for check in checks):
            raise DiagError(f"no check begins with {prefix!r} (diag checks list)")
    wanted = tuple(scope.select or ("",))
    return [
        one for one in checks if one.id.startswith(wanted) and not one.id.startswith(tuple(scope.ignore or ("\0",)))
    ]


def open_sources(asked: list[str], live: Live, deadline: float | None) -> list[sources.Source]:
    """The sources named, or this host where none is."""
    if not asked:
        return [live_host(live, deadline)]
    return [_opened(name) for name in asked]


def _opened(name: str) -> sources.Source:
    if name == "-":
        return sources.piped(sys.stdin.buffer)
    path = Path(name)
    return bundle.read(path) if sources.is_archive(path) else sources.paste(path)


def live_host(live: Live, deadline: float | None) -> LiveHost:
    """This host, as far as the level allows to look at it."""
    if live.quick and live.deep:
        raise DiagError("--quick and --deep exclude each other")
    costs = COSTS[:1] if live.quick else COSTS
    return LiveHost(target_python(live.python), sys.executable, costs, deadline, now)


def unanswered(kind: str, facts: Facts, results: Iterable[Result], captures: Iterable[Capture]) -> list[str]:
    """Why the question could not be answered, empty where it was."""
    reasons = []
    if stopped := [one.key for one in captures if one.error.startswith(STOPPED)]:
        reasons.append(f"the time bound was reached before {', '.join(stopped)} answered")
    if kind == "live" and facts.first(Accelerator) is None:
        reasons.append("no accelerator was seen, so whether this machine can serve a model on one was not judged")
    if not any(result.status in ("pass", "fail") for result in results):
        reasons.append("nothing in it could be judged by any check")
    return reasons


def redacted(report: Report, opened: Iterable[sources.Source]) -> Report:
    """The report as it may leave."""
    known = next(iter(opened)).known
    document = Redactor(redact_key(), known).value(report.model_dump(mode="json", by_alias=True))
    return Report.model_validate(document)


def rerender(document: Path, output: Output) -> int:
    """Read a report and give it another form."""
    try:
        report = Report.model_validate_json(document.read_bytes())
    except ValueError as error:
        raise DiagError(f"{document} is not a report: {str(error).splitlines()[0]}") from error
    return emit(report, output, load(Scope()))


def emit(report: Report, output: Output, loaded: Loaded) -> int:
    """Write the named reports, then stdout; the exit code of the report."""
    for path in output.report or ():
        path.write_text(render(report, form_of(path), loaded.templates), encoding="utf-8", errors="backslashreplace")
    if not output.quiet:
        write(render(report, output.form, loaded.templates, look()))
    return report.exit_code(output.fail_on.value)


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
