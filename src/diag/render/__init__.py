"""Renderers: each gets one finished, redacted report and decides nothing but its looks.

A format is a module here with `render(report, look)`, or a template `report.<extension>.j2` in a root's `reports/`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from diag.errors import DiagError
from diag.report import Report

MODULES = {"terminal": "diag.render.terminal", "json": "diag.render.json", "nccl-tests": "diag.render.nccl_tests"}
TEMPLATES = {"markdown": "report.md.j2", "issue": "issue.md.j2"}
EXTENSIONS = {".json": "json", ".md": "markdown"}


@dataclass(frozen=True)
class Look:
    """How the place written to looks: columns (None = as wide as the text), and whether it has colours."""

    width: int | None = None
    colour: bool = False


def render(report: Report, form: str, templates: Mapping[str, Path], look: Look = Look()) -> str:
    """The report in a format, as text."""
    text: str
    if form in MODULES:
        text = importlib.import_module(MODULES[form]).render(report, look)
        return text
    if (name := TEMPLATES.get(form, "")) in templates:
        text = importlib.import_module("diag.render.template").render(report, templates[name])
        return text
    raise DiagError(f"no format {form!r}; there are {', '.join(formats(templates))}")


def formats(templates: Mapping[str, Path]) -> list[str]:
    """The names of the formats there are."""
    return [*MODULES, *(form for form, name in TEMPLATES.items() if name in templates)]


def form_of(path: Path) -> str:
    """The format that a file's extension asks for."""
    try:
        return EXTENSIONS[path.suffix]
    except KeyError:
        known = ", ".join(EXTENSIONS)
        raise DiagError(f"{path}: the extension of a report says its format, one of {known}") from None
