"""A variable hides every device from the processes that it is set for.

## What it finds
`CUDA_VISIBLE_DEVICES` or `HIP_VISIBLE_DEVICES` that is empty or begins with a device that does not exist (`-1`).

## Why it matters
The runtime finds no device: the engine does not start, or runs on the CPU, while the vendor's tool shows all is well.

## What it cannot know
Whether the process is meant to run without a device. A torch that sees one anyway clears the finding.
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
    TorchBuild,
    Unavailable,
    Undecided,
    check,
)

CHOOSING = {"CUDA_VISIBLE_DEVICES": "nvidia", "HIP_VISIBLE_DEVICES": "amd"}
EMPTY = """\
{"schema": "diag/environment/1", "variables": {"CUDA_VISIBLE_DEVICES": "", "NCCL_DEBUG": "WARN"}}
"""
NONE = "$ CUDA_VISIBLE_DEVICES=-1 vllm serve Qwen/Qwen3-8B --max-model-len 8192\n"
TWO = "$ CUDA_VISIBLE_DEVICES=1,5 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"
TWO_OF_THREE = "export CUDA_VISIBLE_DEVICES=0,2,-1,1\n"


@check(
    "environment/devices-hidden",
    severity="error",
    about="host",
    needs=(),
    uses=(LaunchArguments, Platform, Setting, TorchBuild, Unavailable),
    words={
        "en": {
            "title": "A variable hides every device",
            "summary": '{name}="{value}" leaves no device to the processes that inherit it',
            "cause": "A list that is empty, or begins with a device that is not there, means none; unset means all.",
        },
        "zh": {
            "title": "有环境变量隐藏了所有设备",
            "summary": '{name}="{value}" 使继承它的进程看不到任何设备',
            "cause": "空列表或以不存在的设备开头的列表表示“没有设备”；不设置才表示全部可见。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "To see all devices, take it out where it is set (shell, service file, `docker run -e`, compose "
                "file, manifest: `unset` works in a shell alone)",
                "zh": "要使用所有设备，请在设置它的地方删除（shell、服务文件、`docker run -e`、compose 文件或 "
                "manifest；`unset` 只对 shell 有效）",
            },
            commands=("unset {name}",),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
            source="https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",
        "https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py",
    ),
    explains=("torch/device-unavailable",),
    fires=(EMPTY, NONE),
    silent=(TWO, TWO_OF_THREE),
)
def devices_hidden(facts: Facts) -> Iterator[Answer]:
    """Look at what the first of the listed devices is."""
    settings = facts.environment()
    absent = {name for one in facts.all(Platform) for name in one.absent if name not in one.poses_as}
    seen = any(one.available for one in facts.all(TorchBuild))
    chosen = [settings[name] for name, vendor in CHOOSING.items() if name in settings and vendor not in absent]
    for setting in chosen:
        first = setting.value.partition(",")[0].strip()
        if first in ("", "-1") and not seen:
            yield Finding(
                subject=setting.name,
                values={"name": setting.name, "value": setting.value},
                evidence=(Evidence.of(setting),),
            )
    if not (chosen or facts.whole("environment")):
        yield Undecided(reason="no variable that chooses devices was told, nor a whole environment")
