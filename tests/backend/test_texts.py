"""What is read from the dispatcher's texts of several releases of torch, as they were saved, is the same in each.

The texts are those of `dispatched.py`, printed by torch itself with the device of this folder; `make full` asks these
releases again, live.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "kb/reference/operators.yaml"
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
    "bare-missing": "missing",
    "bare-composite": "composite",
}
"""What is to be read of each place; those that are `bare` are torch's own answers, given before any device is there."""


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
        yield from ((path, *case) for case in blocks(path) if not case[1].startswith("bare-"))


def placed(path: Path, name: str, place: str, key: str = "PrivateUse1") -> dict[str, str]:
    table, registered = blocks(path)[name, place]
    told: dict[str, str] = OPERATORS["placed"](key, table, lambda: registered)
    return told


def test_there_are_texts_of_several_releases() -> None:
    assert [path.stem for path in TEXTS] == ["torch-2.13.0+cpu", "torch-2.5.1", "torch-2.9.1+cpu"]
    assert {place for path in TEXTS for _, place in blocks(path)} == set(PLACED)


@pytest.mark.parametrize(("path", "name", "place"), list(cases()), ids=lambda one: getattr(one, "stem", str(one)))
def test_each_place_is_read(path: Path, name: str, place: str) -> None:
    assert placed(path, name, place)["placement"] == PLACED[place]


@pytest.mark.parametrize("path", TEXTS, ids=lambda one: one.stem)
def test_the_owner_is_the_file_that_registered_it(path: Path) -> None:
    assert placed(path, "aten::exponential_", "fallback")["owner"].rpartition(":")[0].endswith("csrc/fallback.cpp")
    assert placed(path, "aten::exponential_", "native", "CPU")["placement"] == "native"


@pytest.mark.parametrize("path", TEXTS, ids=lambda one: one.stem)
def test_without_a_device_leaves_are_missing_and_all_else_is_made_of_them(path: Path) -> None:
    rows = yaml.safe_load(REFERENCE.read_text())["rows"]
    leaves = {f"{row['operator']}.{row.get('overload', '')}".rstrip("."): "calls" not in row for row in rows}
    bare = {name: place for name, place in blocks(path) if place.startswith("bare-")}
    assert bare == {name: "bare-missing" if leaf else "bare-composite" for name, leaf in leaves.items()}
    assert {name: placed(path, name, place)["placement"] for name, place in bare.items()} == {
        name: PLACED[place] for name, place in bare.items()
    }


class Saved(NamedTuple):
    """The part of torch that tells of one operator in one place, with a piece of its texts written otherwise."""

    path: Path
    name: str
    place: str
    written: tuple[str, str] = ("", "")

    def _dispatch_dump_table(self, name: str) -> str:
        return blocks(self.path)[name, self.place][0].replace(*self.written)

    def _dispatch_dump(self, name: str) -> str:
        return blocks(self.path)[name, self.place][1].replace(*self.written)

    def _dispatch_has_computed_kernel_for_dispatch_key(self, name: str, key: str) -> bool:
        return key == "CPU" or self.place != "missing"

    def told(self) -> str:
        (found,) = OPERATORS["placements"](self, "PrivateUse1", [self.name])
        placement: str = found["placement"]
        return placement


@pytest.mark.parametrize("path", TEXTS, ids=lambda one: one.stem)
@pytest.mark.parametrize(
    ("name", "place", "written"),
    [
        ("exponential_", "fallback", ("[kernel]", "<kernel>")),
        ("exponential_", "fallback", ("[kernel]", "[direct kernel]")),
        ("exponential_", "fallback", ("PrivateUse1: ", "PrivateUse1 = ")),
        ("exponential_", "fallback", ("(none)", "unknown")),
        ("exponential_", "fallback", (" :: ", " | ")),
        ("exponential_", "native", ("[ boxed ]", "(boxed)")),
        ("exponential_", "missing", ("Meta: ", "PrivateUse1: ")),
        ("topk.values", "everywhere", ("[backend fallback]", "[fallback of the backend]")),
        ("topk", "composite", ("[default backend kernel]", "[composite]")),
        ("softmax.int", "composite", ("CPU: ", "cpu: ")),
    ],
)
def test_a_text_that_is_none_of_these_is_noticed(path: Path, name: str, place: str, written: tuple[str, str]) -> None:
    saved = Saved(path, f"aten::{name}", place)
    assert saved.told() == PLACED[place]
    with pytest.raises(RuntimeError, match=r"what this torch's dispatcher writes of .* on \w+ cannot be read"):
        saved._replace(written=written).told()
