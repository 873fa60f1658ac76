"""torch holds no kernels that run on this device.

## What it finds
A device whose compute capability is in none of the architectures torch was built for: neither of its own major
version at or below its minor, nor as PTX (`compute_NN`) that the driver could compile for it.

## Why it matters
Every kernel launch fails: "no kernel image is available for execution on the device".

## What it cannot know
The architectures of the engine's own extension, which may differ from torch's. Other vendors' names (`gfx…`) are
compared as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Remedy, TorchBuild, Undecided, check, expression

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
STRANGERS = {(8, 7), (10, 1)}
"""Capabilities that no other of their major version serves."""
NAME = expression(r"(sm|compute)_(\d+)(\d)[a-z]?$")


@check(
    "torch/architecture-missing",
    severity="error",
    about="torch",
    needs=(Accelerator, TorchBuild),
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
    ),
    fires=(SM120, SM90),
    silent=(SM89_ON_SM86,),
)
def architecture_missing(facts: Facts) -> Iterator[Answer]:
    """Compare each device's architecture with the list torch gives."""
    build = next((one for one in facts.all(TorchBuild) if one.architectures), None)
    if build is None or not any(one.architecture for one in facts.all(Accelerator)):
        yield Undecided(reason="the architectures of torch and of a device are not both told")
        return
    version = next((one.version for one in facts.all(TorchBuild) if one.version), "")
    for device in facts.all(Accelerator):
        if device.architecture and not _runs(device.architecture, build.architectures):
            yield Finding(
                values={
                    "device": device.name,
                    "architecture": device.architecture,
                    "torch": f"{version} " if version else "",
                    "supported": " ".join(build.architectures),
                },
                subject=f"device {device.index}" if device.index is not None else "",
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
