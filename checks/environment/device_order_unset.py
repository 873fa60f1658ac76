"""Devices of several models, numbered by CUDA in another order than by `nvidia-smi`.

## What it finds
An environment without `CUDA_DEVICE_ORDER=PCI_BUS_ID` on a machine whose NVIDIA devices are not all of one model.

## Why it matters
CUDA's default puts the fastest device first. `CUDA_VISIBLE_DEVICES=0` may then be another device than GPU 0 of the
tool, and an engine takes devices that somebody else uses.

## What it cannot know
Whether the two orders happen to agree. Hence a note.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, Setting, Unavailable, Undecided, check

NAME = "CUDA_DEVICE_ORDER"
MIXED = """\
Collecting environment information...
PyTorch version: 2.5.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A
Is CUDA available: True
GPU models and configuration:
GPU 0: NVIDIA GeForce RTX 4090
GPU 1: NVIDIA GeForce RTX 4090
GPU 2: NVIDIA GeForce RTX 3090
"""
UNSET = '{"schema": "diag/environment/1", "variables": {"CUDA_VISIBLE_DEVICES": "1", "NCCL_DEBUG": "WARN"}}\n'
SET = (
    '{"schema": "diag/environment/1", "variables": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1"}}\n'
)


@check(
    "environment/device-order-unset",
    severity="info",
    about="nvidia",
    needs=(Accelerator,),
    uses=(Setting, Unavailable),
    words={
        "en": {
            "title": "CUDA may number the devices otherwise than nvidia-smi",
            "summary": "{models} in one machine, and CUDA_DEVICE_ORDER is {value.en}: CUDA puts the fastest first",
            "cause": "CUDA's default order is FASTEST_FIRST; nvidia-smi lists by PCI address.",
        },
        "zh": {
            "title": "CUDA 的设备编号可能与 nvidia-smi 不同",
            "summary": "本机混用 {models}，CUDA_DEVICE_ORDER {value.zh}：CUDA 会把最快的设备排在最前",
            "cause": "CUDA 默认顺序为 FASTEST_FIRST，而 nvidia-smi 按 PCI 地址排序。",
        },
    },
    remedies=(
        Remedy(
            key="order",
            title={"en": "Number devices as nvidia-smi does", "zh": "使用与 nvidia-smi 相同的编号"},
            commands=("export CUDA_DEVICE_ORDER=PCI_BUS_ID",),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.get_device_name(0))"',
            source="https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",
        ),
    ),
    sources=("https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html",),
    fires=(MIXED + UNSET,),
    silent=(MIXED + SET,),
)
def device_order_unset(facts: Facts) -> Iterator[Answer]:
    """Compare the models of the devices, then look for the variable."""
    devices = {one.index: one for one in facts.all(Accelerator) if one.seen_by == "tool" and one.index is not None}
    models = {one.name: one for one in devices.values() if one.name and not one.name.endswith("...")}
    setting = next((one for one in facts.all(Setting) if one.kind == "environment" and one.name == NAME), None)
    if len(models) < 2 or (setting and setting.value == "PCI_BUS_ID"):
        return
    if setting or facts.whole("environment"):
        values = {
            "models": ", ".join(sorted(models)),
            "value.en": setting.value if setting else "unset",
            "value.zh": f"为 {setting.value}" if setting else "未设置",
        }
        evidence = [Evidence.of(one) for one in (setting, *models.values()) if one]
        yield Finding(values={**values}, evidence=tuple(evidence))
    else:
        yield Undecided(reason="the environment was not told")
