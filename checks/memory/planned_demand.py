"""What is to be served at once exceeds the KV cache of a launch: requests wait or are preempted.

## What it finds
A plan whose pool is smaller than what the requests of `--requests` need at their full length.

## Why it matters
Nothing crashes: requests queue, the time to the first token grows to minutes, and more streams bring no more tokens a
second. In a benchmark this looks like a slow engine.

## What it cannot know
How long requests really become, and what they have in common.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryPlan, Remedy, check, planned_change, planned_values

DEVICE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
LAUNCH = "$ docker run vllm/vllm-openai:v0.19.0 --model Qwen/Qwen2.5-7B-Instruct\n"
CONFIG = (
    '{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 28, '
    '"num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064, '
    '"max_position_embeddings": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}\n'
)
WISH = '{"schema": "diag/memory-wish/1", "requests": 256, "length": 8192}\n'


@check(
    "memory/planned-demand",
    severity="warning",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "What is to be served at once exceeds the KV cache",
            "summary": "{count} requests of {each} tokens need {used} of the KV cache: {fit} of them fit at once",
            "cause": "Requests beyond what fits wait, or are preempted and computed again; nothing crashes.",
        },
        "zh": {
            "title": "同时服务的需求超过 KV cache",
            "summary": "{count} 个 {each} token 的请求需要 KV cache 的 {used}：同时只能容纳 {fit} 个",
            "cause": "放不下的请求会排队，或被抢占后重新计算；不会因此崩溃。",
        },
    },
    remedies=(
        Remedy(
            key="change",
            title={
                "en": "The cheapest change that helps, by the same model",
                "zh": "按同一模型计算，代价最小的有效调整",
            },
            commands=("{flags}",),
            safety="safe",
        ),
        Remedy(
            key="more",
            title={
                "en": "No single change helps: measure with fewer requests at once, or take more devices",
                "zh": "没有单一调整有效：以更少的并发测量，或使用更多设备",
            },
            safety="manual",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/core/kv_cache_utils.py",
        "https://github.com/llm-d-incubation/llm-d-planner/pull/205",
    ),
    fires=(DEVICE + LAUNCH + CONFIG + WISH,),
    silent=(DEVICE + LAUNCH + CONFIG + WISH.replace("256", "16"),),
)
def planned_demand(facts: Facts) -> Iterator[Answer]:
    """Each plan whose pool is smaller than the demand."""
    for one in facts.all(MemoryPlan):
        if one.capacity_limited and one.demand and one.used:
            requests, length = one.demand
            values = {**planned_values(one), "count": requests, "each": length}
            values |= {"used": f"{one.used:.0%}", "fit": int(requests / one.used)}
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=values,
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
