"""The cases that field reports tell of, as plans: what ran, what ran out of memory, what waited."""

from __future__ import annotations

import pytest
from planning import GIB, planned

from diag.facts import MemoryPlan

POINTS = 0.003
ABORTED = {(128, 5120), (16, 66560), (32, 66560)}
"""Requests and tokens that K100_AI did not finish under vLLM; BW100 did, as slowly with 32 as with 16."""
RAN = {(64, 5120), (8, 66560)}


def kunlun(fraction: float, requests: int, length: int, ranks: int = 8, most: int = 256) -> MemoryPlan:
    launch = f"vllm serve Qwen/Qwen3.8-27B -tp {ranks} --max-num-seqs {most} --gpu-memory-utilization {fraction}"
    asked = {"device": "P800", "devices": ranks, "release": "vllm==0.11.0", "weights_bytes": 31e9}
    return planned(launch, "Qwen--Qwen3.8-27B-W8A8", requests=requests, length=length, **asked)


def test_the_default_runs_out_of_memory_by_a_hypothesis() -> None:
    told = kunlun(0.9, 256, 1024)
    assert (told.outcome, told.confidence) == ("oom-at-runtime", "low")
    assert told.asked / GIB == pytest.approx(86.24, abs=0.01)
    assert "hypothesis" in told.doubts
    assert [one.name for one in told.terms if one.origin == "hyp"] == ["states beyond the profile"]
    assert told.safest == pytest.approx(0.86, abs=0.015)


@pytest.mark.parametrize(("requests", "length", "used"), [(256, 512 + 512, 0.097), (16, 32768 + 256, 0.123)])
def test_three_quarters_hold_what_they_held(requests: int, length: int, used: float, said: list[str]) -> None:
    told = kunlun(0.75, requests, length)
    said.append(f"P800 at 0.75, {requests} x {length}: {told.used:.2%} of the pool (reported {used:.1%})")
    assert (told.outcome, told.capacity_limited) == ("starts", False)
    assert told.used == pytest.approx(used, abs=POINTS)


def test_three_requests_of_256k_fit_on_one_card() -> None:
    told = kunlun(0.9, 3, 256_000, ranks=1, most=4)
    assert (told.starts, told.capacity_limited, int(told.concurrency or 0)) == (True, False, 3)
    assert told.room / GIB == pytest.approx(56.0, abs=1.0)


@pytest.mark.parametrize(("requests", "length"), sorted(ABORTED | RAN))
def test_what_was_aborted_or_flat_is_limited_by_capacity(requests: int, length: int) -> None:
    asked = {"device_bytes": 63.98 * GIB, "requests": requests, "length": length}
    launch = "vllm serve Qwen/Qwen3.8-27B -tp 2 --gpu-memory-utilization 0.85 --max-model-len 131072 --max-num-seqs 128"
    told = planned(launch, "Qwen--Qwen3.8-27B", release="vllm==0.18.1", **asked)
    assert (told.starts, told.capacity_limited) == (True, (requests, length) in ABORTED)
    launch = (
        "python -m sglang.launch_server --model-path Qwen/Qwen3.8-27B --tp 2 --mem-fraction-static 0.85 "
        "--context-length 131072 --disable-radix-cache --max-running-requests 128"
    )
    told = planned(launch, "Qwen--Qwen3.8-27B", release="sglang==0.5.14", **asked)
    assert (told.starts, told.capacity_limited) == (True, (requests, length) in ABORTED)


def glm(more: str) -> MemoryPlan:
    launch = (
        f"python -m sglang.launch_server --model-path zai-org/GLM-5.2-FP8 --tp 8 --dp 8 --enable-dp-attention {more}"
    )
    asked = {"device": "H200", "devices": 8, "requests": 512, "length": 9216}
    return planned(launch, "zai-org--GLM-5.2-FP8", release="sglang==0.5.14", **asked)


def test_pools_are_those_that_throughput_implies(said: list[str]) -> None:
    auto, lower, higher = (glm(one) for one in ("", "--mem-fraction-static 0.80", "--mem-fraction-static 0.85"))
    tokens = [8 * one.tokens for one in (auto, lower, higher)]
    said.append(f"GLM-5.2 on 8 H200, tokens at auto, 0.80, 0.85: {tokens} (implied 236k, 690k, at least 930k)")
    assert tokens[0] == pytest.approx(236_000, rel=0.15)
    assert tokens[1] == pytest.approx(690_000, rel=0.15)
    assert tokens[2] >= 930_000
    assert tokens == sorted(tokens)
    assert all(one.starts and one.capacity_limited for one in (auto, lower, higher))


@pytest.mark.parametrize("chunk", [8192, 16384, 32768])
def test_larger_chunks_are_refused_by_the_engines_own_reserve(chunk: int) -> None:
    told = glm(f"--mem-fraction-static 0.85 --chunked-prefill-size {chunk}")
    if chunk == 8192:
        assert told.outcome == "starts"
    else:
        assert (told.outcome, told.confidence) == ("oom-at-runtime", "low")
        assert told.advice


def test_eight_bits_hold_more_but_not_twice_as_much() -> None:
    plain, eight = (glm(f"--mem-fraction-static 0.85 {more}") for more in ("", "--kv-cache-dtype fp8_e4m3"))
    assert eight.tokens / plain.tokens == pytest.approx(1.63, abs=0.005)


def seven(more: str) -> MemoryPlan:
    launch = f"vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192 {more}"
    return planned(launch, "Qwen--Qwen2.5-7B-Instruct", release="vllm==0.19.0", device="H100 SXM", devices=8)


def test_bytes_asked_for_are_the_cache() -> None:
    assert seven("--kv-cache-memory-bytes 10G").room == pytest.approx(10 * GIB)


def test_a_layer_that_drafts_keeps_keys_too() -> None:
    plain, told = seven(""), seven("""--speculative-config '{"method": "eagle", "num_speculative_tokens": 3}'""")
    words = seven("""--speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'""")
    assert told.tokens / plain.tokens == pytest.approx(28 / 29, abs=1e-4)
    assert (words.tokens, "drafts" in told.doubts) == (plain.tokens, True)


def test_engines_beside_each_other_share_the_demand() -> None:
    asked = {"release": "vllm==0.19.0", "device": "H100 SXM", "devices": 8, "requests": 256, "length": 8192}
    launch = "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192 --data-parallel-size {}"
    one, four = (planned(launch.format(count), "Qwen--Qwen2.5-7B-Instruct", **asked) for count in (1, 4))
    assert (one.tokens, one.capacity_limited, four.capacity_limited) == (four.tokens, True, False)
    assert four.used == pytest.approx((one.used or 0) / 4)
