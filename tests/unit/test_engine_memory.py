"""What each release of an engine does with memory, as rows: each has one, and what is printed agrees with it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from held import LOADED
from test_pool import config, printed

from diag.estimate.model import Model
from diag.facts import EngineBudget, EngineDefault, EngineLever, EngineReserve, Facts, LaunchArguments, of_release
from diag.facts.engine_memory import narrow
from diag.facts.launched import Levers, Surroundings, defaults, state_width
from diag.finding import Origin
from diag.versions import satisfies

ROWS = [row for one in LOADED.later if one.path.parent.name == "engines" for row in one.rows()]
BUDGETS = [one for one in ROWS if isinstance(one, EngineBudget)]
RESERVES = [one for one in ROWS if isinstance(one, EngineReserve)]
FACTS = Facts(ROWS)
VLLM = (
    *("0.6.3.post1", "0.6.4.post1", "0.6.6.post1", "0.7.0", "0.7.3", "0.8.0", "0.8.3", "0.8.4", "0.8.5.post1", "0.9.0"),
    *("0.9.0.1", "0.9.1", "0.9.2", "0.10.0", "0.10.1.1", "0.10.2", "0.11.0", "0.11.2", "0.12.0", "0.13.0", "0.14.1"),
    *("0.15.0", "0.15.1", "0.16.0", "0.17.0", "0.17.1", "0.18.0", "0.18.1", "0.19.0", "0.19.1", "0.20.0", "0.20.1"),
    *("0.20.2", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.1", "0.26.0", "0.26.1rc1", "0.27.1", "0.28.0", "0.29.0"),
    *("0.30.0", "0.31.0", "0.32.0", "0.33.0"),
)
SGLANG = (
    *("0.4.3", "0.4.3.post4", "0.4.4.post4", "0.4.5.post2", "0.4.5.post3", "0.4.6", "0.4.6.post1", "0.4.6.post2"),
    *("0.4.6.post5", "0.4.7", "0.4.7.post1", "0.4.8", "0.4.9.post6", "0.4.10.post2", "0.5.1", "0.5.1.post3", "0.5.2"),
    *("0.5.3", "0.5.3.post1", "0.5.3.post3", "0.5.4", "0.5.5", "0.5.6", "0.5.7", "0.5.8", "0.5.9", "0.5.10"),
    *("0.5.11", "0.5.12", "0.5.13", "0.5.14", "0.5.15.post1", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20"),
    *("0.5.21", "0.5.22", "0.5.23"),
)
SIZES = (16, 23.6, 31.4, 47.5, 79.2, 80, 94, 96, 140, 178, 192, 288)
"""GiB of devices that are sold, and of those that a rule's bound is at."""
ORDER = ("wide", "config-else-wide", "config", "model")
SWITCHES = ("free_checked", "graphs_charged", "others_charged", "peak_with_graphs", "states_checked", "whole_prompts")
NAMED = sorted(
    {
        (one["engine"], number)
        for one in printed()
        for number in re.findall(r"(?<![\w.])\d+\.\d+(?:\.\d+)*(?:\.post\d+|rc\d+)?(?!\w)", one["version"])
    }
)
"""The releases that public start-ups name."""


def on(rows: list[Any], version: str) -> list[Any]:
    """The rows on a release of the engine itself, whatever the model."""
    return [one for one in rows if not one.vendor and not narrow(one) and satisfies(version, one.releases or ">0")]


def budget(version: str, **asked: Any) -> EngineBudget:
    found = of_release(BUDGETS, "vllm", version, **asked)
    assert found
    return found


@pytest.mark.parametrize("version", [*VLLM, *(number for engine, number in NAMED if engine == "vllm")])
def test_a_release_that_profiles_has_one_row(version: str) -> None:
    assert len(on(BUDGETS, version)) == 1


@pytest.mark.parametrize("version", [*SGLANG, *(number for engine, number in NAMED if engine == "sglang")])
def test_a_release_that_reserves_has_one_row_for_each_size(version: str) -> None:
    for size in SIZES:
        meant = [one for one in on(RESERVES, version) if one.from_gib <= size < (one.below_gib or 1000)]
        assert len(meant) == 1, size


@pytest.mark.parametrize("version", VLLM)
def test_a_model_has_one_row(version: str) -> None:
    """What is narrow does not overlap either."""
    for asked in ({"dense": True}, {"architecture": "Qwen2MoeForCausalLM"}, {"architecture": "NemotronHForCausalLM"}):
        told = [one for one in BUDGETS if narrow(one) and satisfies(version, one.releases)]
        meant = [
            one for one in told if (one.dense and "dense" in asked) or asked.get("architecture") in one.architectures
        ]
        assert len(meant) <= 1
        assert budget(version, **asked) is (meant or on(BUDGETS, version))[0]


def test_each_row_says_where_it_was_read() -> None:
    read = re.compile(r"(?:vllm|vllm-ascend|vllm-kunlun|sglang) \w[\w.]*(?:, \w[\w.]*)*: [\w/]+\.py")
    assert {type(one) for one in ROWS} == {EngineBudget, EngineDefault, EngineLever, EngineReserve}
    for one in ROWS:
        assert read.search(one.source), one
        assert one.checked == "2026-12-01"


@pytest.mark.parametrize(
    ("version", "fraction", "does", "prints", "state"),
    [
        ("0.6.6.post1", 0.9, "whole_prompts", "group", "model"),
        ("0.9.0", 0.9, "others_charged", "group", "model"),
        ("0.9.1", 0.9, "free_checked", "group", "model"),
        ("0.16.0", 0.9, "free_checked", "group", "model"),
        ("0.17.0", 0.9, "free_checked", "group", "config"),
        ("0.19.1", 0.9, "free_checked", "group", "config"),
        ("0.20.0", 0.92, "free_checked graphs_charged states_checked", "group", "config"),
        ("0.20.1", 0.92, "free_checked graphs_charged states_checked", "requests", "config"),
        ("0.27.0", 0.92, "free_checked graphs_charged peak_with_graphs states_checked", "requests", "config"),
        ("0.33.0", 0.92, "free_checked graphs_charged peak_with_graphs states_checked", "requests", "config"),
    ],
)
def test_what_vllm_does(version: str, fraction: float, does: str, prints: str, state: str) -> None:
    one = budget(version)
    told = [name for name in SWITCHES if getattr(one, name)]
    assert (one.fraction, told, one.prints, one.state) == (fraction, does.split(), prints, state)


def test_samplers_take_less_and_less() -> None:
    assert [budget(one).sampled_bytes for one in ("0.16.0", "0.17.0", "0.28.0", "0.29.0", "0.33.0")] == [
        37.5,
        14,
        14,
        2,
        14,
    ]
    dense = [budget(one, dense=True).sampled_bytes for one in ("0.24.0", "0.25.0", "0.27.0", "0.28.0")]
    assert dense == [14, 6, 6, 2]
    assert not budget("0.26.0", dense=True).graphs_charged
    assert budget("0.24.0", architecture="LlamaForCausalLM").sampled_bytes == 6


def test_plug_ins_have_rules_of_their_own() -> None:
    assert [budget(one, vendors=["ascend"]).others_charged for one in ("0.13.0", "0.18.0")] == [True, False]
    assert not budget("0.23.0", vendors=["ascend"]).graphs_charged
    assert [budget(one, vendors=["amd"]).graphs_charged for one in ("0.25.1", "0.26.0")] == [False, True]
    assert budget("0.15.1", vendors=["kunlun"]).unprofiled_states == 2


@pytest.mark.parametrize(
    "row", [one for one in printed() if "requested_gib" in one["printed"]], ids=lambda row: row["id"]
)
def test_what_is_printed_adds_up_as_its_row_says(row: dict[str, Any]) -> None:
    said, one = row["printed"], budget(row["version"])
    assert said["requested_gib"] == pytest.approx(row["gpu_mem_gib"] * row["flags"]["gpu_memory_utilization"], abs=0.02)
    charged = said["cudagraph_est_gib"] if one.graphs_charged else 0.0
    spent = said["weights_gib"] + said["activation_gib"] + said["non_torch_gib"] + charged
    assert said["requested_gib"] - spent == pytest.approx(said["kv_gib"], abs=0.06)
    assert said["free_at_start_gib"] > said["requested_gib"]


def test_tokens_are_printed_as_its_row_says() -> None:
    """Two releases in one table: one prints a group's tokens, which differ where layers are of several kinds."""
    far: dict[str, list[str]] = {"group": [], "requests": []}
    for row in printed():
        said, length = row["printed"], row["flags"].get("max_model_len")
        told = re.match(r"\d+\.\d+(\.\d+)?", row["version"])
        if row["engine"] != "vllm" or not told or not length or not {"kv_tokens", "max_concurrency"} <= said.keys():
            continue
        apart = abs(said["kv_tokens"] / length - said["max_concurrency"])
        far[budget(told[0]).prints] += [row["id"]] if apart > 0.01 else []
    assert (len(far["group"]) >= 3, far["requests"]) == (True, [])


def usual(engine: str, version: str, gib: float, device: str = "", **asked: Any) -> dict[str, float]:
    vendors, ranks, subcommand = asked.get("vendors", ()), asked.get("ranks", 1), asked.get("subcommand", "serve")
    launch = LaunchArguments(origin=Origin(capture="launch"), engine=engine, subcommand=subcommand)
    return {
        str(name): value
        for name, value in defaults(FACTS, launch, Surroundings(version, vendors, gib, device), ranks).items()
    }


@pytest.mark.parametrize(
    ("version", "gib", "device", "subcommand", "tokens", "requests"),
    [
        ("0.7.3", 79.2, "H100 SXM", "serve", 2048, 256),
        ("0.8.3", 23.6, "RTX 3090", "serve", 2048, 1024),
        ("0.8.4", 79.2, "H100 SXM", "serve", 8192, 1024),
        ("0.8.4", 79.2, "A100 SXM", "serve", 2048, 256),
        ("0.8.5", 79.2, "A100 SXM", "serve", 8192, 1024),
        ("0.9.0", 79.2, "A100 SXM", "serve", 2048, 256),
        ("0.19.0", 79.2, "H100 SXM", "serve", 8192, 1024),
        ("0.19.0", 79.2, "H100 SXM", "bench throughput", 16384, 1024),
        ("0.19.0", 79.2, "H100 SXM", "run-batch", 2048, 128),
        ("0.19.0", 31.4, "RTX 5090", "bench throughput", 8192, 256),
        ("0.27.0", 178, "B200", "serve", 8192, 1024),
        ("0.28.0", 178, "B200", "serve", 16384, 1024),
        ("0.32.0", 119.7, "GB10", "serve", 8192, 1024),
        ("0.33.0", 119.7, "GB10", "serve", 2048, 256),
    ],
)
def test_the_largest_step_of_vllm(
    version: str, gib: float, device: str, subcommand: str, tokens: int, requests: int
) -> None:
    found = usual("vllm", version, gib, device, subcommand=subcommand)
    assert (found["tokens"], found["requests"]) == (tokens, requests)


@pytest.mark.parametrize(
    ("version", "gib", "ranks", "tokens", "captured"),
    [
        ("0.4.6.post5", 23.6, 1, 2048, 8),
        ("0.4.6.post5", 140, 1, 8192, 256),
        ("0.4.7", 178, 1, 16384, 256),
        ("0.5.2", 31.4, 4, 2048, 80),
        ("0.5.2", 79.2, 8, 8192, 160),
        ("0.5.2", 178, 8, 16384, 512),
        ("0.5.4", 31.4, 1, 2048, 16),
        ("0.5.4.post1", 31.4, 1, 2048, 24),
        ("0.5.19", 31.4, 1, 2048, 24),
        ("0.5.20", 31.4, 1, 4096, 48),
        ("0.5.23", 140, 8, 8192, 512),
    ],
)
def test_the_largest_step_of_sglang(version: str, gib: float, ranks: int, tokens: int, captured: int) -> None:
    found = usual("sglang", version, gib, ranks=ranks)
    assert (found["tokens"], found["captured"]) == (tokens, captured)


def test_the_table_of_fractions_ends_where_a_reserve_begins() -> None:
    assert [usual("sglang", "0.4.3", 140, ranks=one)["fraction"] for one in (1, 2, 4, 8, 16)] == [
        0.88,
        0.87,
        0.85,
        0.81,
        0.79,
    ]
    assert usual("sglang", "0.4.6.post5", 79.2, ranks=8)["fraction"] == 0.81
    assert "fraction" not in usual("sglang", "0.4.6.post5", 140, ranks=8)
    assert "fraction" not in usual("sglang", "0.4.7.post1", 79.2, ranks=8)
    (row,) = [one for one in on(RESERVES, "0.4.6.post5") if one.from_gib <= 140 < (one.below_gib or 1000)]
    assert (row.base_mib, row.token_mib) == (18432, 0)


def test_plug_ins_have_defaults_of_their_own() -> None:
    """One platform knows no size of its memory, and one tells the host's, which is large."""
    npu = usual("vllm", "0.18.0", 96, "910B", vendors=["ascend"])
    assert (npu["requests"], npu["tokens"], npu["block"]) == (256, 2048, 128)
    assert usual("vllm", "0.15.1", 32, "R200", vendors=["kunlun"])["requests"] == 1024


def test_prefixes_of_hybrids_are_cached_from_026_on() -> None:
    assert [usual("vllm", one, 79.2).get("prefixes") for one in ("0.25.1", "0.26.0")] == [None, 1]


def test_sglang_keeps_wide_states_where_a_config_states_none() -> None:
    states = {one: next(iter(on(RESERVES, one))).state for one in ("0.5.8", "0.5.9", "0.5.23")}
    assert states == {"0.5.8": "wide", "0.5.9": "config-else-wide", "0.5.23": "config-else-wide"}
    whole = config("Qwen--Qwen3.5-9B")
    for told, widths in ((None, [4, 4, 2, 2]), ("bfloat16", [4, 2, 2, 2])):
        one = Model.of({**whole, "text_config": {**whole["text_config"], "mamba_ssm_dtype": told}})
        assert [state_width(one, Levers({}, {}), state, 2) for state in ORDER] == widths
