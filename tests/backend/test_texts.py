"""What is read from the dispatcher's texts of several releases of torch, as they were saved, is the same in each.

The texts are those of `dispatched.py`, printed by torch itself with the device of this folder; `make full` asks these
releases again, live.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TEXTS = sorted((HERE / "texts").glob("torch-*.txt"))
OPERATORS = runpy.run_path(str(HERE.parents[1] / "src/diag/measure/operators.py"))
PLACED = {
    "native": "native",
    "hidden_copy": "native",
    "hidden_raw": "native",
    "fallback": "fallback",
    "missing": "missing",
    "everywhere": "backend-fallback",
    "python": "python",
    "composite": "composite",
}


@cache
def blocks(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """The table and the registrations of each operator in each place."""
    told = {}
    for block in path.read_text().split("\n== ")[1:]:
        head, _, rest = block.partition("\n-- table\n")
        table, _, registered = rest.partition("-- registered\n")
        name, place = head.split()
        told[name, place] = table, registered
    return told


def cases() -> Iterator[tuple[Path, str, str]]:
    for path in TEXTS:
        yield from ((path, *case) for case in blocks(path))


def placed(path: Path, name: str, place: str, key: str = "PrivateUse1") -> dict[str, str]:
    table, registered = blocks(path)[name, place]
    told: dict[str, str] = OPERATORS["placed"](key, table, lambda: registered)
    return told


def test_there_are_texts_of_several_releases() -> None:
    assert [path.stem for path in TEXTS] == ["torch-2.13.0+cpu", "torch-2.5.1", "torch-2.9.1+cpu"]
    assert {place for _, _, place in cases()} == set(PLACED)


@pytest.mark.parametrize(("path", "name", "place"), list(cases()), ids=lambda one: getattr(one, "stem", str(one)))
def test_each_place_is_read(path: Path, name: str, place: str) -> None:
    assert placed(path, name, place)["placement"] == PLACED[place]


@pytest.mark.parametrize("path", TEXTS, ids=lambda one: one.stem)
def test_the_owner_is_the_file_that_registered_it(path: Path) -> None:
    assert placed(path, "aten::exponential_", "fallback")["owner"].rpartition(":")[0].endswith("csrc/fallback.cpp")
    assert placed(path, "aten::exponential_", "native", "CPU")["placement"] == "native"


@pytest.mark.parametrize("path", TEXTS, ids=lambda one: one.stem)
def test_a_text_that_is_none_of_these_accuses_nobody(path: Path) -> None:
    table, registered = blocks(path)["aten::exponential_", "fallback"]
    shouted = table.replace("[kernel]", "<kernel>")
    assert OPERATORS["placed"]("PrivateUse1", shouted, lambda: registered)["placement"] == "missing"
    assert OPERATORS["placed"]("PrivateUse1", table, lambda: "")["placement"] == "native"
