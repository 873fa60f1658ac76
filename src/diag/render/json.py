"""The document itself."""

from __future__ import annotations

from msgspec import json

from diag.render import Look
from diag.report import Report
from diag.text import ORDER


def render(report: Report, look: Look) -> str:
    """The report as JSON, schema `diag/report/1`."""
    text = json.format(json.encode(report), indent=2).decode() + "\n"
    return ORDER.sub(r"\\u0023", text)
