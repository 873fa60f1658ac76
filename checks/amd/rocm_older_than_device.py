"""The ROCm in use is older than the first that supports this device.

## What it finds
A device (by its architecture) and a ROCm, that of torch first, below the first release that vLLM's guide names for it:
7.0 for MI350 (`gfx950`) and for Ryzen AI MAX and AI 300 (`gfx1151`, `gfx1150`; there 7.0.2).

## Why it matters
Libraries hold no kernels for the device; engines fall back, fail, or need it to pose as another.

## What it cannot know
A build of one's own, or preview wheels, may bring the kernels; where torch's own list of architectures is told, another
finding judges it and this one is silent. The third number of a release is not told by torch, so 7.0.0 is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    Package,
    Remedy,
    Runtime,
    TorchBuild,
    Undecided,
    at_least,
    check,
    local,
    minor,
)

FIRST = {"gfx950": "7.0", "gfx1150": "7.0", "gfx1151": "7.0"}

MI350 = """\
GPU: 0
    ASIC:
        MARKET_NAME: AMD Instinct MI350X
        TARGET_GRAPHICS_VERSION: gfx950
"""
MI300 = """\
  Name:                    gfx942
  Marketing Name:          AMD Instinct MI300X VF
  Vendor Name:             AMD
"""
TORCH_6_3 = """\
PyTorch version: 2.7.0+rocm6.3
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.3.42131-fa1d09cbd
"""
TORCH_7_2 = """\
Collecting environment information...
==============================
        System Info
==============================
       PyTorch Info
==============================
PyTorch version              : 2.9.1+git5bc97ba
Is debug build               : False
CUDA used to build PyTorch   : N/A
ROCM used to build PyTorch   : 7.2.26015-fc0010cf6a
"""


@check(
    "amd/rocm-older-than-device",
    severity="warning",
    about="amd",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator,),
    uses=(Package, Runtime, TorchBuild),
    words={
        "en": {
            "title": "This ROCm is older than the device's support",
            "summary": "{device} ({architecture}) is supported from ROCm {first} on; in use is {rocm}",
            "cause": "The image or the wheel of torch was built for an older ROCm.",
        },
        "zh": {
            "title": "ROCm 版本早于对该设备的支持",
            "summary": "{device}（{architecture}）自 ROCm {first} 起才受支持，当前使用的是 {rocm}",
            "cause": "镜像或 torch wheel 基于较旧的 ROCm 构建。",
        },
    },
    remedies=(
        Remedy(
            key="newer",
            title={
                "en": "Use an image, or wheels of torch and vLLM, for ROCm {first} or newer",
                "zh": "使用基于 ROCm {first} 或更新版本的镜像，或相应的 torch 与 vLLM wheel",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.version.hip, torch.cuda.get_arch_list())"',
            source="https://github.com/vllm-project/vllm/blob/main/docs/getting_started/installation/gpu.rocm.inc.md",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/blob/main/docs/getting_started/installation/gpu.rocm.inc.md",),
    explains=("torch/device-unavailable",),
    fires=(MI350 + TORCH_6_3,),
    silent=(MI350 + TORCH_7_2, MI300 + TORCH_6_3),
)
def rocm_older_than_device(facts: Facts) -> Iterator[Answer]:
    """Compare the ROCm in use with the first for each architecture."""
    told = [one for one in facts.all(Accelerator) if one.vendor == "amd" and one.architecture]
    space, rocm = next(_user_spaces(facts), (None, ""))
    if space is None or not told:
        yield Undecided(reason="the architecture of a device and the ROCm that is used are not both told")
    elif not any(one.architectures for one in facts.all(TorchBuild)):
        for device in {one.architecture: one for one in reversed(told)}.values():
            first = FIRST.get(device.architecture.partition(":")[0], "")
            if first and at_least(rocm, first) is False:
                yield Finding(
                    values={
                        "device": device.name or "AMD",
                        "architecture": device.architecture,
                        "first": first,
                        "rocm": rocm,
                    },
                    subject=device.architecture,
                    confidence="medium",
                    evidence=(Evidence.of(space), Evidence.of(device)),
                )


def _user_spaces(facts: Facts) -> Iterator[tuple[Fact, str]]:
    """What tells the ROCm that programs use, torch's own first, with its major and minor number."""
    for build in facts.all(TorchBuild):
        if build.backend == "rocm" and build.backend_version:
            yield build, minor(build.backend_version)
    torch = facts.package("torch")
    if torch and local(torch.version).startswith("rocm"):
        yield torch, minor(local(torch.version).removeprefix("rocm"))
    for runtime in facts.all(Runtime):
        if runtime.name == "rocm":
            yield runtime, minor(runtime.version)
