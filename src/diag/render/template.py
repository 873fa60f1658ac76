"""Reports from templates: what a root's `reports/` folder holds."""

from __future__ import annotations

from pathlib import Path

import jinja2

from diag.render.words import WORDS
from diag.report import Report


def render(report: Report, template: Path) -> str:
    """The report through one template; HTML is escaped, other formats bring their own `cell` and `code` filters."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=".html" in template.name,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(line=_line, fence=_fence)
    return environment.get_template(template.name).render(report=report, words=WORDS[report.language])


def _line(text: str) -> str:
    """Text of one line that Markdown takes literally."""
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#|~!" else sign for sign in flat)


def _fence(text: str) -> str:
    """Text as a code span that no backtick in it can end."""
    flat = " ".join(text.split())
    longest = max((len(run) for run in flat.replace("`", " ` ").split() if set(run) == {"`"}), default=0)
    ticks = "`" * (max(longest, _run(flat)) + 1)
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"{ticks}{flat}{ticks}"


def _run(text: str) -> int:
    longest = current = 0
    for sign in text:
        current = current + 1 if sign == "`" else 0
        longest = max(longest, current)
    return longest
