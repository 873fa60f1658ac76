"""A launch starts with next to nothing to spare, or nobody can tell whether it does.

## What it finds
A plan with less than half a GiB left on a device, or whose outcome depends on how far its terms may be off.

## Why it matters
Another driver, another process or a longer prompt decides whether it lives.

## What it cannot know
Which way it goes.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryPlan, Remedy, check, planned_change, planned_values

START = "$ docker run vllm/vllm-openai:v{} --model {}\n"
FOUR = "".join(
    f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-00000000000{index})\n" for index in range(4)
)
ONE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
SEVENTY_TWO = (
    '{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 8192, '
    '"num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": '
    '29568, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false, '
    '"torch_dtype": "bfloat16"}\n'
)
SEVEN = (
    '{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 3584, '
    '"num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": '
    '18944, "vocab_size": 152064, "max_position_embeddings": 32768, "tie_word_embeddings": false, '
    '"torch_dtype": "bfloat16"}\n'
)


@check(
    "memory/planned-margin",
    severity="warning",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "The launch has little or nothing to spare",
            "summary": "{model}: {spare} GiB are left over of each device, {room} GiB for the KV cache; terms may be "
            "off by {off} GiB",
            "cause": "What is left is less than what context, graphs and fragments differ by between machines.",
        },
        "zh": {
            "title": "启动后显存余量很小",
            "summary": "{model}：每个设备剩余 {spare} GiB，KV cache 有 {room} GiB；各项误差合计可达 {off} GiB",
            "cause": "剩余量小于上下文、图捕获与碎片在不同机器之间的差异。",
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
        "https://github.com/llm-d-incubation/llm-d-planner/pull/205",
        "https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py",
    ),
    fires=(
        FOUR
        + START.format("0.19.0", "Qwen/Qwen2.5-72B-Instruct -tp 2 --max-model-len 8192 --gpu-memory-utilization 0.95")
        + SEVENTY_TWO,
    ),
    silent=(ONE + START.format("0.19.0", "Qwen/Qwen2.5-7B-Instruct --gpu-memory-utilization 0.9") + SEVEN,),
)
def planned_margin(facts: Facts) -> Iterator[Answer]:
    """Each plan with that outcome."""
    for one in facts.all(MemoryPlan):
        if one.outcome == "tight" or (not one.starts and one.outcome != "oom-at-runtime" and one.confidence == "low"):
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=planned_values(one),
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
