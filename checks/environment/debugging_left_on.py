"""A variable that finds faults is on, and slows everything while it is.

## What it finds
Variables of `kb/reference/variables.yaml` that make launches wait, switch caches off or check every call, in the
environment, in NCCL's configuration files or in a launch command.

## Why it matters
The device idles where it would overlap work; a benchmark measures the debugging. Nothing in the engine's log says so.

## What it cannot know
Whether a fault is being looked for right now.
"""

from __future__ import annotations

import re
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

TROUBLESHOOTING = "export VLLM_LOGGING_LEVEL=DEBUG\nexport CUDA_LAUNCH_BLOCKING=1\nexport NCCL_DEBUG=TRACE\n"
ROCM = "AMD_SERIALIZE_KERNEL=3 HIP_LAUNCH_BLOCKING=1 \\\nvllm serve Qwen/Qwen3-8B\n"
MUSA = "export MUSA_LAUNCH_BLOCKING=1 # MUSA 操作同步，用于定位错误\nexport MCCL_TIMEOUT=180\n"
MUSA_OFF = "export MUSA_LAUNCH_BLOCKING=0\nexport MUSA_BLOCK_SCHEDULE_MODE=1\n"
ASCEND_OFF = "export ASCEND_LAUNCH_BLOCKING=0\nexport PYTORCH_NPU_ALLOC_CONF=max_split_size_mb:256\n"
NOT_BLOCKING = "$ env\nCUDA_LAUNCH_BLOCKING=0\nNCCL_DEBUG=INFO\n"
ADVICE = "B: If that does not help, try `CUDA_LAUNCH_BLOCKING=1 vllm serve ... --tensor-parallel-size 16`\n"
LOGGING = r"\w*LOG\w*|(?:NCCL|BKCL|HCCL)_DEBUG"


@check(
    "environment/debugging-left-on",
    severity="warning",
    about="host",
    needs=(Variable,),
    uses=(LaunchArguments, Platform, Setting, Unavailable),
    words={
        "en": {
            "title": "A debugging variable is left on",
            "summary": "{name}={value}: {effect.en}",
            "cause": "Somebody set it to find a fault and it stayed in a shell, a script or an image.",
        },
        "zh": {
            "title": "调试用的环境变量仍处于开启状态",
            "summary": "已设置 {name}={value}：{effect.zh}",
            "cause": "有人为定位故障而设置了它，之后遗留在 shell、脚本或镜像中。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Take it out where it is set (shell, service file, nccl.conf, `docker run -e`, compose file, "
                "manifest: `unset` works in a shell alone) and restart the engine",
                "zh": "在设置它的地方删除（shell、服务文件、nccl.conf、`docker run -e`、compose 文件或 manifest；"
                "`unset` 只对 shell 有效），然后重启推理引擎",
            },
            commands=("unset {name}",),
            safety="disruptive",
            verify="env | grep '^{name}=' || echo unset",
            source="https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
        ),
    ),
    sources=(
        "https://docs.vllm.ai/en/latest/usage/troubleshooting.html",
        "https://docs.pytorch.org/docs/stable/cuda_environment_variables.html",
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html",
        "https://www.hiascend.com/document/detail/zh/Pytorch/720/comref/Envvariables/Envir_006.html",
        "https://github.com/MooreThreads/torch_musa/blob/8b583b3f2fd0/docs/markdown/source/04_quick_start.md",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(TROUBLESHOOTING, ROCM, MUSA),
    silent=(ASCEND_OFF, NOT_BLOCKING, MUSA_OFF, ADVICE + NOT_BLOCKING),
)
def debugging_left_on(facts: Facts) -> Iterator[Answer]:
    """Compare each variable with the values that debug, but for those that only print."""
    rows = [one for one in facts.all(Variable) if one.purpose == "debugging" and not re.fullmatch(LOGGING, one.name)]
    found, told = switched(facts, rows)
    for row, setting in found:
        yield _finding(row, setting)
    if not told:
        yield Undecided(reason="none of these variables was told, nor a whole environment")


def _finding(row: Variable, setting: Setting) -> Finding:
    values = {"name": row.name, "value": setting.value, "effect.en": row.effect["en"], "effect.zh": row.effect["zh"]}
    return Finding(subject=row.name, values={**values}, evidence=(Evidence.of(setting),))
