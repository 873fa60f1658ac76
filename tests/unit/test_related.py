"""Two entries that name a cause for one text are related: one explains the other, or says that it is no cause."""

import os
from itertools import combinations
from pathlib import Path

import pytest
from told import LOADED, examined

CHECKS = LOADED.checks
REPORTS = sorted((Path(__file__).resolve().parents[1] / "reports").glob("*.txt"))
ALL = None if "DIAG_EXAMPLES" in os.environ else 1
"""How many of an entry's texts are tried."""
VECTORS = [(one.id, text) for one in CHECKS.values() if one.kind == "entry" for text in one.fires[:ALL]]
PARTS = 8


def explained(id: str) -> set[str]:
    """The findings that follow from one, and from those again."""
    found: set[str] = set()
    waiting = [id]
    while waiting:
        new = {one for one in CHECKS[waiting.pop()].explains if one in CHECKS} - found
        found |= new
        waiting += new
    return found


FOLLOWS = {id: explained(id) for id in CHECKS}


def unrelated(text: str) -> list[tuple[str, str]]:
    failed = sorted(one.check for one in examined(text).results if one.status == "fail")
    causes = [
        id
        for id in failed
        if CHECKS[id].kind == "entry" and CHECKS[id].severity == "error" and not CHECKS[id].consequence
    ]
    return [(a, b) for a, b in combinations(causes, 2) if b not in FOLLOWS[a] and a not in FOLLOWS[b]]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_causes_of_a_report_are_related(path: Path) -> None:
    assert unrelated(path.read_text()) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_causes_of_an_entrys_own_text_are_related(part: int) -> None:
    found = {id: pairs for id, text in VECTORS[part::PARTS] if (pairs := unrelated(text))}
    assert found == {}


def test_nothing_explains_itself() -> None:
    assert [id for id, found in FOLLOWS.items() if id in found] == []
