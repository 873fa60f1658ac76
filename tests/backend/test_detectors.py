"""What the three detectors find on a device of which each operator's place is known, in numbers.

Places are dealt by chance. A detector answers for the operators that it reached; what it cannot see it must not claim:
the table is blind to kernels that copy by themselves, the tree to copies past the dispatcher.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hostbuild import compiler

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / "src/diag/measure/operators.py"
SEEDS = range(10) if "DIAG_EXAMPLES" in os.environ else range(1)
SMALL = {
    "batch": 4,
    "vocabulary": 512,
    "prompt": 8,
    "output": 4,
    "context": 16,
    "hidden": 64,
    "heads": 4,
    "kv_heads": 2,
}
SMALL |= {"head": 16, "feed_forward": 96, "top_k": 8, "logprobs": 5}
FEW, SHAPES = ("fallback", "missing"), ("fallback", "missing", "hidden_copy")
ALL = (*SHAPES, "hidden_raw")
MANY = 240
"""Operators that are dealt places and called; arguments are known for more than half of them."""


class Told(NamedTuple):
    """How good answers are: operators that went over the CPU and were named, were not, and that were named wrongly."""

    found: set[str]
    missed: set[str]
    wrong: set[str]
    judged: int

    @property
    def precision(self) -> float:
        return len(self.found) / max(1, len(self.found) + len(self.wrong))

    @property
    def recall(self) -> float:
        return len(self.found) / max(1, len(self.found) + len(self.missed))

    def __str__(self) -> str:
        there = len(self.found) + len(self.missed)
        figures = f"precision {self.precision:.3f}, recall {self.recall:.3f}"
        return f"{self.judged} operators, {there} over the CPU: {figures}"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The device, built or found; a compiler that refuses the sources is a failure and not a reason to skip."""
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, timeout=60).returncode:
        pytest.skip("no torch")
    try:
        compiler()
    except LookupError as error:
        pytest.skip(str(error))
    subprocess.run([sys.executable, HERE / "hostbuild.py"], env=environment({}), check=True, timeout=300)


def environment(variables: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore", **variables}


def asked(request: dict[str, Any], **variables: str) -> dict[str, Any]:
    """What the program prints for a request."""
    run = [sys.executable, str(PROGRAM), json.dumps({"limit": 500, **request})]
    done = subprocess.run(run, env=environment(variables), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert "error" not in document, document
    return document


def detected(how: str, places: dict[str, str], **request: Any) -> dict[str, Any]:
    """What a detector says of the device with its switches in these places."""
    given = {"how": how, "device": "hostdev", "imports": ["hostdev"], **request}
    return asked(given, HOSTDEV_SWITCHES=json.dumps(places), HOSTDEV_EVERYWHERE="1")


@cache
def switches() -> tuple[str, ...]:
    code = "import json, hostdev; print(json.dumps(sorted(hostdev.switches())))"
    done = subprocess.run([sys.executable, "-c", code], env=environment({}), capture_output=True, text=True, check=True)
    return tuple(json.loads(done.stdout))


def dealt(seed: int, shapes: tuple[str, ...]) -> dict[str, str]:
    """A place for each operator: half of them stay on the device."""
    chance = random.Random(seed)
    return {name: chance.choice(shapes) if chance.random() < 0.5 else "native" for name in switches()}


def some(seed: int) -> list[str]:
    return random.Random(seed + 1000).sample(switches(), MANY)


def compared(answers: dict[str, bool], places: dict[str, str]) -> Told:
    """Answers against the truth, for the operators that have a switch."""
    known = {name: named for name, named in answers.items() if name in places}
    truth = {name for name in known if places[name] != "native"}
    named = {name for name, so in known.items() if so}
    return Told(truth & named, truth - named, named - truth, len(known))


def full(one: dict[str, Any]) -> str:
    return f"{one['name']}.{one['overload']}".rstrip(".") if one.get("overload") else str(one["name"])


def by_table(document: dict[str, Any]) -> dict[str, bool]:
    return {one["name"]: one["placement"] in ("fallback", "backend-fallback") for one in document["operators"]}


def by_tree(document: dict[str, Any]) -> dict[str, bool]:
    return {full(one): one["placement"] == "copies" for one in document["operators"]}


def by_launch(document: dict[str, Any]) -> dict[str, bool]:
    told: dict[str, bool] = {}
    for one in document["operators"]:
        if one["verdict"] != "unknown":
            told[one["name"]] = told.get(one["name"], False) or one["verdict"] == "grows"
    return told


@pytest.mark.parametrize("seed", SEEDS)
def test_the_table_tells_who_has_a_fallback(seed: int, said: list[str]) -> None:
    places = dealt(seed, FEW)
    told = compared(by_table(detected("static", places, operators=list(places))), places)
    said.append(f"static, seed {seed}: {told}")
    assert (told.missed, told.wrong) == (set(), set())
    assert told.judged > 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_tree_tells_who_copies(seed: int, said: list[str]) -> None:
    places = dealt(seed, SHAPES)
    alone = by_tree(detected("dynamic", places, operators=some(seed)))
    steps = by_tree(detected("dynamic", places, **SMALL))
    for which, answers in (("operators", alone), ("steps", steps)):
        told = compared(answers, places)
        said.append(f"dynamic, {which}, seed {seed}: {told}")
        assert (told.missed, told.wrong) == (set(), set()), which
    assert len(alone) > 100
    assert len(steps) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_all_together_tell_who_goes_over_the_cpu(seed: int, said: list[str]) -> None:
    places, names = dealt(seed, ALL), some(seed)
    launches = by_launch(detected("timing", places, operators=names, budget=30.0))
    table = by_table(detected("static", places, operators=names))
    tree = by_tree(detected("dynamic", places, operators=names))
    # What neither was called nor timed is not answered for.
    answers = {name: launches[name] or table[name] or tree.get(name, False) for name in launches}
    alone, told = compared(launches, places), compared(answers, places)
    said += [f"timing, seed {seed}: {alone}", f"together, seed {seed}: {told}"]
    assert told.judged > 100
    assert (told.precision >= 0.99, told.recall >= 0.99) == (True, True), told
