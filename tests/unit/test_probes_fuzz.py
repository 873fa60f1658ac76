"""No text makes a probe raise or slow: lines of real texts torn, doubled and mixed with hostile ones."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from told import CAPTURES, LOADED, examined, facts_of, reading

from diag.capture import Capture
from diag.probe import Probe
from diag.sources import Paste

EXAMPLES = int(os.environ.get("DIAG_EXAMPLES", "400"))
SOAK = "DIAG_EXAMPLES" in os.environ
WHOLE = EXAMPLES * 2 // 5
READERS = [probe for probe in LOADED.probes.values() if not probe.measure]
REAL = sorted({line for path in CAPTURES.rglob("*.txt") for line in path.read_text("utf-8").split("\n")})
OPENERS = sorted({literal for probe in READERS if probe.recognise for literal in probe.recognise.literals})
HOSTILE = [
    *("GPU 0\uff1aNVIDIA", "GPU \u0662: NVIDIA A10", "GPU 99999999999999999999: x", "| 0 ERR! Off | 0000:00:00.0 x |"),
    *(
        "PyTorch version:",
        "Is CUDA available: maybe",
        "CPU(s): \u00b2",
        "[pip3] ==",
        "[conda] a 1 b",
        "a==",
        "-e ",
        "x @ ",
    ),
    *("Filesystem Size blocks Mounted on", "Filesystem 1K-blocks Mounted on", "/dev 1 1 1 % /", "shm - - - - /dev/shm"),
    *("NVIDIA-SMI 1 Driver Version: x CUDA Version: 1.1", "MiB / MiB", "|/ 1MiB|", "Package Version", "# packages in"),
    *(
        "MemTotal: 9 kB",
        "NVRM version: Kernel Module",
        "\0",
        "\ud800",
        "\u2028",
        "\x1b[",
        "(found version 1)",
        "vllm serve '",
    ),
]


@cache
def own_lines() -> dict[str, list[str]]:
    """The lines of the texts that each probe tells something of."""
    kept: dict[str, set[str]] = {}
    for path in CAPTURES.rglob("*.txt"):
        text = path.read_text("utf-8")
        for key in reading(text):
            kept.setdefault(key, set()).update(text.split("\n"))
    return {key: sorted(lines) for key, lines in kept.items()}


any_line = st.one_of(st.sampled_from(REAL), st.sampled_from(OPENERS), st.sampled_from(HOSTILE), st.text(max_size=40))


def texts(line: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Lines, some torn and joined to others."""
    cut, end = st.integers(0, 9), st.integers(0, 99)
    torn = st.builds(lambda one, start, end, more: one[start:end] + more, line, cut, end, line)
    return st.lists(st.one_of(line, torn), max_size=40).map("\n".join)


def text_of(probe: Probe, dice: Random) -> str:
    """Mostly lines of its own texts, some torn: made from one seed, since drawing each part takes far longer."""
    own = own_lines().get(probe.key, REAL)
    openers = probe.recognise.literals if probe.recognise else ("",)

    def line() -> str:
        one = dice.choice(dice.choice((own, own, own, openers, REAL, HOSTILE, OPENERS)))
        return one[dice.randrange(10) : dice.randrange(100)] + line() if dice.random() < 0.3 else one

    return "\n".join(line() for _ in range(dice.randrange(40)))


each = pytest.mark.parametrize("probe", READERS, ids=lambda probe: probe.key)


def read(probe: Probe, text: str) -> None:
    for fact in probe.read(Capture.of(probe.key, text)):
        assert isinstance(fact, probe.tells) or type(fact).__name__ == "Unavailable"


@each
def test_no_text_makes_a_probe_raise(probe: Probe) -> None:
    dice = Random(probe.key)
    for _ in range(EXAMPLES):
        read(probe, text_of(probe, dice))


@settings(max_examples=WHOLE, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(text=texts(any_line))
def test_nor_the_whole_examination(text: str) -> None:
    found = examined(text)
    assert found.broken == ()
    assert [one.check for one in found.results if one.status == "crash"] == []


KEY = re.compile(r'"([A-Za-z_]{2,20})":')
ASKED = {"build", "devices", "trials", "versions", "libraries", "packages", "unseen", "error", "warnings"}
MEASURED = [probe for probe in LOADED.probes.values() if probe.measure and probe.recognise]
LEAVES = (None, True, False, 0, -1, 2**70, 1.5, float("inf"), "", "x", "0000:1a:00.0", "9.9.9")


@cache
def keys() -> list[str]:
    """The keys of the documents that were recorded, and those that are asked for."""
    lines = (line for probe in MEASURED for line in own_lines().get(probe.key, ()))
    return sorted({key for line in lines for key in KEY.findall(line)} | ASKED)


def value_of(dice: Random, depth: int) -> Any:
    """A value of a document: mostly what no child would print there."""
    kind = dice.randrange(4 if depth else 2)
    if kind == 2:
        return [value_of(dice, depth - 1) for _ in range(dice.randrange(3))]
    if kind == 3:
        return {dice.choice(keys()): value_of(dice, depth - 1) for _ in range(dice.randrange(4))}
    return dice.choice(LEAVES) if kind else dice.choice(keys())


@pytest.mark.parametrize("probe", MEASURED, ids=lambda probe: probe.key)
def test_nor_does_a_document_of_no_child(probe: Probe) -> None:
    assert probe.recognise
    dice = Random(probe.key)
    tag = json.loads(f"{{{probe.recognise.literals[0]}}}")
    for _ in range(EXAMPLES):
        document = json.dumps(tag | {key: value_of(dice, 3) for key in dice.sample(keys(), min(len(keys()), 12))})
        found = facts_of([Capture.of(probe.key, document, kind="measure", exit_code=0)])
        assert all(isinstance(fact.origin.line, int) for fact in found)


LONG: dict[str, Callable[[str, int], str]] = {
    "spaces": lambda opener, n: opener + " " * n + "x",
    "digits": lambda opener, n: opener + "1" * n,
    "words": lambda opener, n: opener + " a" * (n // 2),
    "bars": lambda opener, n: opener + "| 1 " * (n // 4),
    "colons": lambda opener, n: opener + ": (" * (n // 3),
    "itself": lambda opener, n: f"{opener} " * (n // 20),
    "in a name": lambda opener, n: "a" * n + opener,
    "blank before": lambda opener, n: " " * n + opener,
    "lines": lambda opener, n: f"{opener}\n" * (n // 4),
    "short lines": lambda opener, n: opener + "\nx" * n,
}


def seconds(probe: Probe, text: str) -> float:
    start = time.process_time()
    read(probe, text)
    return time.process_time() - start


def linear(probe: Probe, text: Callable[[int], str]) -> bool:
    """Whether reading looks linear in one of four tries: what is not never does, and a busy machine does not always."""
    for _ in range(4):
        large = seconds(probe, text(16_000))
        if large < 0.1 or large < 8 * seconds(probe, text(4_000)):
            return True
    return False


@each
def test_four_times_the_text_takes_no_more_than_eight_times_as_long(probe: Probe) -> None:
    openers = probe.recognise.literals if probe.recognise else ("",)
    for (shape, text), opener in product(LONG.items(), openers):
        assert linear(probe, partial(text, opener)), (shape, opener)


@pytest.mark.parametrize("shape", LONG)
def test_nor_does_it_to_find_them(shape: str) -> None:
    start = time.process_time()
    for opener in OPENERS[:: 1 if SOAK else 3]:
        facts_of(Paste("text", LONG[shape](opener, 6_000)).captures(()))
    assert time.process_time() - start < 60
