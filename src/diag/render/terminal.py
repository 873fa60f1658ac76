"""The report for a terminal: verdict, findings with evidence and fix, the machine, what was judged.

Into a pipe go plain lines of any length; on a terminal they are coloured and wrapped under their indent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from diag.facts import MatrixVerdict
from diag.render import Look
from diag.render.tables import tables
from diag.render.words import WORDS, counted, follows, judged, remarks, repeated, versions, waiver
from diag.report import Report, ReportedFinding
from diag.text import in_one_line

STYLES = {
    "pass": "bold green",
    "warn": "bold yellow",
    "fail": "bold red",
    "incomplete": "bold magenta",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "known-bad": "bold red",
    "verified": "bold green",
    "reported": "green",
    "metadata-conflict": "bold yellow",
    "allowed-by-metadata": "green",
    "unknown": "bold magenta",
    "command": "cyan",
    "faint": "dim",
}


class Row(NamedTuple):
    """One line: what it begins with, its text, the column its continuation begins at, and the styles of both."""

    head: str
    text: str
    style: str = ""
    text_style: str = ""
    wraps: bool = True


def render(report: Report, look: Look) -> str:
    """The report as lines."""
    rows = [Row(in_one_line(row.head), in_one_line(row.text), *row[2:]) for row in _rows(report)]
    if look.width or look.colour:
        return _painted(rows, look)
    return "".join(f"{row.head}{row.text}".rstrip() + "\n" for row in rows)


def _rows(report: Report) -> Iterator[Row]:
    words = WORDS[report.language]
    yield from _head(report, words)
    for reason in report.incomplete:
        yield Row(f"  {words['open']}: ", reason, STYLES["incomplete"])
    if report.untouched and report.command != "explain":
        yield Row(f"  {words['untouched']}: ", ", ".join(report.untouched), STYLES["faint"])
    if report.ignored:
        yield Row(f"  {words['ignored']}: ", ", ".join(report.ignored), STYLES["warning"])
    for finding in report.findings if report.command != "matrix suggest" else ():
        yield Row("", "")
        yield from _finding(finding, report)
    yield from _unexplained(report, words)
    for verdict in versions(report):
        yield Row("", "")
        yield from _versions(verdict, report, words)
    yield from (Row("", line, wraps=False) for line in tables(report, words))
    yield from _machine(report, words)
    yield Row("", "")
    yield from _defects(report, words)
    if report.command.startswith("matrix") and report.versions:
        return
    spent = f" ({sum(report.seconds.values()):.2f} s)"
    yield Row("", judged(report) + spent, text_style=STYLES["faint"])


def _defects(report: Report, words: dict[str, str]) -> Iterator[Row]:
    for result in report.results:
        if result.status == "crash":
            yield Row(f"{words['crashed']}: ", f"{result.id}: {result.reason}", STYLES["error"])
    for one in report.broken:
        yield Row(f"{words['broken']}: ", f"{one.where}: {one.error}", STYLES["warning"])


def _head(report: Report, words: dict[str, str]) -> Iterator[Row]:
    """The answer in one line: of a question about versions their verdict, or how many ways there are."""
    if not report.command.startswith("matrix") or not report.versions:
        text = f"{report.source.name}: {counted(report)}"
        yield Row(f"{words[report.verdict].upper()}  ", text, STYLES[report.verdict])
        return
    for one in report.versions:
        parts = ", ".join(f"{name} {version}" for name, version in one.components.items())
        answer, style = words[one.verdict], STYLES[one.verdict]
        if report.command == "matrix suggest":
            answer = words["ways"].format(count=len(one.suggestions)) if one.suggestions else words["no ways"]
            style = STYLES["pass" if one.suggestions else "fail"]
        yield Row(f"{answer.upper()}  ", parts, style)


def _finding(finding: ReportedFinding, report: Report) -> Iterator[Row]:
    words = WORDS[report.language]
    named = "" if finding.subject in finding.summary else finding.subject
    subject = " ".join(filter(None, (finding.scope, named)))
    head = f"{finding.rank}. {words[finding.severity]}: "
    yield Row(head, (f"[{subject}] " if subject else "") + finding.summary, STYLES[finding.severity], "bold")
    sure = f"{words['confidence']}: {words[finding.confidence]}"
    yield Row("   ", f"{finding.id} ({sure})", text_style=STYLES["faint"])
    for told in filter(None, (waiver(finding, report.language), follows(finding, report))):
        yield Row("   ", told, text_style=STYLES["warning"])
    yield Row(f"   {words['because']}: ", finding.cause)
    for one in finding.evidence:
        where = f"{one.capture}:{one.line}" if one.line else one.capture
        inferred = f" ({words['inferred']})" if one.strength == "inferred" else ""
        yield Row(f"   {words['evidence']}: ", f"{where}{inferred}: {one.quote or one.says}{repeated(one, words)}")
    for remedy in finding.remedies:
        yield Row(f"   {words['fix']}: ", f"{remedy.title} ({words[remedy.safety]})")
        for command in remedy.commands:
            yield from (Row("      ", line, text_style=STYLES["command"]) for line in command.splitlines())
        if remedy.verify:
            yield Row(f"      {words['verify']}: ", remedy.verify, text_style=STYLES["command"])


def _unexplained(report: Report, words: dict[str, str]) -> Iterator[Row]:
    """What a text consists of in which no cause was found."""
    rest = report.unexplained
    if rest is None or not rest.errors:
        return
    yield Row("", "")
    yield Row("", words["looks like errors"], text_style="bold")
    for one in rest.errors:
        yield Row("  ", f"{one.capture}:{one.line}: {one.quote}")
    yield Row("", words["templates"], text_style="bold")
    for one in rest.templates:
        yield Row(f"  {one.times}x ", f"{one.quote} ({one.capture}:{one.line})", STYLES["faint"])
    yield Row("", words["report it"], text_style=STYLES["faint"])


def _versions(verdict: MatrixVerdict, report: Report, words: dict[str, str]) -> Iterator[Row]:
    scope = f" ({verdict.origin.scope})" if verdict.origin.scope else ""
    yield Row("", f"{words['versions']}{scope}: {words[verdict.verdict]}", text_style=STYLES[verdict.verdict])
    for one in verdict.reasons:
        where = ", ".join(filter(None, (one.source, one.checked)))
        yield Row(f"  {words[one.verdict]}: ", one.says, STYLES[one.verdict])
        yield Row("     ", f"{one.rule}{f' ({where})' if where else ''}", text_style=STYLES["faint"])
    seeks = report.command == "matrix suggest"
    for note in remarks(verdict):
        yield Row(f"  {words['note']}: ", note, STYLES["warning"])
    if verdict.verdict in ("known-bad", "metadata-conflict") and not seeks:
        yield Row(f"  {words['way']}: ", words["try"], STYLES["faint"])
    for number, way in enumerate(verdict.suggestions, 1):
        yield Row(f"  {words['way']} {number}: ", f"{'; '.join(way.changes)} ({words[way.level]})", STYLES[way.level])
        if way.says:
            yield Row("     ", way.says, text_style=STYLES["faint"])
        for command in way.commands:
            yield from (Row("      ", line, text_style=STYLES["command"]) for line in command.splitlines())


def _machine(report: Report, words: dict[str, str]) -> Iterator[Row]:
    scopes = dict.fromkeys(row.scope for row in report.machine)
    width = max((_columns(row.label) for row in report.machine), default=0)
    for scope in scopes:
        yield Row("", "")
        yield Row("", words["machine"] + (f" ({scope})" if scope else ""), text_style="bold")
        for row in report.machine:
            if row.scope == scope:
                yield Row(f"  {row.label}{' ' * (width - _columns(row.label))}  ", row.value, STYLES["faint"])


def _columns(text: str) -> int:
    """Terminal columns of a label: East Asian characters take two."""
    return sum(2 if ord(sign) > 0x2E7F else 1 for sign in text)


def _painted(rows: list[Row], look: Look) -> str:
    import io

    from rich.console import Console
    from rich.text import Text

    sink = io.StringIO()
    width = look.width or 10_000
    console = Console(file=sink, width=width, force_terminal=look.colour, no_color=not look.colour, highlight=False)
    for row in rows:
        indent = min(_columns(row.head), width // 2)
        text = Text(row.text, row.text_style)
        lines = (text.wrap(console, max(20, width - indent)) if row.wraps else [text]) or [Text("")]
        for number, line in enumerate(lines):
            head = Text(row.head, row.style) if number == 0 else Text(" " * indent)
            line.rstrip()
            console.print(head + line, soft_wrap=True)
    return sink.getvalue()
