"""Write which real outputs the probes are tested with, from `tests/captures`; `--check` compares it with the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from catalogue import kept

from diag import engine, plugins
from diag.capture import Capture, InFile
from diag.facts import Platform

PLACE = Path(__file__).parent / "outputs.md"
CAPTURES = Path(__file__).resolve().parents[1] / "tests" / "captures"
INTRODUCTION = """\
# Real outputs

Made by `make docs` from the files `sources.yaml` in `tests/captures`, where each text stands with its source and all
that is to be told of it. A text may hold the outputs of several programs; it counts once for each.
"""


def sources() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each described text, with its path."""
    for listed in sorted(CAPTURES.rglob("sources.yaml")):
        for one in yaml.safe_load(listed.read_text("utf-8")):
            yield listed.parent / one["file"], one


def vendors(path: Path, loaded: plugins.Loaded) -> tuple[str, ...]:
    """The vendors whose accelerators a text tells of."""
    facts = engine.examine([Capture.of(path.name, InFile(lambda: path.open("rb")), kind="text")], loaded).facts
    return tuple(sorted({vendor for one in facts.all(Platform) for vendor in one.present}))


def page() -> str:
    """The whole page as Markdown."""
    loaded = plugins.load([plugins.bundled()])
    table: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    count = 0
    for path, one in sources():
        count += 1
        found = vendors(path, loaded) if "shows" in one else ()
        for key, generation in one.get("shows", {}).items():
            table.setdefault(key, []).append((str(generation), found))
    lines = [INTRODUCTION, f"{count} texts.", "", "| probe | outputs | generations | vendors |", "|---|---|---|---|"]
    for key, shown in sorted(table.items()):
        generations = sorted({generation for generation, _ in shown}, key=natural)
        told = sorted({vendor for _, found in shown for vendor in found})
        lines.append(f"| {key} | {len(shown)} | {', '.join(generations)} | {', '.join(told)} |")
    lines += [
        "",
        "## Not found",
        "",
        *(f"* {line}" for line in yaml.safe_load((CAPTURES / "not_found.yaml").read_text())),
    ]
    lines += ["", "## Probes that no real output is kept of", ""]
    lines += [f"* {key}" for key in sorted(set(loaded.probes) - set(table))]
    return "\n".join(lines) + "\n"


def natural(word: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within words by their value."""
    parts = "".join(one if one.isdigit() else f" {one} " for one in word).split()
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


if __name__ == "__main__":
    sys.exit(kept(page(), PLACE))
