"""The longest request that a launch allows does not fit into its KV cache.

## What it finds
A plan whose KV cache holds less than one request of the longest length.

## Why it matters
The engine refuses to start once it has loaded the weights and profiled a step.

## What it cannot know
Whether anybody sends requests that long: where not, a smaller length costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryPlan, Remedy, check, planned_change, planned_values

START = "$ docker run vllm/vllm-openai:v{} --model {}\n"
FOUR = "".join(
    f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-00000000000{index})\n" for index in range(4)
)
SEVENTY_TWO = (
    '{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 8192, '
    '"num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": '
    '29568, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false, '
    '"torch_dtype": "bfloat16"}\n'
)


@check(
    "memory/planned-length",
    severity="error",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "The KV cache holds less than one request of the longest length",
            "summary": "{model}: {room} GiB are left for the KV cache, {tokens} tokens; a request of {length} needs "
            "more, the longest that fits has {longest}",
            "cause": "The engine must be able to serve one request of the longest length that it allows.",
        },
        "zh": {
            "title": "KV cache 放不下一个最长请求",
            "summary": "{model}：留给 KV cache 的有 {room} GiB，即 {tokens} 个"
            " token；长度 {length} 的请求放不下，最长可为 {longest}",
            "cause": "引擎必须至少能服务一个其允许的最长请求。",
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
                "en": "No single change helps: more or larger devices, fewer bits of weights, or a smaller model",
                "zh": "没有单一调整有效：需要更多或更大显存的设备、更低位宽的权重，或更小的模型",
            },
            safety="manual",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/10517",
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py",
    ),
    fires=(
        FOUR
        + START.format("0.19.0", "Qwen/Qwen2.5-72B-Instruct -tp 2 --max-model-len 32768 --gpu-memory-utilization 0.95")
        + SEVENTY_TWO,
    ),
    silent=(
        FOUR
        + START.format("0.19.0", "Qwen/Qwen2.5-72B-Instruct -tp 2 --max-model-len 8192 --gpu-memory-utilization 0.95")
        + SEVENTY_TWO,
    ),
)
def planned_length(facts: Facts) -> Iterator[Answer]:
    """Each plan with that outcome."""
    for one in facts.all(MemoryPlan):
        if one.outcome == "refused-length" and one.confidence != "low":
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=planned_values(one),
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
