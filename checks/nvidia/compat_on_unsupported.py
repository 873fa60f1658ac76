"""The libraries of `cuda-compat` are to bridge an older driver on devices that NVIDIA does not support for that.

## What it finds
A GeForce or TITAN device, the package `cuda-compat` for a newer CUDA than the driver offers, and no data-center device.

## Why it matters
CUDA does not start at all: "Error 804: forward compatibility was attempted on non supported HW". NVIDIA supports the
package on data-center devices, on Jetson, and on select RTX cards for servers alone.

## What it cannot know
Which of the libraries a process really loads; the entry `nvidia/forward-compatibility-refused` reads the error itself.
Workstation cards (RTX, Quadro) are not judged: some are supported.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from diag.api import (
    Accelerator,
    Answer,
    Driver,
    Evidence,
    Facts,
    Finding,
    Remedy,
    Runtime,
    RuntimeDriver,
    Undecided,
    at_least,
    check,
    devices,
    numbers,
)

CONSUMER = ("geforce *", "titan *")
ASKED = "$ diag matrix check "


@check(
    "nvidia/compat-on-unsupported",
    severity="error",
    about="nvidia",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator, Runtime),
    uses=(Driver, RuntimeDriver),
    words={
        "en": {
            "title": "cuda-compat does not work on GeForce and TITAN devices",
            "summary": "cuda-compat {compat} is to bridge an older driver{driver} on {device}, which NVIDIA does "
            "not support",
            "cause": "Forward compatibility is for data-center devices, Jetson and select RTX cards of servers alone; "
            "on others CUDA ends with error 804.",
        },
        "zh": {
            "title": "GeForce 与 TITAN 设备不支持 cuda-compat",
            "summary": "在 {device} 上用 cuda-compat {compat} 弥补旧驱动{driver}，而 NVIDIA 不支持这种用法",
            "cause": "前向兼容仅限数据中心 GPU、Jetson 及部分服务器用 RTX 显卡；在其他设备上 CUDA 会报错误 804。",
        },
    },
    remedies=(
        Remedy(
            key="newer-driver",
            title={
                "en": "Upgrade the driver to one that offers CUDA {compat}",
                "zh": "将驱动升级到支持 CUDA {compat} 的版本",
            },
            safety="disruptive",
            verify="nvidia-smi",
            source="https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
        ),
        Remedy(
            key="older-build",
            title={
                "en": "Take the folder of cuda-compat out of the loader's path, and use a build (image, torch, engine) "
                "for the CUDA that the driver offers",
                "zh": "将 cuda-compat 目录移出加载路径，并使用面向驱动所支持 CUDA 的构建（镜像、torch、推理引擎）",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.cuda.is_available())"',
            source="https://github.com/vllm-project/vllm/issues/5283",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html",
        "https://github.com/gpustack/gpustack/issues/1254",
        "https://github.com/DeepVAC/TorchPod/issues/43",
        "https://github.com/AIR-DISCOVER/ICRA2024-Sim2Real-AXS/issues/5",
    ),
    fires=(
        ASKED + 'gpu="RTX 3090" driver=525.105.17 cuda=12.1 cuda-compat=12.1',
        ASKED + 'gpu="RTX 4090" driver=550.54.15 cuda=13.0 cuda-compat=13.0',
    ),
    explains=("nvidia/driver-behind-runtime",),
    silent=(
        ASKED + "gpu=A100 driver=550.54.15 cuda=13.0 cuda-compat=13.0",
        ASKED + 'gpu="RTX 4090" driver=580.65.06 cuda=13.0 cuda-compat=13.0',
    ),
)
def compat_on_unsupported(facts: Facts) -> Iterator[Answer]:
    """Compare the package with what the driver offers, where there are consumer devices."""
    packages = [one for one in facts.all(Runtime) if one.name == "cuda-compat"]
    drivers = [one for one in facts.all(Driver) if one.vendor == "nvidia"]
    if not packages:
        yield Undecided(reason="whether cuda-compat is there is not told")
        return
    device = next((one for one in devices(facts) if _consumer(one)), None)
    driver = next((one for one in drivers if one.version or one.offers), None)
    if device is None or (driver and _offers(facts, driver, packages[0].version)):
        return
    yield Finding(
        values={
            "compat": packages[0].version,
            "device": device.name,
            "driver": f" ({driver.version})" if driver and driver.version else "",
        },
        confidence="high" if driver else "medium",
        evidence=tuple(Evidence.of(one) for one in (packages[0], device, driver) if one),
    )


def _consumer(device: Accelerator) -> bool:
    name = device.name.removeprefix("NVIDIA ").lower()
    return device.vendor in ("", "nvidia") and any(fnmatchcase(name, pattern) for pattern in CONSUMER)


def _offers(facts: Facts, driver: Driver, version: str) -> bool:
    """Whether the driver offers this CUDA by itself, as it says or by the driver that the CUDA shipped with."""
    if driver.offers:
        return numbers(driver.offers)[:2] >= numbers(version)[:2]
    rows = [one for one in facts.all(RuntimeDriver) if one.vendor == "nvidia" and one.version == version]
    return any(at_least(driver.version, one.driver) for one in rows)
