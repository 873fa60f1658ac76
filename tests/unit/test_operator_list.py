"""The operators that engines' steps reach: the reference agrees with a trace, and the steps compute what they say."""

from __future__ import annotations

import json
import math
import runpy
import subprocess
import sys
import warnings
from collections import Counter
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from held import LOADED

from diag.facts import EngineOperator, EngineStep, Reference

TRACE = Path(__file__).with_name("leaf_trace.py")
PROGRAM = runpy.run_path(str(TRACE.parents[2] / "src/diag/measure/steps.py"))
STEPS, Sizes = PROGRAM["STEPS"], PROGRAM["Sizes"]
ROWS: tuple[Reference, ...] = (*LOADED.references, *(row for one in LOADED.later for row in one.rows()))
OPERATORS = {one.name: one for one in ROWS if isinstance(one, EngineOperator)}
NAMED = {one.step: one for one in ROWS if isinstance(one, EngineStep)}
FEW = Sizes(batch=20_000, vocabulary=6, top_k=3, prompt=4, output=3, logprobs=2)
DRAWS = ("exponential-draw", "seeded-exponential-draw", "multinomial-draw", "gumbel-draw")


def traced_with():
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:
        return ""


@cache
def leaves(name):
    """The leaves below an operator; one that came to itself would not end."""
    row = OPERATORS[name]
    return frozenset({name}) if not row.calls else frozenset().union(*map(leaves, row.calls))


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
    torch.manual_seed(0)
    return torch


@pytest.fixture(scope="module")
def chances(torch):
    return PROGRAM["rows"](torch, 1, FEW)[0].softmax(-1).tolist()


def done(torch, name, sizes=FEW):
    with torch.no_grad():
        return PROGRAM["prepared"](torch, name, "cpu", sizes)()


def test_each_step_is_named_with_its_engines():
    assert {name: step.part for name, step in STEPS.items()} == {name: one.part for name, one in NAMED.items()}
    assert [one.step for one in NAMED.values() if not one.engines or set(one.title) != {"en", "zh"}] == []


def test_composites_end_in_leaves_that_know_their_steps():
    assert {step for one in OPERATORS.values() for step in one.steps} == set(STEPS)
    for name, one in OPERATORS.items():
        below = [OPERATORS[leaf].steps for leaf in leaves(name)]
        assert [step for step in one.steps if not any(step in steps for steps in below)] == []
        assert bool(one.calls) != bool(one.shape)
        assert set(one.parts) == {STEPS[step].part for step in one.steps}


@pytest.mark.slow
@pytest.mark.skipif(not traced_with().startswith("2.13."), reason="the reference is that of torch 2.13")
def test_the_reference_is_what_a_trace_finds():
    command = (sys.executable, "-W", "ignore", str(TRACE))
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    told = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in one.told().items()}
        for one in OPERATORS.values()
    ]
    kept = [{key: value for key, value in one.items() if value and key not in ("source", "checked")} for one in told]
    assert kept == json.loads(found)


@pytest.mark.parametrize("name", STEPS)
def test_each_step_runs(torch, name):
    done(
        torch,
        name,
        Sizes(batch=6, vocabulary=64, prompt=9, output=5, top_k=8, context=12, hidden=32),
    )


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_distributed_as_the_probabilities(torch, chances, name):
    spread(Counter(done(torch, name).tolist()), chances)


def spread(drawn, chances):
    """Each token's share within five standard deviations of its chance."""
    total = sum(drawn.values())
    for token, chance in enumerate(chances):
        assert abs(drawn[token] / total - chance) < 5 * math.sqrt(chance * (1 - chance) / total) + 1 / total


def test_a_draw_from_hashes_is_distributed_as_the_probabilities(torch, chances):
    probabilities = PROGRAM["INPUTS"]["probabilities"](torch, FEW)
    hashes = torch.randint(0, 2**32, probabilities.shape)
    spread(Counter(STEPS["hashed-draw"].run(torch, probabilities, hashes).flatten().tolist()), chances)


def test_a_seed_draws_the_same_again(torch):
    first, second = (done(torch, "seeded-exponential-draw")[:2].tolist() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["sorted-draw", "top-k-draw"])
def test_filters_keep_the_likeliest_that_reach_p(torch, chances, name):
    order = sorted(range(len(chances)), key=lambda token: -chances[token])[: FEW.top_k]
    kept = set()
    for place, token in enumerate(order):
        if sum(chances[one] for one in order[:place]) <= 0.9 and chances[token] >= 0.05 * max(chances):
            kept.add(token)
    assert set(done(torch, name).tolist()) == kept


def test_top_k_and_top_p_leave_the_same_tokens_as_by_hand(torch):
    sizes = Sizes(batch=2, vocabulary=50, top_k=10)
    chances = PROGRAM["rows"](torch, 1, sizes)[0].softmax(-1).tolist()
    order = sorted(range(50), key=lambda token: -chances[token])[:10]
    whole, kept, reached = sum(chances[one] for one in order), [], 0.0
    for token in order:
        if not kept or reached < 0.9:
            kept.append(token)
        reached += chances[token] / whole
    finite = [row.isfinite().nonzero().flatten().tolist() for row in done(torch, "top-k-top-p", sizes)]
    assert finite == [sorted(kept)] * 2
    assert done(torch, "top-k", sizes).isfinite().sum(-1).tolist() == [10, 10]


def test_penalties_are_those_of_one_request_by_hand(torch):
    sizes = Sizes(batch=2, vocabulary=40, prompt=8, output=5)
    logits = PROGRAM["rows"](torch, 1, sizes)[0].tolist()
    prompt, output = ([place * 40 // count for place in range(count)] for count in (8, 5))
    wanted = []
    for token, logit in enumerate(logits):
        scaled = (logit / 1.1 if logit > 0 else logit * 1.1) if token in prompt + output else logit
        wanted.append(scaled - 1.1 * output.count(token) - 1.1 * (token in output))
    assert done(torch, "penalties", sizes)[0].tolist() == pytest.approx(wanted, rel=1e-5, abs=1e-5)


def test_draft_tokens_are_taken_up_to_the_first_that_differs(torch):
    target = torch.eye(4)[[3] * 6] * 0.9 + 0.025
    drafts = torch.tensor([3, 3, 3, 1, 0, 3], dtype=torch.int32)
    taken, _, _ = STEPS["draft-acceptance"].run(torch, target, target, drafts, torch.tensor([2, 2, 2]))
    assert taken.tolist() == [[3, 3, -1], [3, 3, -1], [3, -1, -1]]
