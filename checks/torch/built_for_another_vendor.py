"""torch was built for the accelerators of another maker.

## What it finds
A torch for CUDA, ROCm or XPU on a machine whose own tools show only devices of makers that it cannot use, or in a set
that somebody asks about beside such devices alone.

## Why it matters
torch finds no device: the engine refuses to start or runs on the CPU.

## What it cannot know
Whether this environment is meant for these devices. A maker that poses as another (Kunlun as CUDA, Hygon as ROCm) and
one whose plug-in is installed are no fault. Devices that only the bus shows are not counted: a display adapter is one.
Which toolkit or compiler the machine has does not matter: torch brings its own runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Fits,
    Package,
    Platform,
    Remedy,
    TorchBuild,
    Undecided,
    Vendor,
    check,
)

MAKERS = {"cuda": "nvidia", "rocm": "amd", "xpu": "intel"}
"""Whose devices a back end of torch is for."""
NAMES = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU"}

AMD_SMI = """\
GPU: 0
    BDF: 0000:23:00.0
    UUID: <redacted>
    KFD_ID: 45412
    NODE_ID: 1
    PARTITION_ID: 0

"""
HY_SMI = """\
================================= System Management Interface ==================================
================================================================================================
HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Mode
0       59.0C    114.0W     auto     400.0W     91%        0.0%      Normal
1       61.0C    109.0W     auto     400.0W     90%        0.0%      Normal
================================================================================================
======================================== End of SMI Log ========================================
"""
ENV_CU121 = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A
"""
ENV_ROCM61 = """\
PyTorch version: 2.4.1+rocm6.1
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.1.40091-a8dbc0c19
"""
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
LIST_CU121 = "torch                             2.4.0+cu121\ntransformers                      4.44.0\n"
FROZEN_ROCM63 = "torch==2.7.0+rocm6.3\nvllm==0.9.1\n"
ROCMINFO = """\
$ rocminfo | grep -E 'Name:|Marketing Name:' | head -30
  Name:                    AMD Ryzen 7 5700X 8-Core Processor
  Marketing Name:          AMD Ryzen 7 5700X 8-Core Processor
  Vendor Name:             CPU
  Name:                    gfx1100
  Marketing Name:          AMD Radeon RX 7900 XTX
  Vendor Name:             AMD
      Name:                    amdgcn-amd-amdhsa--gfx1100
"""
ASKED = "$ diag matrix check "


@check(
    "torch/built-for-another-vendor",
    severity="error",
    about="torch",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(TorchBuild,),
    uses=(Accelerator, Package, Platform, Vendor),
    words={
        "en": {
            "title": "torch was built for another maker's accelerators",
            "summary": "torch {torch} was built for {backend}; the only devices are of {vendor}",
            "cause": "The wheel came from an index for another maker's runtime (PyPI's default is for CUDA), or the "
            "environment was made for another machine.",
        },
        "zh": {
            "title": "torch 是为其他厂商的加速器构建的",
            "summary": "torch {torch} 为 {backend} 构建，而设备均为 {vendor} 的",
            "cause": "该 wheel 来自面向其他厂商运行时的索引（PyPI 默认提供 CUDA 构建），或该环境是为另一台机器创建的。",
        },
    },
    remedies=(
        Remedy(
            key="reinstall",
            title={
                "en": "Install the torch and the engine that are built for {vendor}, from the index or the image of "
                "that maker",
                "zh": "从 {vendor} 对应的索引或镜像安装为其构建的 torch 和推理引擎",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.version.cuda, torch.version.hip, torch.cuda.is_available())"',
            source="https://pytorch.org/get-started/locally/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/44660",
        "https://github.com/ROCm/legacy-rocm-build/issues/2354",
    ),
    fires=(
        AMD_SMI + ENV_CU121,
        SMI_525 + ENV_ROCM61,
        AMD_SMI + LIST_CU121,
        SMI_525 + FROZEN_ROCM63,
        ROCMINFO + ENV_CU121,
        ASKED + "gpu=MI300X torch==2.11.0+cu130",
        ASKED + "gpu=H100 torch==2.9.1+rocm6.4",
        ASKED + "gpu=BW1000 torch==2.13.0+cu130",
    ),
    explains=("torch/device-unavailable", "torch/architecture-missing"),
    silent=(
        *(AMD_SMI + ENV_ROCM61, HY_SMI + ENV_ROCM61, SMI_525 + ENV_CU121),
        ASKED + "gpu=MI300X torch==2.9.1+rocm6.4",
        ASKED + "gpu=H100 torch==2.11.0+cu130",
        ASKED + "gpu=P800 torch==2.5.1+cu118",
    ),
)
def built_for_another_vendor(facts: Facts) -> Iterator[Answer]:
    """Compare whose devices torch is for with whose the machine's tools show, or are asked about."""
    torch = next((one for one in facts.all(TorchBuild) if one.backend), None)
    devices = [one for one in facts.all(Accelerator) if one.vendor and one.seen_by in ("tool", "asked")]
    if torch is None or not devices:
        yield Undecided(reason="what torch was built for and whose devices are there are not both told")
        return
    wanted = MAKERS.get(torch.backend, "")
    available = any(one.available for one in facts.all(TorchBuild))
    shown = dict.fromkeys(one.vendor for one in devices)
    if wanted in shown:
        yield _fits(torch, wanted)
    elif wanted and not available and not _served(facts, wanted, set(shown)):
        yield Finding(
            values={"torch": torch.version, "backend": NAMES[torch.backend], "vendor": ", ".join(shown)},
            evidence=(Evidence.of(torch), Evidence.of(devices[0])),
        )


def _fits(torch: TorchBuild, maker: str) -> Fits:
    name = f"torch {torch.version}".strip()
    return Fits(
        says={
            "en": f"{name} is built for {NAMES[torch.backend]}, the runtime of devices of {maker}",
            "zh": f"{name} 为 {NAMES[torch.backend]} 构建，即 {maker} 设备的运行时",
        },
        source="https://pytorch.org/get-started/locally/",
        checked="2026-11-30",
    )


def _served(facts: Facts, wanted: str, shown: set[str]) -> bool:
    """Whether one of the makers is the one wanted, poses as it, or has brought a plug-in."""
    packages = {one.name for one in facts.all(Package)}
    posed = any(wanted in one.poses_as or wanted in one.present for one in facts.all(Platform))
    rows = [one for one in facts.all(Vendor) if one.vendor in shown]
    return wanted in shown or posed or any(one.poses_as == wanted or packages & set(one.packages) for one in rows)
