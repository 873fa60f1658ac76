"""Write the catalogue of rules and probes from the rules themselves; `--check` compares it with the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from diag import plugins
from diag.check import Check
from diag.probe import Probe

PLACE = Path(__file__).parent / "catalogue.md"


def page() -> str:
    """The whole catalogue as Markdown."""
    loaded = plugins.load([plugins.bundled()])
    rules = sorted(loaded.checks.values(), key=lambda one: one.id)
    lines = ["# The rules and the probes", "", "Made by `make docs` from the files themselves.", "", "## Rules", ""]
    lines += ["| id | kind | severity | what it finds |", "|---|---|---|---|"]
    lines += [
        f"| [`{one.id}`](#{one.id.replace('/', '')}) | {one.kind} | {one.severity} | {_title(one)} |" for one in rules
    ]
    for rule in rules:
        lines += ["", *_rule(rule)]
    lines += ["", "## Probes", "", "| text | how it is taken | what it tells |", "|---|---|---|"]
    lines += [_probe(one) for one in sorted(loaded.probes.values(), key=lambda one: one.key)]
    return "\n".join(lines) + "\n"


def _title(rule: Check) -> str:
    return rule.words["en"]["title"]


def _rule(rule: Check) -> Iterator[str]:
    yield f"### {rule.id}"
    yield ""
    yield from (f"##{line}" if line.startswith("##") else line for line in rule.explanation.splitlines())
    for remedy in rule.remedies:
        yield ""
        yield f"Fix ({remedy.safety}): {remedy.title['en']}"
        yield from (f"\n    {command}" for command in remedy.commands)
    yield ""
    yield from (f"* {source}" for source in rule.sources)


def _probe(probe: Probe) -> str:
    taken = (
        " ".join(probe.command)
        or probe.path
        or (f"measuring child `{Path(probe.measure).stem}`" if probe.measure else "")
    )
    pasted = "recognised in a paste" if probe.recognise else ""
    how = ", ".join(filter(None, (f"`{taken}`" if taken and "`" not in taken else taken, pasted))) or "asked for"
    return f"| {probe.key} | {how} | {', '.join(kind.__name__ for kind in probe.tells)} |"


def kept(made: str, place: Path) -> int:
    """Write a page, or with `--check` compare it with its file and say what to do: the exit code."""
    if "--check" not in sys.argv:
        place.write_text(made, encoding="utf-8")
        return 0
    if not place.exists() or place.read_text(encoding="utf-8") != made:
        print(f"docs/{place.name} is behind what it is made from: run make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(kept(page(), PLACE))
