"""What the three detectors find on a device of which each operator's place is known, in numbers.

Places are dealt by chance. A detector answers for the operators that it reached; what it cannot see it must not claim:
the table is blind to kernels that copy by themselves, the tree to copies past the dispatcher.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hostbuild import compiler

HERE = Path(__file__).parent
PYTHON = shlex.split(os.environ.get("DIAG_TEST_PYTHON", "")) or [sys.executable]
"""The interpreter that has torch: `torches.py` names others."""
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
    if subprocess.run(
        [*PYTHON, "-c", "import torch"], env=environment({}), capture_output=True, timeout=120
    ).returncode:
        pytest.skip("no torch")
    try:
        compiler()
    except LookupError as error:
        pytest.skip(str(error))
    subprocess.run([*PYTHON, str(HERE / "hostbuild.py")], env=environment({}), check=True, timeout=300)


def environment(variables: dict[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("DIAG_TEST_PATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", **variables}


def asked(request: dict[str, Any], **variables: str) -> dict[str, Any]:
    """What the program prints for a request."""
    run = [*PYTHON, str(PROGRAM), json.dumps({"limit": 500, **request})]
    done = subprocess.run(run, env=environment(variables), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert "error" not in document, document
    return document


def detected(how: str, places: dict[str, str], **request: Any) -> dict[str, Any]:
    """What a detector says of the device with its switches in these places."""
    given = {"how": [how], "device": "hostdev", "imports": ["hostdev"], **request}
    # A slow link, so that tensors need not be large to take long: most of the time is theirs on the CPU.
    slow = {"HOSTDEV_LINK": "1000000000", "HOSTDEV_EVERYWHERE": "1"}
    return asked(given, HOSTDEV_SWITCHES=json.dumps(places), **slow)


@cache
def switches() -> tuple[str, ...]:
    code = "import json, hostdev; print(json.dumps(sorted(hostdev.switches())))"
    done = subprocess.run([*PYTHON, "-c", code], env=environment({}), capture_output=True, text=True, check=True)
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


@pytest.mark.slow
def test_a_device_that_has_all_kernels_raises_no_alarm() -> None:
    places, names = dict.fromkeys(switches(), "native"), some(3)
    assert not any(by_table(detected("static", places, operators=list(places))).values())
    for request in ({"operators": names}, SMALL):
        document = detected("dynamic", places, **request)
        assert [one for one in document["operators"] if one["placement"] == "copies"] == []
        assert len(document["operators"]) > 50
    timed = detected("timing", places, operators=names[:80], budget=20.0)
    assert [one for one in timed["operators"] if one["verdict"] == "grows"] == []
    assert timed["asynchronous"] is True
    assert len(by_launch(timed)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_without_an_accelerator_there_is_no_alarm(device: str) -> None:
    names = ["aten::exponential_", "aten::sort.values_stable", "aten::mm.out"]
    table = asked({"how": ["static"], "device": device})
    assert len(table["operators"]) > 1000
    assert not any(by_table(table).values())
    tree = asked({"how": ["dynamic"], "device": device, **SMALL})
    assert [one for one in tree["operators"] if one["placement"] != "native"] == []
    assert len(tree["steps"]) > 30
    launches = asked({"how": ["timing"], "device": device, "operators": names})
    assert {one["verdict"] for one in launches["operators"]} == {"unknown"}
    assert launches["asynchronous"] is False


DEATHS = {
    "HOSTDEV_SEGFAULT": "killed by SIGSEGV",
    "HOSTDEV_HANG": "nothing moved for 40 s",
    "HOSTDEV_ALLOCATE": "killed: it held more than 1536 MiB of memory",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", DEATHS)
def test_a_step_that_kills_costs_its_own_answer(fault: str) -> None:
    request = {"how": ["dynamic"], "device": "hostdev", "imports": ["hostdev"], "patience": 40, "memory": 1536 << 20}
    wanted = {"steps": ["greedy", "exponential-draw", "log-probabilities"]}
    switches = json.dumps({"aten::topk.values": "hidden_copy"})
    told = asked({**request, **wanted, **SMALL}, **{fault: "aten::exponential_", "HOSTDEV_SWITCHES": switches})
    steps = {one["step"]: one for one in told["steps"]}
    assert [one.get("error", "") for one in steps.values() if one["step"] != "exponential-draw"] == ["", ""]
    assert steps["exponential-draw"]["error"].startswith(DEATHS[fault])
    assert steps["exponential-draw"]["died"] is True
    assert [full(one) for one in told["operators"] if one["placement"] == "copies"] == ["aten::topk.values"]


@pytest.mark.slow
def test_an_operator_that_kills_costs_its_own_launches() -> None:
    names = ["aten::argmax.out", "aten::exponential_", "aten::cumsum.out"]
    request = {"how": ["timing"], "device": "hostdev", "imports": ["hostdev"], "operators": names}
    told = asked(request, HOSTDEV_SEGFAULT="aten::exponential_")["operators"]
    assert [one["error"] for one in told if one["name"] == "aten::exponential_"] == ["killed by SIGSEGV"] * 2
    assert [one["verdict"] for one in told if one["name"] != "aten::exponential_"] == ["stays", "stays"]


@pytest.mark.slow
def test_a_step_that_raises_names_its_operator() -> None:
    wanted = {"how": ["dynamic"], "device": "hostdev", "imports": ["hostdev"], "steps": ["seeded-exponential-draw"]}
    switches = json.dumps({"aten::exponential_": "fallback"})
    step = asked({**wanted, **SMALL}, HOSTDEV_SWITCHES=switches)["steps"][0]
    assert "Expected a 'cpu' device type for generator but found 'hostdev'" in step["error"]
    assert step["operator"] == "aten::exponential_"
    missing = asked({**wanted, **SMALL}, HOSTDEV_SWITCHES=json.dumps({"aten::exponential_": "missing"}))["steps"][0]
    assert missing["error"].startswith("NotImplementedError")
    assert missing["operator"] == "aten::exponential_"


@pytest.mark.slow
def test_the_cost_of_a_step_is_told() -> None:
    wanted = {"how": ["dynamic"], "device": "hostdev", "imports": ["hostdev"], "steps": ["exponential-draw"]}
    sizes = {**SMALL, "batch": 8, "vocabulary": 4096}
    switches = json.dumps({"aten::exponential_": "fallback"})
    told = asked({**wanted, **sizes}, HOSTDEV_SWITCHES=switches)
    row = next(one for one in told["operators"] if one["name"] == "aten::exponential_")
    size = 8 * 4096 * 4
    assert (row["shape"], row["dtype"], row["copying"]) == ([8, 4096], "float32", 1)
    assert (row["bytes_down"], row["bytes_up"], row["steps"]) == (size, size, ["exponential-draw"])
    step = told["steps"][0]
    assert 0 < step["seconds"] < 60
    assert 0 < step["host"]["aten::exponential_"] / 1e6 <= step["profiled_seconds"]
