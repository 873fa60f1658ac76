"""A variable lets operators run on the CPU that would otherwise end with an error.

## What it finds
Variables of `kb/reference/variables.yaml` that allow such a fallback, in the environment or in a launch command.

## Why it matters
An operator that the accelerator cannot do is then slow where it would be seen: the program goes on, and a sampler's
operator copies `[batch, vocabulary]` numbers to the host and back for each token.

## What it cannot know
Whether any operator falls back. Hence a note; `diag ops` tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Platform,
    Remedy,
    Setting,
    Unavailable,
    Undecided,
    Variable,
    check,
    switched,
)

XPU = "export PYTORCH_ENABLE_XPU_FALLBACK=1\nexport ZE_AFFINITY_MASK=0\n"
KUNLUN = "export XMLIR_ENABLE_FALLBACK_TO_CPU_BOOL=true\nexport XMLIR_DUMP_FALLBACK_OP_LIST_BOOL=true\n"
COMMAND = "$ PYTORCH_ENABLE_XPU_FALLBACK=1 vllm serve Qwen/Qwen3-8B\n"
FORBIDDEN = """\
export XMLIR_XDNN_PYTORCH_CHECK_ENABLE_FALLBACK_BOOL=0 # 禁止XDNN出错后fallback CPU
export XMLIR_ENABLE_FALLBACK_TO_CPU_BOOL=False #禁止任何fallback
export PYTORCH_ENABLE_XPU_FALLBACK=0
export TORCH_NPU_FALLBACK_CPU_DISABLE=1
"""
COMMENTED = """\
#export XMLIR_ENABLE_FALLBACK_TO_CPU_BOOL=True #Allow fallback to CPU
export XMLIR_ENABLE_FALLBACK_TO_CPU_BOOL=False
"""


@check(
    "environment/cpu-fallback-allowed",
    severity="info",
    about="host",
    needs=(Variable,),
    uses=(LaunchArguments, Platform, Setting, Unavailable),
    words={
        "en": {
            "title": "A variable lets operators fall back to the CPU",
            "summary": "{name}={value}: {effect.en}",
            "cause": "It was set so that a model runs at all, and it stayed when the backend had learnt the operator, "
            "or came with a script for training.",
        },
        "zh": {
            "title": "有环境变量允许算子回退到 CPU",
            "summary": "已设置 {name}={value}：{effect.zh}",
            "cause": "当初为了让模型能够运行而设置，后端支持该算子后未取消；或来自训练脚本。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Start once without it in a test: where the engine runs, leave it out; where it ends, the error "
                "names the operator",
                "zh": "在测试环境去掉它启动一次：能运行就不再设置；若报错，错误信息会给出算子名称",
            },
            commands=("unset {name}",),
            safety="disruptive",
            verify="env | grep '^{name}=' || echo unset",
            source="https://github.com/intel/torch-xpu-ops/blob/ab84f925a234/src/ATen/native/xpu/XPUFallback.cpp",
        ),
    ),
    sources=(
        "https://github.com/intel/torch-xpu-ops/blob/ab84f925a234/src/ATen/native/xpu/XPUFallback.cpp",
        "https://github.com/Cambricon/torch_mlu/blob/d578002c0863/torch_mlu/csrc/aten/MLUFallback.cpp",
    ),
    fires=(XPU, KUNLUN, COMMAND),
    silent=(FORBIDDEN, COMMENTED),
)
def cpu_fallback_allowed(facts: Facts) -> Iterator[Answer]:
    """Compare each variable with the values that allow it."""
    rows = [one for one in facts.all(Variable) if one.purpose == "cpu"]
    found, told = switched(facts, rows)
    for row, setting in found:
        yield _finding(row, setting)
    if not told:
        yield Undecided(reason="none of these variables was told, nor a whole environment")


def _finding(row: Variable, setting: Setting) -> Finding:
    values = {"name": row.name, "value": setting.value, "effect.en": row.effect["en"], "effect.zh": row.effect["zh"]}
    return Finding(subject=row.name, values={**values}, evidence=(Evidence.of(setting),))
