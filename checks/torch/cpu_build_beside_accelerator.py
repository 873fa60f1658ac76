"""torch was built for the CPU alone, on a machine that has an accelerator.

## What it finds
A torch whose own words, or whose `+cpu`, say that it was built for no accelerator, where a vendor's tool or the bus
shows a device, or a set that somebody asks about has one.

## Why it matters
The engine refuses to start, or runs on the CPU.

## What it cannot know
Whether the CPU build is meant, as on a head node. A vendor's plug-in that brings its device to a CPU torch is no fault
and stays silent.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    PackageList,
    Remedy,
    TorchBuild,
    Undecided,
    check,
)

PLUGGED = ("ascend", "kunlun", "mthreads", "cambricon")
"""Makers whose plug-in makes a CPU torch what is meant: only a whole list tells that it is not there."""
PLUGINS = ("torch-npu", "torch-xmlir", "intel-extension-for-pytorch", "torch-musa", "torch-mlu")

SMI_525 = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
"""
ENV_CPU = """\
Collecting environment information...
PyTorch version: 2.13.0+cpu
Is debug build: False
CUDA used to build PyTorch: Could not collect
ROCM used to build PyTorch: N/A
"""
ENV_CU121 = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A
"""
FROZEN_CPU = "torch==2.7.0+cpu\nvllm==0.9.1\n"
FROZEN_CU124 = "torch==2.6.0+cu124\nvllm==0.8.5\n"
ASKED = "$ diag matrix check "


@check(
    "torch/cpu-build-beside-accelerator",
    severity="error",
    about="torch",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator, TorchBuild),
    uses=(Package, PackageList),
    words={
        "en": {
            "title": "torch is a CPU build on a machine with an accelerator",
            "summary": "torch {torch} was built for the CPU alone; this machine has {device}",
            "cause": "pip took the CPU wheel: from the CPU index, for a platform without an accelerator build, or as a "
            "dependency of another package.",
        },
        "zh": {
            "title": "机器有加速器，但 torch 是 CPU 构建",
            "summary": "torch {torch} 仅为 CPU 构建，而本机有 {device}",
            "cause": "pip 安装了 CPU 版 wheel：来自 CPU 索引、该平台没有加速器构建，或由其他依赖带入。",
        },
    },
    remedies=(
        Remedy(
            key="reinstall",
            title={
                "en": "Install the torch that the engine pins, from the index of your accelerator's runtime",
                "zh": "从加速器运行时对应的索引安装推理引擎锁定的 torch 版本",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.version.cuda, torch.version.hip)"',
            source="https://pytorch.org/get-started/locally/",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/issues/3526",),
    fires=(
        *(SMI_525 + ENV_CPU, SMI_525 + FROZEN_CPU),
        ASKED + "gpu=H100 vllm==0.12.0 torch==2.9.0+cpu",
    ),
    silent=(
        *(SMI_525 + ENV_CU121, SMI_525 + FROZEN_CU124),
        ASKED + "gpu=H100 vllm==0.12.0 torch==2.9.0+cu128",
        ASKED + "gpu=910B vllm-ascend==0.18.0 torch==2.9.0+cpu torch-npu==2.9.0",
    ),
)
def cpu_build_beside_accelerator(facts: Facts) -> Iterator[Answer]:
    """Compare what torch was built for with what the machine has."""
    devices = [one for one in facts.all(Accelerator) if one.seen_by in ("tool", "pci", "asked")]
    build = next((one for one in facts.all(TorchBuild) if one.backend), None)
    plugged = devices and devices[0].vendor in PLUGGED and facts.first(PackageList) is None
    if build is None:
        yield Undecided(reason="nothing tells what torch was built for")
    elif build.backend == "cpu" and plugged and not any(map(facts.package, PLUGINS)):
        yield Undecided(reason="whether the plug-in of these devices is installed is not told")
    elif devices and build.backend == "cpu" and not any(map(facts.package, PLUGINS)):
        values = {"torch": build.version, "device": devices[0].name or devices[0].vendor}
        yield Finding(values={**values}, evidence=(Evidence.of(build), Evidence.of(devices[0])))
