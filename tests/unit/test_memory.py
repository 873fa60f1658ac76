"""What is left for the KV cache, from a model's config, its weights and a launch, against what vLLM printed."""

from __future__ import annotations

from typing import Any

import pytest
from test_pool import BYTES, GIB, VLLM, config, model, off, widths

from diag.estimate.memory import Case, Device, Division, Launch, Term
from diag.estimate.plan import plan, pooled
from diag.estimate.pool import Shares
from diag.estimate.profiled import Profiled, activation
from diag.estimate.weights import weights

RELEASE = Profiled(fraction=0.9, graphs_charged=False, states_checked=False)
"""vLLM 0.19.0: graphs are estimated, and charged only where a variable asks for it."""
ROWS = [one for one in VLLM if one["version"] == "0.19.0" and "requested_gib" in one["printed"]]


def launch(row: dict[str, Any]) -> Launch:
    flags = row["flags"]
    return Launch(
        tokens=flags["max_num_batched_tokens"],
        requests=flags["max_num_seqs"],
        length=flags["max_model_len"],
        fraction=flags["gpu_memory_utilization"],
        shares=Shares(row["tp"], row["pp"]),
        width=BYTES.get(flags["dtype"], 2),
        kept=widths(flags),
    )


def case(row: dict[str, Any], **known: Any) -> Case:
    printed = Term("weights", row["printed"]["weights_gib"] * GIB, "printed")
    total = Device(row["gpu_mem_gib"] * GIB)
    return Case(model(row), launch(row), total, RELEASE, known.pop("weights", lambda shares: printed), **known)


def planned(row: dict[str, Any]) -> Division:
    return plan(case(row)).division


def computed(row: dict[str, Any]) -> Case:
    """The same with weights from the config, quantized as the launch asks."""
    asked = "fp8" if "qfp8" in row["id"] else ""
    own = weights(model(row), config(row["config"]), asked, BYTES.get(row["flags"]["dtype"], 2))
    assert own
    return case(row, weights=lambda shares: Term("weights", own.rank(model(row), shares), "config"))


def errors(rooms: dict[str, float]) -> tuple[float, float]:
    """Median and 90th percentile of how far rooms are off, by the id of a row."""
    found = sorted(off(rooms[row["id"]] / GIB, row["printed"]["kv_gib"]) for row in ROWS)
    return found[len(found) // 2], found[int(0.9 * len(found))]


def test_the_kv_cache_is_what_vllm_leaves_for_it(said: list[str]) -> None:
    middle, high = errors({row["id"]: planned(row).room for row in ROWS})
    said.append(
        f"GiB of the KV cache, vLLM 0.19, printed weights, {len(ROWS)} runs: median {middle:.2%}, 90 % {high:.2%}"
    )
    assert (middle <= 0.01, high <= 0.05) == (True, True)


def test_so_it_is_from_config_and_flags_alone(said: list[str]) -> None:
    middle, high = errors({row["id"]: plan(computed(row)).division.room for row in ROWS})
    said.append(
        f"GiB of the KV cache, vLLM 0.19, config and flags, {len(ROWS)} runs: median {middle:.2%}, 90 % {high:.2%}"
    )
    assert (middle <= 0.01, high <= 0.05) == (True, True)


def test_no_model_is_far_off(said: list[str]) -> None:
    """The constants are five, and the same for all models: none of them has any of its own."""
    worst: dict[str, float] = {}
    for row in ROWS:
        error = off(plan(computed(row)).division.room / GIB, row["printed"]["kv_gib"])
        worst[row["config"]] = max(error, worst.get(row["config"], 0.0))
    for name, error in sorted(worst.items(), key=lambda one: -one[1])[:5]:
        said.append(f"  the worst of {name}: {error:.2%}")
    assert max(worst.values()) <= 0.05


@pytest.mark.parametrize("row", [one for one in ROWS if one["pp"] == 1], ids=lambda row: row["id"])
def test_the_peak_of_activations(row: dict[str, Any]) -> None:
    estimated = activation(model(row), launch(row), RELEASE) / GIB
    assert off(estimated, row["printed"]["activation_gib"]) <= 0.16


def test_all_of_these_start_with_something_to_spare() -> None:
    for row in ROWS:
        assert plan(case(row)).starts, row["id"]


def test_what_was_printed_leaves_what_was_printed() -> None:
    """With the terms that an engine prints its own arithmetic comes out to the last digit."""
    for row in ROWS:
        if row["pp"] > 1:
            continue  # what it prints is one stage's, and the room that of the smallest
        said = row["printed"]
        bare = case(row)
        estimated = {one.name: one.bytes for one in bare.rules.divide(bare).terms}
        printed = {"activation": said["activation_gib"] * GIB, "other": said["non_torch_gib"] * GIB}
        corrections = {name: value - estimated[name] for name, value in printed.items()}
        told = plan(case(row, corrections=corrections, printed=launch(row))).division
        assert told.room / GIB == pytest.approx(said["kv_gib"], abs=0.03), row["id"]
        assert {one.name for one in told.terms if one.origin == "printed"} == {"weights", *corrections}


def test_where_nothing_is_left_there_is_no_pool() -> None:
    heavy = case(ROWS[0], weights=lambda shares: Term("weights", 90 * GIB, "given"))
    told = pooled(heavy, heavy.rules.divide(heavy))
    assert (told.room < 0, told.pool, plan(heavy).outcome) == (True, None, "refused-room")
