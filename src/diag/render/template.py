"""Reports from templates: what a root's `reports/` folder holds."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import jinja2

from diag.render.tables import tables
from diag.render.words import WORDS, follows, judged, remarks, repeated, versions, waiver
from diag.report import Report
from diag.text import plain

CALLING = re.compile(r"@\w|#\w|!\d|\$|://|\bwww\.|\bGH-\d|:[a-z][a-z_]+:", re.IGNORECASE)
"""What makes a word more than text: mentions, numbers of issues, addresses, formulas, little pictures."""
ADDRESS = re.compile(r"https?://[\w./:?=&%#~+@,()-]{1,500}")


def render(report: Report, template: Path) -> str:
    """The report through one template; HTML is escaped, other formats use the filters below."""
    words = WORDS[report.language]
    return _compiled(template).render(
        report=report,
        words=words,
        judged=judged(report),
        waiver=waiver,
        follows=follows,
        repeated=repeated,
        versions=versions(report),
        remarks=remarks,
        table="\n".join(tables(report, words)).strip("\n"),
    )


@cache
def _compiled(template: Path) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        autoescape=".html" in template.name,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(line=_line, source=_source, fence=_fence, fenced=_fenced, block=_block, flat=_flat)
    return environment.get_template(template.name)


def _line(text: str) -> str:
    """Text of one line that Markdown takes literally; a word that a forge makes more of is code."""
    return " ".join(_fence(word) if CALLING.search(word) else _literal(word) for word in plain(text).split())


def _literal(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#|~!&" else sign for sign in text)


def _source(text: str) -> str:
    """Where a rule was read: a link where it is an address."""
    return f"<{text}>" if ADDRESS.fullmatch(text) else _line(text)


def _block(text: str) -> str:
    """Lines of a block of code that is indented."""
    return "\n".join(f"    {line}" for line in plain(text).splitlines())


def _fenced(text: str) -> str:
    """Lines of a block of code between fences, which none of them can end; it may hold empty lines."""
    lines = plain(text).splitlines()
    fence = "`" * max(3, 1 + _ticks(text))
    return "\n".join([f"{fence}text", *lines, fence])


def _ticks(text: str) -> int:
    """The length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def _flat(text: str) -> str:
    """Text of one line within a block of code, which it cannot end."""
    return re.sub("`{3,}", "``", " ".join(plain(text).split()))


def _fence(text: str) -> str:
    """Text as a code span that no backtick in it can end."""
    flat = " ".join(plain(text).split())
    ticks = "`" * (_ticks(flat) + 1)
    return f"{ticks} {flat} {ticks}" if "`" in flat else f"{ticks}{flat}{ticks}" if flat else ""
