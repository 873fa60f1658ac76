"""torch holds no kernels that run on this device.

## What it finds
A device whose compute capability is in none of the architectures torch was built for: neither of its own major
version at or below its minor, nor as PTX (`compute_NN`) that the driver could compile for it. Where torch's list is not
told: a device that is known to be newer than all of PyTorch's builds for the CUDA that this one is for.

## Why it matters
Every kernel launch fails: "no kernel image is available for execution on the device".

## What it cannot know
The architectures of the engine's own extension, which may differ from torch's. Other vendors' names (`gfx…`) are
compared as they are. Builds that are not PyTorch's own, which may carry PTX, are judged by their list alone.
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
    Reference,
    Remedy,
    TorchBuild,
    Undecided,
    at_least,
    check,
    devices,
    expression,
    local,
)

SM120 = """\
vllm-1  | /usr/local/lib/python3.12/dist-packages/torch/cuda/__init__.py:287: UserWarning:
vllm-1  | NVIDIA GeForce RTX 5070 Ti with CUDA capability sm_120 is not compatible with the current PyTorch \
installation.
vllm-1  | The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
vllm-1  | If you want to use the NVIDIA GeForce RTX 5070 Ti GPU with PyTorch, please check the instructions at \
https://pytorch.org/get-started/locally/
"""
SM90 = """\
/root/torchbuild/lib/python3.10/site-packages/torch/cuda/__init__.py:173: UserWarning:
NVIDIA H100 PCIe with CUDA capability sm_90 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86.
If you want to use the NVIDIA H100 PCIe GPU with PyTorch, please check the instructions at \
https://pytorch.org/get-started/locally/
"""
SM89_ON_SM86 = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "import_seconds": 3.9, "build": \
{"version": "2.7.1+cu128", "cuda": "12.8", "hip": null, "xpu": null, "debug": false, "git_version": null, \
"architectures": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"]}, "available": true, \
"backend": "cuda", "devices": [{"index": 0, "name": "NVIDIA L4", "architecture": "sm_89"}]}
"""
SMI_5090 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.124.04             Driver Version: 570.124.04     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 5090         On | 00000000:18:00.0 Off |                    0 |
| N/A   32C    P0              72W /  575W |       4MiB /  32607MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
UNFIT_5090 = """\
NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
"""
ENV_5090 = """\
PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090
Nvidia driver version: 570.124.04
"""
LIST_CU121 = """\
$ pip list | grep -E 'torch|vllm'
torch                    2.5.1+cu121
torchvision              0.20.1+cu121
vllm                     0.6.6
"""
FROZEN_CU128 = "torch==2.7.0+cu128\nvllm==0.9.1\n"
STRANGERS = {(8, 7), (10, 1)}
"""Capabilities that no other of their major version serves."""
NAME = expression(r"(sm|compute)_(\d+)(\d)[a-z]?$")
RELEASED = expression(r"\d+\.\d+\.\d+(?:\+cu\d+)?")


class DeviceArchitecture(Reference, frozen=True, kw_only=True):
    """The architecture of devices, by the starts of their names, and the first CUDA whose builds hold it."""

    vendor: str
    names: tuple[str, ...]
    architecture: str
    cuda: str


@check(
    "torch/architecture-missing",
    severity="error",
    about="torch",
    needs=(Accelerator, TorchBuild),
    uses=(DeviceArchitecture, Package),
    words={
        "en": {
            "title": "torch has no kernels for this device",
            "summary": "{device} is {architecture}; torch {torch}was built for {supported}",
            "cause": "This torch is older than the device, or its build left the device's architecture out.",
        },
        "zh": {
            "title": "torch 不包含适用于该设备的内核",
            "summary": "{device} 为 {architecture}，而 torch {torch}仅支持 {supported}",
            "cause": "该 torch 早于此设备发布，或其构建未包含该设备的架构。",
        },
    },
    remedies=(
        Remedy(
            key="newer-torch",
            title={
                "en": "Install a torch (and an engine build) whose architecture list has {architecture}",
                "zh": "安装架构列表包含 {architecture} 的 torch（以及对应的推理引擎构建）",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.cuda.get_arch_list())"',
            source="https://pytorch.org/get-started/locally/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/21633",
        "https://github.com/pytorch/pytorch/issues/110153",
        "https://github.com/vllm-project/vllm/pull/39878",
        "https://developer.nvidia.com/cuda-gpus",
        "https://github.com/Hellod035/LeggedLab/issues/26",
    ),
    fires=(SM120, SM90, ENV_5090, SMI_5090 + LIST_CU121, SMI_5090 + UNFIT_5090),
    explains=("torch/no-kernel-for-device",),
    silent=(SM89_ON_SM86, SMI_5090 + FROZEN_CU128),
)
def architecture_missing(facts: Facts) -> Iterator[Answer]:
    """Compare each device's architecture with the list torch gives, else with what builds for its CUDA hold."""
    build, known = _build(facts), list(_known(facts))
    if build is None or not known:
        yield Undecided(reason="the architectures of torch and of a device are not both told")
        return
    judged = False
    for device, architecture in known:
        supported = _supported(facts, build, architecture)
        judged = judged or supported is not None
        if supported:
            yield _finding(facts, device, architecture, build, supported)
    if not judged:
        yield Undecided(reason="for which architectures a build of torch for this CUDA holds code is not known")


def _known(facts: Facts) -> Iterator[tuple[Accelerator, str]]:
    """Devices with their architecture: as told, else by their name; those of a name that was told are left at that."""
    told = [one for one in facts.all(Accelerator) if one.architecture]
    yield from ((one, one.architecture) for one in told)
    names = {one.name for one in told}
    for device in devices(facts):
        row = _row(facts, device)
        if row and not device.architecture and device.name not in names:
            yield device, row.architecture


def _build(facts: Facts) -> TorchBuild | None:
    """What tells the architectures of torch, else its CUDA."""
    builds = facts.all(TorchBuild)
    listed = next((one for one in builds if one.architectures), None)
    return listed or next((one for one in builds if one.backend == "cuda" and one.backend_version), None)


def _row(facts: Facts, device: Accelerator) -> DeviceArchitecture | None:
    """The row that names this device; the name ends where the row's does, or goes on with another word."""
    name = device.name.removeprefix("NVIDIA ")
    rows = (row for row in facts.all(DeviceArchitecture) if row.vendor == (device.vendor or "nvidia"))
    return next((row for row in rows if any(f"{name} ".startswith(f"{start} ") for start in row.names)), None)


def _supported(facts: Facts, build: TorchBuild, architecture: str) -> str | None:
    """What torch has instead of this architecture, empty where it has it, None where that is not known."""
    if build.architectures:
        return "" if _runs(architecture, build.architectures) else " ".join(build.architectures)
    row = next((one for one in facts.all(DeviceArchitecture) if one.architecture == architecture), None)
    if row is None or not _released(facts, build):
        return None
    if at_least(build.backend_version, row.cuda):
        return ""
    return f"CUDA {build.backend_version} ({architecture}: CUDA ≥ {row.cuda})"


def _released(facts: Facts, build: TorchBuild) -> bool:
    """Whether it is one that PyTorch released: others, such as conda-forge's and NVIDIA's, carry PTX."""
    listed = any(one.origin == build.origin for one in facts.all(Package))
    return bool(RELEASED.fullmatch(build.version)) and (bool(local(build.version)) or listed)


def _finding(facts: Facts, device: Accelerator, architecture: str, build: TorchBuild, supported: str) -> Finding:
    version = build.version or next((one.version for one in facts.all(TorchBuild) if one.version), "")
    return Finding(
        values={
            "device": device.name,
            "architecture": architecture,
            "torch": f"{version} " if version else "",
            "supported": supported,
        },
        subject=f"device {device.index}" if device.index is not None else "",
        confidence="high" if build.architectures or local(version) else "medium",
        evidence=(Evidence.of(device), Evidence.of(build)),
    )


def _runs(device: str, supported: tuple[str, ...]) -> bool:
    """Whether binary code for one of the architectures, or PTX for an older one, runs on the device."""
    own = NAME.match(device)
    if own is None:
        return device in supported
    major, minor = int(own[2]), int(own[3])
    for found in filter(None, map(NAME.match, supported)):
        older = (int(found[2]), int(found[3])) <= (major, minor)
        same = int(found[2]) == major and ((major, minor) not in STRANGERS or found[3] == own[3])
        if older and (found[1] == "compute" or same):
            return True
    return False
