"""Less memory is free than a launch asks for.

## What it finds
A plan on devices of which others, or the context alone, take so much that what is free is less than the part that
the engine asks for.

## Why it matters
Releases that look at the free memory first refuse to start at once.

## What it cannot know
Whether whoever holds the memory goes before the launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryPlan, Remedy, check, planned_change, planned_values

START = "$ docker run vllm/vllm-openai:v{} --model {}\n"
ONE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
SEVEN = (
    '{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, '
    '"num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": '
    '18944, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false, '
    '"torch_dtype": "bfloat16"}\n'
)


@check(
    "memory/planned-free",
    severity="error",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "Less memory is free than the launch asks for",
            "summary": "{free} GiB are free on a device, {engine} asks for {asked} GiB ({fraction} of {total} GiB)",
            "cause": "The part that the engine may take is one of the whole memory, not of what is free.",
        },
        "zh": {
            "title": "空闲显存少于启动所要求的",
            "summary": "设备上空闲 {free} GiB，而 {engine} 要求 {asked} GiB（{total} GiB 的 {fraction}）",
            "cause": "引擎可占用的比例是相对于总显存，而不是空闲显存。",
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
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py",
        "https://github.com/llm-d-incubation/llm-d-planner/pull/205",
    ),
    fires=(ONE + START.format("0.19.0", "Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 1.0") + SEVEN,),
    silent=(ONE + START.format("0.19.0", "Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.95") + SEVEN,),
)
def planned_free(facts: Facts) -> Iterator[Answer]:
    """Each plan with that outcome."""
    for one in facts.all(MemoryPlan):
        if one.outcome == "refused-free" and one.confidence != "low":
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=planned_values(one),
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
