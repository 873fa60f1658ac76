"""Where a report goes: stdout and the named files, in the form asked for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from msgspec import DecodeError, json

from diag.cli.opening import load
from diag.cli.options import Beside, Bounds, Output
from diag.errors import DiagError
from diag.output import written
from diag.render import Look, form_of, formats, render
from diag.report import Report
from diag.text import decode, inert, plain

DOCUMENT_CAP = 256 * 2**20
"""Bytes of the largest report that is read."""


def check_output(output: Output, templates: Mapping[str, Path], read: Sequence[Path] = ()) -> None:
    """Refuse a form or a place for the report before anything is measured; `read` are files that must stay."""
    if output.form not in formats(templates):
        raise DiagError(f"no format {output.form!r}; there are {', '.join(formats(templates))}")
    for number, path in enumerate(output.report):
        form_of(path)
        if not path.parent.is_dir():
            raise DiagError(f"cannot write {path}: {path.parent} is not a folder")
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise DiagError(f"cannot write {path}: it is a folder, or not writable")
        if path in output.report[:number] or any(path.exists() and one.exists() and path.samefile(one) for one in read):
            raise DiagError(f"cannot write {path}: it is named twice")


def is_json(output: Output) -> bool:
    """Whether the document itself is asked for, somewhere."""
    return "json" in (output.form, *map(form_of, output.report))


def emit(report: Report, output: Output, templates: Mapping[str, Path]) -> int:
    """Write to stdout (stderr, where stdout is another's) and to the named files; the exit code of the report."""
    if not output.quiet:
        stream = sys.stderr if isinstance(output, Beside) else sys.stdout
        shown = look(stream)
        write(render(report, output.form, templates, shown), stream, painted=shown.colour)
    for path in output.report:
        with written(path) as file:
            file.write(render(report, form_of(path), templates).encode("utf-8", "backslashreplace"))
    return report.exit_code(output.fail_on)


def write(text: str, stream: TextIO | None = None, *, painted: bool = False) -> None:
    """Text to a stream, stdout without one, in characters that it can take; but for colours, nothing it would obey."""
    stream = stream or sys.stdout
    encoding = stream.encoding or "ascii"
    text = text if painted else inert(plain(text).replace("\r", ""))
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DiagError(f"stdout: {error.strerror or error}") from error


def look(stream: TextIO) -> Look:
    """How a stream looks: columns and colours on a terminal, neither into a pipe."""
    if not stream.isatty():
        return Look()
    return Look(width=shutil.get_terminal_size().columns, colour="NO_COLOR" not in os.environ)


def rerender(document: Path, output: Output) -> int:
    """Read a report and give it another form."""
    templates = load(Bounds()).templates
    check_output(output, templates, [document])
    with document.open("rb") as file:
        raw = file.read(DOCUMENT_CAP + 1)
    if len(raw) > DOCUMENT_CAP:
        raise DiagError(f"{document} is too long for a report")
    try:
        report = json.decode(decode(raw), type=Report)
    except (DecodeError, UnicodeDecodeError) as error:
        raise DiagError(f"{document} is not a report: {error}") from error
    return emit(report, output, templates)
