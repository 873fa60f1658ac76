"""Reports as people pasted them, and the rules that answer them: a table by somebody who wrote no rule."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from held import LOADED

from diag import engine
from diag.capture import Held
from diag.finding import Finding
from diag.report import ranked
from diag.sources import Paste

FOLDER = Path(__file__).resolve().parents[1] / "reports"
ROWS: list[dict[str, Any]] = [
    one for one in yaml.safe_load((FOLDER / "accepted.yaml").read_text()) if not one.get("undecidable")
]
NEGATIVES = sorted((FOLDER / "negatives").glob("*.txt"))
FIRST, THREE, CALIBRATED = 0.90, 0.98, 0.95
"""Shares of the reports whose right answer comes first, within three, and first where its confidence is high."""


@cache
def answers(path: Path) -> list[Finding]:
    results = engine.examine(Paste("report", Held(path.read_text())).captures(()), LOADED).results
    return ranked(results, LOADED.checks)


def right(row: dict[str, Any]) -> list[bool]:
    return [one.check in row["accepted"] for one in answers(FOLDER / f"{row['id']}.txt")]


def test_the_table_names_rules_that_there_are():
    assert {id for row in ROWS for id in row["accepted"]} <= LOADED.checks.keys()
    assert len(ROWS) > 110


def test_the_right_answer_comes_first_mostly_and_within_three_nearly_always():
    first = [row["id"] for row in ROWS if not any(right(row)[:1])]
    three = [row["id"] for row in ROWS if not any(right(row)[:3])]
    assert len(first) <= (1 - FIRST) * len(ROWS), first
    assert len(three) <= (1 - THREE) * len(ROWS), three


def test_high_confidence_is_right():
    high = {
        row["id"]: right(row)[0]
        for row in ROWS
        if [a.confidence for a in answers(FOLDER / f"{row['id']}.txt")][:1] == ["high"]
    }
    assert sum(high.values()) >= CALIBRATED * len(high), [id for id, is_right in high.items() if not is_right]
    assert len(high) > 40


@pytest.mark.parametrize("path", NEGATIVES, ids=lambda path: path.stem)
def test_nothing_is_an_error_where_nothing_is_wrong(path):
    found = [one.check for one in answers(path)]
    assert [id for id in found if LOADED.checks[id].severity == "error"] == []
