"""Fewer recurrent states fit than a launch allows requests.

## What it finds
A plan of a model with linear-attention or Mamba layers whose pool has fewer blocks than `--max-num-seqs`, with
graphs captured.

## Why it matters
Graphs of whole steps need a state for each request: the engine refuses to start after it has loaded the weights.

## What it cannot know
How much newer releases take beyond what is explained: the blocks printed were up to a fifth fewer.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryPlan, Remedy, check, planned_change, planned_values

START = "$ docker run vllm/vllm-openai:v{} --model {}\n"
ONE = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n"
HYBRID = (
    '{"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5_text", '
    '"attn_output_gate": true, "full_attention_interval": 4, "head_dim": 256, "hidden_size": 5120, '
    '"intermediate_size": 17408, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, '
    '"linear_num_key_heads": 16, "linear_num_value_heads": 48, "linear_value_head_dim": 128, '
    '"mamba_ssm_dtype": "float32", "max_position_embeddings": 262144, "num_attention_heads": 24, '
    '"num_hidden_layers": 64, "num_key_value_heads": 4, "vocab_size": 248320, "dtype": "bfloat16"}\n'
)


@check(
    "memory/planned-states",
    severity="error",
    about="engine",
    needs=(MemoryPlan,),
    words={
        "en": {
            "title": "Fewer states fit than requests are allowed",
            "summary": "{model}: {places} states fit beside the KV cache, {requests} requests are allowed at once",
            "cause": "Each request of a model with linear layers takes a block of the pool for its state, and graphs "
            "are captured for as many requests as are allowed.",
        },
        "zh": {
            "title": "能容纳的状态少于允许的请求数",
            "summary": "{model}：可容纳 {places} 个状态，而允许同时 {requests} 个请求",
            "cause": "带线性层的模型，每个请求都要占用池中的一个状态块，而图捕获按允许的请求数进行。",
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
        "https://github.com/vllm-project/recipes/issues/551",
        "https://github.com/vllm-project/recipes/issues/831",
    ),
    fires=(ONE + START.format("0.22.0", "Qwen/Qwen3.8-27B --gpu-memory-utilization 0.95") + HYBRID,),
    silent=(
        ONE + START.format("0.22.0", "Qwen/Qwen3.8-27B --gpu-memory-utilization 0.95 --max-num-seqs 128") + HYBRID,
    ),
)
def planned_states(facts: Facts) -> Iterator[Answer]:
    """Each plan with that outcome."""
    for one in facts.all(MemoryPlan):
        if one.outcome == "refused-states" and one.confidence != "low":
            yield Finding(
                subject=one.model or one.engine,
                confidence=one.confidence,
                values=planned_values(one),
                evidence=(Evidence.of(one),),
                remedies=(planned_change(one),),
            )
