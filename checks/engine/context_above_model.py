"""The launch asks for longer requests than the model's configuration states.

## What it finds
`--max-model-len` (vLLM) or `--context-length` (SGLang) above the positions in `config.json`, without a flag or variable
that extends them.

## Why it matters
The engine refuses a length above the one it derives from `config.json`: the positions, times the factor of a
`rope_scaling` that is not yet in them.

## What it cannot know
A `rope_scaling` inside `config.json`, which the engine counts in. Hence the confidence is medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, LaunchArguments, ModelShape, Remedy, Setting, Undecided, check

CONFIG = """\
{
  "architectures": [
    "Qwen3ForCausalLM"
  ],
  "head_dim": 128,
  "hidden_size": 4096,
  "max_position_embeddings": 40960,
  "model_type": "qwen3",
  "num_attention_heads": 32,
  "num_hidden_layers": 36,
  "num_key_value_heads": 8,
  "vocab_size": 151936
}
"""
LONG = "$ vllm serve Qwen/Qwen3-8B --max-model-len 131072\n"
STATED = "$ vllm serve Qwen/Qwen3-8B --max-model-len 32k\n"
SCALED = """\
vllm serve Qwen/Qwen3-8B --hf-overrides '{"rope_scaling":{"rope_type":"yarn","factor":4.0}}' --max-model-len 131072
"""
LENGTHS = ("max-model-len", "context-length")
EXTENDING = ("hf-overrides", "rope-scaling", "json-model-override-args", "rope-theta", "hf-config-path")
ALLOWING = ("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
UNITS = {"k": 1000, "K": 1024, "m": 10**6, "M": 2**20}


@check(
    "engine/context-above-model",
    severity="error",
    about="engine",
    needs=(LaunchArguments, ModelShape),
    uses=(Setting,),
    words={
        "en": {
            "title": "The launch asks for more context than the model states",
            "summary": "--{flag} {asked} is above the {context} positions in config.json",
            "cause": "The engine refuses a length above max_position_embeddings, times the factor of a rope_scaling "
            "that config.json holds or the command adds.",
        },
        "zh": {
            "title": "启动参数要求的上下文超过模型声明的长度",
            "summary": "--{flag} {asked} 超过 config.json 中的 {context} 个位置",
            "cause": "推理引擎拒绝超过 max_position_embeddings 的长度（若有 rope_scaling，则乘以其系数）。",
        },
    },
    remedies=(
        Remedy(
            key="shorten",
            title={"en": "Ask for what the model states", "zh": "使用模型声明的长度"},
            commands=("--{flag} {context}",),
            safety="safe",
            verify="grep -e max_position_embeddings -e rope_scaling config.json",
            source="https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py",
        ),
        Remedy(
            key="extend",
            title={
                "en": "If the model's card says how to extend it: add its rope_scaling (short requests lose quality)",
                "zh": "如果模型说明给出了扩展方法：加入其 rope_scaling（短请求质量会下降）",
            },
            safety="manual",
            source="https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/config/model.py",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/configs/model_config.py",
    ),
    fires=(CONFIG + LONG,),
    silent=(CONFIG + STATED, CONFIG + SCALED),
)
def context_above_model(facts: Facts) -> Iterator[Answer]:
    """Compare the length asked for with the positions of the model."""
    shapes = [one for one in facts.all(ModelShape) if one.context]
    asked = [(one, *found) for one in facts.all(LaunchArguments) if (found := _length(one))]
    if len({one.context for one in shapes}) != 1 or not asked:
        yield Undecided(reason="no one model's positions beside a launch that asks for a length")
        return
    allowed = any(one.kind == "environment" and one.name in ALLOWING for one in facts.all(Setting))
    for launch, flag, length in asked:
        context = shapes[0].context or 0
        extended = allowed or any(name.partition(".")[0] in EXTENDING for name, _ in launch.flags)
        if length > context and not extended:
            yield Finding(
                subject=launch.model,
                values={"flag": flag, "asked": length, "context": context},
                confidence="medium",
                evidence=(Evidence.of(launch), Evidence.of(shapes[0])),
            )


def _length(launch: LaunchArguments) -> tuple[str, int] | None:
    """The flag that asks for a length, and the tokens; `32k` is 32000 and `32K` 32768."""
    for name, value in launch.flags:
        number, unit = (value[:-1], value[-1]) if value[-1:] in UNITS else (value, "")
        if name in LENGTHS and number.isdecimal() and launch.subcommand in ("serve", ""):
            return name, int(number) * UNITS.get(unit, 1)
    return None
