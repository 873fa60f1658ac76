"""Write the table of faults and what diag makes of each, from the list that the tests run; `--check` compares it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Before this folder, in which this file has the name of the package.
sys.path.insert(0, str(ROOT / "tests"))

from catalogue import kept  # noqa: E402
from faults.fault import Fault  # noqa: E402
from faults.listed import FAULTS, GROUPS  # noqa: E402

PLACE = Path(__file__).parent / "faults.md"
INTRODUCTION = """\
# Faults

Made by `make docs` from the list in `tests/faults` that the tests run, each with the real program and a real process
that misbehaves. In each row the exit code, the words and the findings are what the test asserts; where a machine has
errors of its own (not one of the findings named here), 1 stands in the place of 4.

In every run, too: stdout is one whole document `diag/report/1`, or nothing and stderr one line (exit code 2); it ends
within seconds, with `--timeout` within the bound and what a death takes; no check crashes and no probe breaks; no
process is left, and no file but those named and the cache.
"""
ENDINGS = {"soak": "in `make soak` alone", "needs": "where there is {}"}


def page() -> str:
    """The whole page as Markdown."""
    lines = [INTRODUCTION, f"{len(FAULTS)} faults."]
    for title, group in GROUPS.items():
        lines += ["", f"## {title}", "", "| fault | exit code | what is said of it |", "|---|---|---|"]
        lines += [_row(fault) for fault in group]
    return "\n".join(lines) + "\n"


def _row(fault: Fault) -> str:
    said = fault.told().replace("|", "\\|").replace("$BOX/", "")
    return f"| {'; '.join((fault.name, *_where(fault)))} | {fault.exit} | {said} |"


def _where(fault: Fault) -> Iterator[str]:
    """Where a fault is tried, unless everywhere."""
    if fault.needs:
        yield ENDINGS["needs"].format(" and ".join(fault.needs))
    if fault.soak:
        yield ENDINGS["soak"]


if __name__ == "__main__":
    sys.exit(kept(page(), PLACE))
