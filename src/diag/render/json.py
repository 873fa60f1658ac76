"""The document itself."""

from __future__ import annotations

from diag.render import Look
from diag.report import Report


def render(report: Report, look: Look) -> str:
    """The report as JSON, schema `diag/report/1`."""
    return report.model_dump_json(by_alias=True, indent=2) + "\n"
