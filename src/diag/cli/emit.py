"""Where a report goes: stdout and the named files, in the form asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import DecodeError, json

from diag.cli.opening import load
from diag.cli.options import Output, Scope
from diag.errors import DiagError
from diag.output import written
from diag.plugins import Loaded
from diag.render import Look, form_of, formats, render
from diag.report import Report


def check_output(output: Output, templates: Mapping[str, Path]) -> None:
    """Refuse a form or a place for the report before anything is measured."""
    if output.form not in formats(templates):
        raise DiagError(f"no format {output.form!r}; there are {', '.join(formats(templates))}")
    for path in output.report:
        form_of(path)
        if not path.parent.is_dir():
            raise DiagError(f"cannot write {path}: {path.parent} is not a folder")


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


def rerender(document: Path, output: Output) -> int:
    """Read a report and give it another form."""
    try:
        report = json.decode(document.read_bytes(), type=Report)
    except (DecodeError, UnicodeDecodeError) as error:
        raise DiagError(f"{document} is not a report: {error}") from error
    return emit(report, output, load(Scope()))
