"""A launch takes more of a device than there is, once it serves.

## What it finds
A plan that starts, and whose graphs, context, fragments and other work beside the engine's own part exceed what
that part leaves.

## Why it matters
The engine starts and runs out of memory under load, when a benchmark has run for an hour.

## What it cannot know
Where a hypothesis alone decides (states that a profile does not see, an engine's own reserve for its work), the
confidence is low: measure with a short run at full load.
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
    "memory/planned-overrun",
    severity="warning",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "The launch leaves too little for what is taken beside its own part",
            "summary": "{model}: {asked} GiB are taken of {total} GiB, and {outside} GiB beside, {over} GiB more than "
            "there is; confidence {confidence}",
            "cause": "The part that the engine may take is not a bound: graphs, the context, fragments and what a "
            "profile does not see come beside it.",
        },
        "zh": {
            "title": "引擎占用之外剩余的显存不足",
            "summary": "{model}：{total} GiB 中占用 {asked} GiB，另需 "
            "{outside} GiB，超出 {over} GiB；置信度 {confidence}",
            "cause": "引擎可占用的比例不是上限：图捕获、上下文、碎片以及 profile 未计入的部分都在其外。",
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
        "https://github.com/baidu/vLLM-Kunlun",
        "https://github.com/vllm-project/vllm/issues/52872",
    ),
    fires=(ONE + START.format("0.8.5", "Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 1.0") + SEVEN,),
    silent=(ONE + START.format("0.8.5", "Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.9") + SEVEN,),
)
def planned_overrun(facts: Facts) -> Iterator[Answer]:
    """Each plan with that outcome."""
    for one in facts.all(MemoryPlan):
        if one.outcome == "oom-at-runtime":
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=planned_values(one),
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
