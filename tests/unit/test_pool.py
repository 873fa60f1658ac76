"""How many tokens a KV cache holds, and what a request takes of it, against what engines printed.

A printed size is rounded to a hundredth of a GiB: that much, and a block, is left beside the tenth of a percent.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from diag.estimate.model import Model
from diag.estimate.pool import Pool, Shares, Widths, indexed_bytes, pool, state_bytes, token_bytes

HERE = Path(__file__).parent / "memory"
GIB = 2**30
EXACT, ROUNDED = 0.001, 0.005
STAGED = 0.014
"""What is left where stages differ: the size printed is the first one's, the tokens are those of the smallest."""
BYTES = {"float32": 4}


@cache
def config(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / "configs" / f"{name}.json").read_text())
    return found


def printed() -> list[dict[str, Any]]:
    return yaml.safe_load((HERE / "printed.yaml").read_text())


def model(row: dict[str, Any]) -> Model:
    return Model.of(config(row["config"]))


def widths(flags: dict[str, Any]) -> Widths:
    eight = "fp8" in str(flags.get("kv_cache_dtype"))
    return Widths(cache=1 if eight else BYTES.get(str(flags.get("dtype")), 2))


def pooled(row: dict[str, Any]) -> Pool:
    shares = Shares(row["tp"], row["pp"], row.get("draft_layers", 0))
    states = 2 if row["flags"].get("prefix_caching") else 1
    return pool(model(row), int(row["printed"]["kv_gib"] * GIB), shares, widths(row["flags"]), states=states)


def tokens(row: dict[str, Any], cut: Pool) -> int:
    """As a release prints them: one group's up to 0.20, else those of requests of the full length."""
    length = row["flags"].get("max_model_len", 0)
    if not length or "linear" not in cut.groups or row["version"].startswith("0.18"):
        return cut.capacity
    return int(cut.concurrency(length, row["flags"].get("max_num_batched_tokens", 0)) * length)


def off(value: float, said: float) -> float:
    return abs(value / said - 1)


VLLM = [row for row in printed() if row["engine"] == "vllm"]
SGLANG = [row for row in printed() if row["engine"] == "sglang"]


@pytest.mark.parametrize("row", [one for one in VLLM if "kv_tokens" in one["printed"]], ids=lambda row: row["id"])
def test_tokens_are_those_that_vllm_prints(row: dict[str, Any]) -> None:
    cut = pooled(row)
    slack = ROUNDED / row["printed"]["kv_gib"] + 1 / cut.blocks
    exact = EXACT if row["pp"] == 1 else STAGED
    assert off(tokens(row, cut), row["printed"]["kv_tokens"]) <= exact + slack


@pytest.mark.parametrize("row", [one for one in VLLM if "gpu_blocks" in one["printed"]], ids=lambda row: row["id"])
def test_blocks_are_those_that_vllm_prints(row: dict[str, Any]) -> None:
    assert off(pooled(row).blocks, row["printed"]["gpu_blocks"]) <= EXACT + ROUNDED / row["printed"]["kv_gib"]


def test_the_size_of_a_block_is_that_of_a_state() -> None:
    row = next(one for one in VLLM if "block_size" in one["printed"])
    assert pooled(row).tokens == row["printed"]["block_size"] == 1568


def test_all_of_them_together(said: list[str]) -> None:
    rows = [one for one in VLLM if "kv_tokens" in one["printed"]]
    errors = sorted(off(tokens(row, pooled(row)), row["printed"]["kv_tokens"]) for row in rows)
    middle, high = errors[len(errors) // 2], errors[int(len(errors) * 0.9)]
    said.append(f"tokens of a printed KV cache, vLLM, {len(rows)} runs: median {middle:.3%}, 90 % within {high:.3%}")
    assert (middle <= EXACT, high <= EXACT) == (True, True)


@pytest.mark.parametrize("row", SGLANG, ids=lambda row: row["id"])
def test_bytes_of_a_token_are_those_of_sglang(row: dict[str, Any]) -> None:
    if row.get("outcome") == "indexer cache unbudgeted":
        pytest.skip("this release left the indexer's keys out of the size that it printed")
    own, ranks = model(row), 1 if row["flags"].get("dp_attention") else row["tp"]
    width = widths(row["flags"])
    cell = token_bytes(own, ranks, width.cache) * own.count("full") + indexed_bytes(own) * own.layers
    size = row["printed"]["kv_gib"]
    assert off(row["printed"]["kv_tokens"] * cell / GIB, size) <= EXACT + ROUNDED / size
    if "mamba_slots" in row["printed"]:
        held = row["printed"]["mamba_slots"] * own.count("linear") * state_bytes(own, ranks, width) / GIB
        # One slot more than it prints is kept for padding; how many under data parallelism is not known.
        assert off(held, row["printed"]["mamba_gib"]) <= 0.014


@pytest.mark.parametrize("config", [{}, {"hidden_size": 8}, {"hidden_size": "8", "num_hidden_layers": 2}])
def test_what_is_no_decoder_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="states no hidden_size"):
        Model.of(config)
