"""What is left for the KV cache, from a model's config, its weights and a launch, against what vLLM printed."""

from __future__ import annotations

from typing import Any

import pytest
from test_pool import BYTES, GIB, VLLM, model, off, widths

from diag.estimate.memory import Budget, Launch, Semantics, Term, activation, budget
from diag.estimate.pool import Shares

RELEASE = Semantics(utilization=0.9, graphs_charged=False)
"""vLLM 0.19.0: graphs are estimated, and charged only where a variable asks for it."""
ROWS = [one for one in VLLM if one["version"] == "0.19.0" and "requested_gib" in one["printed"]]


def launch(row: dict[str, Any]) -> Launch:
    flags = row["flags"]
    return Launch(
        tokens=flags["max_num_batched_tokens"],
        requests=flags["max_num_seqs"],
        length=flags["max_model_len"],
        utilization=flags["gpu_memory_utilization"],
        shares=Shares(row["tp"], row["pp"]),
        width=BYTES.get(flags["dtype"], 2),
        kept=widths(flags),
    )


def planned(row: dict[str, Any]) -> Budget:
    weights = Term("weights", row["printed"]["weights_gib"] * GIB, "printed")
    return budget(model(row), launch(row), RELEASE, total=row["gpu_mem_gib"] * GIB, weights=weights)


def test_the_kv_cache_is_what_vllm_leaves_for_it(said: list[str]) -> None:
    errors = sorted(off(planned(row).room / GIB, row["printed"]["kv_gib"]) for row in ROWS)
    middle, high = errors[len(errors) // 2], errors[int(0.9 * len(errors))]
    said.append(f"GiB of the KV cache, vLLM 0.19, {len(errors)} runs: median {middle:.2%}, 90 % within {high:.2%}")
    assert (middle <= 0.01, high <= 0.05) == (True, True)


def test_no_model_is_far_off(said: list[str]) -> None:
    """The constants are five, and the same for all models: none of them has any of its own."""
    worst: dict[str, float] = {}
    for row in ROWS:
        error = off(planned(row).room / GIB, row["printed"]["kv_gib"])
        worst[row["config"]] = max(error, worst.get(row["config"], 0.0))
    for name, error in sorted(worst.items(), key=lambda one: -one[1])[:5]:
        said.append(f"  the worst of {name}: {error:.2%}")
    assert max(worst.values()) <= 0.02


@pytest.mark.parametrize("row", [one for one in ROWS if one["pp"] == 1], ids=lambda row: row["id"])
def test_the_peak_of_activations(row: dict[str, Any]) -> None:
    estimated = activation(model(row), launch(row), RELEASE) / GIB
    assert off(estimated, row["printed"]["activation_gib"]) <= 0.16


def test_all_that_is_printed_leaves_what_is_printed() -> None:
    """With its own terms the engine's arithmetic comes out to the last digit printed."""
    for row in ROWS:
        if row["pp"] > 1:
            continue  # what it prints is one stage's, and the room that of the smallest
        said = row["printed"]
        known = (
            Term("activation", said["activation_gib"] * GIB, "printed"),
            Term("other", said["non_torch_gib"] * GIB, "printed"),
        )
        weights = Term("weights", said["weights_gib"] * GIB, "printed")
        told = budget(model(row), launch(row), RELEASE, total=row["gpu_mem_gib"] * GIB, weights=weights, known=known)
        assert told.room / GIB == pytest.approx(said["kv_gib"], abs=0.03), row["id"]


def test_where_nothing_is_left_there_is_no_pool() -> None:
    row = ROWS[0]
    weights = Term("weights", 90 * GIB, "given")
    told = budget(model(row), launch(row), RELEASE, total=79 * GIB, weights=weights)
    assert (told.room < 0, told.pool) == (True, None)
