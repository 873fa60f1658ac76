"""Nothing of what a launch may take is left for its KV cache.

## What it finds
A plan of the launch on these devices whose weights and work take all that the engine may have, even where each
term is as small as it may be.

## Why it matters
The engine loads the weights, which may take many minutes, and then refuses to start.

## What it cannot know
What a model's own code takes besides, adapters and connectors.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryPlan, Remedy, check, planned_change, planned_values

START = "$ docker run vllm/vllm-openai:v{} --model {}\n"
ONE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
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
    "memory/planned-room",
    severity="error",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "Nothing is left for the KV cache",
            "summary": "{model}: {weights} GiB of weights and {work} GiB of work exceed the {asked} GiB that {engine} "
            "may take of each device",
            "cause": "Weights and the work of one step must fit into the part of the memory that the engine may take, "
            "and the KV cache into the rest.",
        },
        "zh": {
            "title": "没有剩余显存给 KV cache",
            "summary": "{model}：权重 {weights} GiB 与运行所需 {work} GiB 超过 {engine} 在每个设备上可用的 {asked} GiB",
            "cause": "权重与单步运行所需必须放进引擎可占用的显存，剩余部分才用于 KV cache。",
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
    fires=(ONE + START.format("0.19.0", "Qwen/Qwen2.5-72B-Instruct --max-model-len 8192") + SEVENTY_TWO,),
    silent=(FOUR + START.format("0.19.0", "Qwen/Qwen2.5-72B-Instruct --max-model-len 8192 -tp 4") + SEVENTY_TWO,),
)
def planned_room(facts: Facts) -> Iterator[Answer]:
    """Each plan with that outcome."""
    for one in facts.all(MemoryPlan):
        if one.outcome == "refused-room" and one.confidence != "low":
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=planned_values(one),
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
