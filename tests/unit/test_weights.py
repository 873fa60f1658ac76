"""How many numbers a model has and what they weigh, from its config, against checkpoints and printed start-ups."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from test_memory import ROWS, computed
from test_pool import HERE, config, off

from diag.estimate.memory import GIB
from diag.estimate.model import Model
from diag.estimate.pool import Shares
from diag.estimate.quantized import Scheme, covers
from diag.estimate.weights import weights

CHECKPOINTS: list[dict[str, Any]] = yaml.safe_load((HERE / "weights.yaml").read_text())
PARTED = 0.012
"""What is left of a checkpoint whose parts are told by a list of exceptions."""


def counted(name: str, asked: str = "") -> Any:
    own = config(name)
    return weights(Model.of(own), own, asked)


@pytest.mark.parametrize("row", CHECKPOINTS, ids=lambda row: row["config"])
def test_numbers_and_bytes_are_those_of_the_checkpoint(row: dict[str, Any]) -> None:
    told = counted(row["config"])
    assert off(told.parameters, row["parameters"]) <= 0.008
    if "bytes" in row:
        assert off(told.total, row["bytes"]) <= PARTED


def test_all_checkpoints_together(said: list[str]) -> None:
    rows = [one for one in CHECKPOINTS if "bytes" in one]
    errors = sorted(off(counted(one["config"]).total, one["bytes"]) for one in rows)
    middle, high = errors[len(errors) // 2], errors[int(0.9 * len(errors))]
    said.append(f"bytes of {len(rows)} checkpoints from config.json: median {middle:.4%}, 90 % within {high:.3%}")
    assert (middle <= 0.0001, high <= 0.001) == (True, True)


def test_what_a_rank_loads_is_what_vllm_prints(said: list[str]) -> None:
    errors = {}
    for row in ROWS:
        case = computed(row)
        errors[row["id"]] = off(case.weights(case.launch.shares).bytes / GIB, row["printed"]["weights_gib"])
    found = sorted(errors.values())
    middle, high = found[len(found) // 2], found[int(0.9 * len(found))]
    worst = max(errors, key=lambda name: errors[name])
    said.append(f"weights of a rank, vLLM 0.19, {len(ROWS)} runs: median {middle:.2%}, 90 % within {high:.2%}")
    said.append(f"  the worst: {worst}, {errors[worst]:.2%}")
    assert (middle <= 0.005, high <= 0.02) == (True, True)


def test_heads_of_keys_are_never_divided_below_one() -> None:
    own = config("Qwen--Qwen2.5-7B-Instruct")
    model = Model.of(own)
    told = weights(model, own)
    assert told
    halves = [told.rank(model, Shares(ranks)) for ranks in (1, 2, 4, 8)]
    assert halves == sorted(halves, reverse=True)
    keys = 2 * model.hidden * model.head * model.layers * 2
    assert halves[2] / 2 < halves[3] < halves[2] / 2 + keys


def test_a_rank_with_attention_of_its_own_has_all_of_it() -> None:
    own = config("zai-org--GLM-5.2-FP8")
    model = Model.of(own)
    told = weights(model, own)
    assert told
    alone, shared = told.rank(model, Shares(8, replicas=8)), told.rank(model, Shares(8))
    assert 100 < alone / GIB < 103
    assert 86 < shared / GIB < 92


@pytest.mark.parametrize(
    ("stated", "each"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 1 + 4 / 128**2),
        ({"quant_method": "fp8"}, 1.0),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, 0.5 + 2.5 / 128),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, 0.5 + 2.5 / 64),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 0.5 + 1 / 16),
        ({"quant_method": "mxfp4"}, 0.5 + 1 / 32),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 0.5 + 1 / 64),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 1.0),
    ],
)
def test_bytes_of_a_quantized_weight(stated: dict[str, Any], each: float) -> None:
    scheme = Scheme.of({"quantization_config": stated})
    assert scheme
    assert scheme.each == pytest.approx(each)


@pytest.mark.parametrize(
    "stated", [{"quant_method": "of our own"}, {"quant_method": "gptq"}, {"quant_method": "modelopt"}, "fp8", [1]]
)
def test_an_unknown_way_of_quantizing_has_no_answer(stated: Any) -> None:
    own = {**config("Qwen--Qwen2.5-7B-Instruct"), "quantization_config": stated}
    assert Scheme.of(own) is None
    assert weights(Model.of(own), own) is None


@pytest.mark.parametrize(
    ("pattern", "name", "covered"),
    [
        ("lm_head", "lm_head", True),
        ("model.layers.0*", "model.layers.0.self_attn.q_proj", True),
        ("model.layers.1.*", "model.layers.11.mlp.experts", False),
        ("model.layers.*.self_attn", "model.layers.7.self_attn.o_proj", True),
        ("re:.*self_attn.*", "model.layers.7.self_attn.o_proj", True),
        ("re:(", "model.layers.7.self_attn.o_proj", False),
        ("model.layers.3", "model.layers.30.mlp.experts", False),
    ],
)
def test_what_a_pattern_of_modules_covers(pattern: str, name: str, covered: bool) -> None:
    assert covers(pattern, name) is covered
