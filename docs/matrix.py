"""Write the page on the matrix: what it holds, ways found for real situations, what was gathered and left out."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from catalogue import kept

from diag import plugins
from diag.cli.matrix import Wish, asked
from diag.cli.suggest import with_ways
from diag.engine import examine
from diag.facts import KnownSet, MatrixVerdict
from diag.matrix.verdict import verdicts
from diag.sources import Asked
from diag.ways.nearest import rows
from diag.ways.wished import wishes

PLACE = Path(__file__).parent / "matrix.md"
GATHERED = Path(__file__).resolve().parents[1] / "tests/unit/known_bad.yaml"
TODAY = dt.date(2026, 11, 30)
LOADED = plugins.load([plugins.bundled()])
CHECKS = {one.id: one for one in LOADED.checks.values() if one.verdict}
TABLES = rows(LOADED)
SITUATIONS = (
    (
        "A driver of branch 535 on H100, and a wish for vLLM 0.20 or newer",
        ("vllm>=0.20",),
        "gpu=8xH100 driver=535.161.08",
    ),
    ("A V100", ("vllm",), "gpu=V100 driver=535.161.08"),
    ("An RTX 5090 with torch 2.6", (), "gpu=RTX5090 driver=570.124.06 torch==2.6.0+cu124"),
    ("A host with glibc 2.28 and Python 3.9", ("vllm",), "gpu=A100 driver=550.54.15 glibc=2.28 python=3.9"),
    ("A Kunlun P800 that is to run vLLM 0.15.1", ("vllm==0.15.1",), "gpu=P800"),
    ("A K100_AI that is to run Qwen3.8 in W8A8", ("model=Qwen3.8-W8A8",), "gpu=K100_AI"),
    ("vLLM 0.11 with transformers 5", (), "gpu=H100 driver=570.124.06 vllm==0.11.0 transformers==5.1.0"),
    ("An Ascend 910B3 that is to run vLLM 0.21", ("vllm==0.21.0",), "gpu=910B3"),
    ("SGLang 0.5.11 or newer with glibc 2.31", ("sglang>=0.5.11",), "gpu=H200 driver=580.95.05 glibc=2.31 python=3.10"),
    ("vLLM for a GTX 1080 Ti", ("vllm>=0.20",), "gpu=GTX1080Ti driver=580.95.05"),
)
INTRODUCTION = """\
# The version matrix

Made by `make docs` from `kb/matrix`, `kb/reference` and the commands' own code.

`diag matrix check` gives the first of these verdicts that applies:

| verdict | meaning |
|---|---|
| known-bad | a rule or a case says that it fails; on one reporter's word it warns, and never displaces a verified set |
| verified | a document has a result row for a set of these versions on this device |
| reported | somebody says that such a set runs |
| metadata-conflict | a release asks for another version, and no vendor's plug-in overrides that |
| allowed-by-metadata | all that is asked for is met, and the driver and the architecture fit |
| unknown | what decides is not known; never a failure |

The installed engine's own metadata comes before the table. Every reason names its rule, its source and the day on which
that was checked.
"""


def page() -> str:
    """The whole page as Markdown."""
    lines = [INTRODUCTION, *_holdings(), "", "## Ways to sets that work", ""]
    lines += ["`diag matrix suggest`, on the day of the newest data, in ten situations."]
    for title, wanted, words in SITUATIONS:
        lines += ["", f"### {title}", "", *_situation(wanted, words.split())]
    lines += ["", "## What was gathered and is not a rule", "", *_left_out()]
    return "\n".join(lines) + "\n"


def _holdings() -> Iterator[str]:
    """What there is, counted."""
    yield "| distribution | releases | from | to | checked |"
    yield "|---|---|---|---|---|"
    for name, releases in sorted(TABLES.releases.items()):
        checked = max(one.checked for one in releases)
        yield f"| {name} | {len(releases)} | {releases[-1].version} | {releases[0].version} | {checked} |"
    known = TABLES.of(KnownSet)
    bad = [one for one in CHECKS.values() if one.kind == "matrix"]
    yield ""
    verified = sum(one.level == "verified" for one in known)
    yield f"{len(known)} sets ran ({verified} verified); {len(bad)} rows of faults, {len(CHECKS) - len(bad)} checks."


def _situation(wanted: tuple[str, ...], words: list[str]) -> Iterator[str]:
    verdict = solved(wanted, words)
    want = "".join(f' --want "{one}"' for one in wanted)
    yield f"    diag matrix suggest{want} {' '.join(words)}"
    yield ""
    yield f"Given: {verdict.verdict}" + (f" ({verdict.deciding[0].says})." if verdict.deciding else ".")
    for number, way in enumerate(verdict.suggestions, 1):
        yield ""
        yield f"{number}. {'; '.join(way.changes)}: **{way.level}**"
        yield f"   ({way.says}; {way.source}, {way.checked})"
        if way.commands:
            yield ""
            yield from (f"       {line}" for command in way.commands for line in command.splitlines())
    if verdict.notes:
        yield ""
        yield from (f"* {note}" for note in verdict.notes)


def solved(wanted: tuple[str, ...], words: list[str]) -> MatrixVerdict:
    """What `diag matrix suggest` answers."""
    texts = asked(Wish(components=tuple(words))).texts
    found = examine(Asked(texts).captures(()), LOADED, CHECKS.values())
    verdict = next(verdicts(found.facts, found.results, CHECKS, language="en", today=TODAY))
    return with_ways(verdict, found.facts, wishes(wanted), TABLES, decide=_decide(), language="en")


def _decide():  # type: ignore[no-untyped-def]
    from diag.ways.nearest import judge

    return judge(LOADED, list(CHECKS.values()), language="en", today=TODAY)


def _left_out() -> Iterator[str]:
    """The rows of gathered reports that are no rule, and why; those that are one stand in the test beside it."""
    gathered = yaml.safe_load(GATHERED.read_text(encoding="utf-8"))
    told = [one for one in gathered if "rule" in one]
    yield f"Of {len(gathered)} reports of what fails that were gathered, {len(told)} are found by a rule. The others:"
    yield ""
    yield "| report | why not |"
    yield "|---|---|"
    for one in gathered:
        if "left" in one:
            yield f"| {one['row']} | {one['left']} |"


if __name__ == "__main__":
    sys.exit(kept(page(), PLACE))
