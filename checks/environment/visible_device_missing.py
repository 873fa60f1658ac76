"""A list of visible devices names one that the machine does not have.

## What it finds
A number in `CUDA_VISIBLE_DEVICES`, `HIP_VISIBLE_DEVICES` or `ROCR_VISIBLE_DEVICES` that none of the devices has which
the vendor's tool lists. Where both are set, `HIP_` counts among those that `ROCR_` leaves.

## Why it matters
The list ends there: that device and all after it are not seen, so an engine with that many ranks does not start.

## What it cannot know
Devices that a pasted table left out at its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Platform,
    Remedy,
    Setting,
    Undecided,
    check,
    count,
)

CHOOSING = {"CUDA_VISIBLE_DEVICES": "nvidia", "HIP_VISIBLE_DEVICES": "amd", "ROCR_VISIBLE_DEVICES": "amd"}
LIST = """\
$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000001)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000002)
"""
FOUR = "$ CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4\n"
TWO = "$ CUDA_VISIBLE_DEVICES=1,0 vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2\n"
NARROWED = """\
{"schema": "diag/environment/1", "variables": {"HIP_VISIBLE_DEVICES": "2,3", "ROCR_VISIBLE_DEVICES": "2,3"}}
"""


@check(
    "environment/visible-device-missing",
    severity="error",
    about="host",
    needs=(),
    uses=(Accelerator, LaunchArguments, Platform, Setting),
    words={
        "en": {
            "title": "A list of visible devices names one that is not there",
            "summary": "{name}={value}, but there are {count} devices, numbered from 0; the list ends before {device}",
            "cause": "The list was written for a machine with more devices, or counts from 1, or counts devices that "
            "another variable has already taken away.",
        },
        "zh": {
            "title": "可见设备列表中有不存在的设备",
            "summary": "{name}={value}，但可选设备只有 {count} 个（从 0 编号）；列表在 {device} 处终止",
            "cause": "该列表是为设备更多的机器编写的、从 1 开始计数，或引用了已被另一个变量排除的设备。",
        },
    },
    remedies=(
        Remedy(
            key="renumber",
            title={
                "en": "List devices from 0 to one less than their number, in one variable only",
                "zh": "只用一个变量，并使用从 0 到设备数减一的编号",
            },
            commands=("export {name}=0",),
            safety="manual",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
            source="https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",
        "https://github.com/pytorch/pytorch/blob/main/torch/cuda/__init__.py",
        "https://rocm.docs.amd.com/projects/HIP/en/latest/reference/env_variables.html",
    ),
    fires=(LIST + FOUR, NARROWED),
    silent=(LIST + TWO,),
)
def visible_device_missing(facts: Facts) -> Iterator[Answer]:
    """Compare the numbers of each list with how many devices there are for it."""
    settings = facts.environment()
    absent = {name for one in facts.all(Platform) for name in one.absent if name not in one.poses_as}
    chosen = [settings[name] for name, vendor in CHOOSING.items() if name in settings and vendor not in absent]
    if not chosen:
        yield Undecided(reason="no variable that chooses devices was told")
    for setting in chosen:
        count, others = _choice(facts, settings, setting.name)
        listed = _numbers(setting.value)
        if not count or listed is None:
            yield Undecided(reason=f"{setting.name}: its devices, or how many there are, were not told by number")
        elif (missing := next((one for one in listed if one >= count), None)) is not None:
            values = {"name": setting.name, "value": setting.value, "count": str(count), "device": str(missing)}
            yield Finding(
                subject=setting.name, values={**values}, confidence="medium", evidence=(Evidence.of(setting), *others)
            )


def _choice(facts: Facts, settings: dict[str, Setting], name: str) -> tuple[int, tuple[Evidence, ...]]:
    """How many devices a variable chooses from (0: unknown), and what tells it: the tool, or another variable."""
    outer = settings.get("ROCR_VISIBLE_DEVICES")
    if name == "HIP_VISIBLE_DEVICES" and outer:
        return len(outer.value.split(",")), (Evidence.of(outer),)
    devices = {one.index: one for one in facts.all(Accelerator) if one.seen_by == "tool" and one.index is not None}
    whole = devices and sorted(devices) == list(range(len(devices)))
    return (len(devices), (Evidence.of(devices[len(devices) - 1]),)) if whole else (0, ())


def _numbers(value: str) -> list[int] | None:
    """The numbers of a list up to its end, None where it holds identifiers."""
    words = [word.strip() for word in value.split(",")]
    end = next((place for place, word in enumerate(words) if word in ("", "-1")), len(words))
    numbers = [number for word in words[:end] if (number := count(word)) is not None]
    return numbers if len(numbers) == len(words[:end]) else None
