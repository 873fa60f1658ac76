"""On an AMD machine torch was built for CUDA.

## What it finds
A device of AMD, none of NVIDIA, and a torch that says that it was built for CUDA, or whose version bears `+cu…`.

## Why it matters
Such a torch sees no device of AMD, and an engine that came with it fails at import ("libcudart.so: cannot open shared
object file"). pip takes the wheel of PyPI, which is for CUDA, where the index of ROCm has none for the Python in use.

## What it cannot know
Whether the environment is meant for another machine. A version without a local part tells nothing by itself.
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
    Platform,
    Remedy,
    TorchBuild,
    Undecided,
    check,
    expression,
    local,
)

CUDA = expression(r"cu[0-9]")

INFO = """\
$ rocminfo | grep -E 'Name:|Marketing Name:' | head -30
  Name:                    AMD Ryzen 7 5700X 8-Core Processor
  Marketing Name:          AMD Ryzen 7 5700X 8-Core Processor
  Vendor Name:             CPU
  Name:                    gfx1100
  Marketing Name:          AMD Radeon RX 7900 XTX
  Vendor Name:             AMD
      Name:                    amdgcn-amd-amdhsa--gfx1100
"""
CU121 = """\
PyTorch version: 2.4.0+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A
"""
ROCM = """\
PyTorch version: 2.7.0+rocm6.3
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.3.42131-fa1d09cbd
"""


@check(
    "amd/torch-built-for-cuda",
    severity="error",
    about="amd",
    needs=(Accelerator,),
    uses=(Package, Platform, TorchBuild),
    words={
        "en": {
            "title": "torch is a CUDA build on an AMD machine",
            "summary": "torch {torch} was built for CUDA; this machine has {device}",
            "cause": "pip took the wheel of PyPI: without the index of ROCm, or because that has no wheel for this "
            "Python (vLLM's are for 3.12 alone).",
        },
        "zh": {
            "title": "AMD 机器上安装的是 CUDA 版 torch",
            "summary": "torch {torch} 面向 CUDA 构建，而本机为 {device}",
            "cause": "pip 安装了 PyPI 上的 wheel：未指定 ROCm 索引，或该索引没有适用于当前 Python 的 wheel"
            "（vLLM 仅提供 3.12）。",
        },
    },
    remedies=(
        Remedy(
            key="rocm",
            title={
                "en": "Make an environment of Python 3.12 and install vLLM, or torch, from the index of ROCm; or use "
                "the vendor's image",
                "zh": "创建 Python 3.12 环境并从 ROCm 索引安装 vLLM 或 torch，或使用官方镜像",
            },
            commands=(
                "uv venv --python 3.12 --seed --managed-python",
                "uv pip install vllm --extra-index-url https://wheels.vllm.ai/rocm/ --upgrade",
            ),
            safety="manual",
            verify='python -c "import torch; print(torch.version.hip, torch.cuda.is_available())"',
            source="https://github.com/vllm-project/vllm/blob/main/docs/getting_started/installation/gpu.rocm.inc.md",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/blob/main/docs/getting_started/installation/gpu.rocm.inc.md",),
    explains=("torch/device-unavailable", "torch/architecture-missing"),
    fires=(INFO + CU121,),
    silent=(INFO + ROCM,),
)
def torch_built_for_cuda(facts: Facts) -> Iterator[Answer]:
    """Compare the device's maker with what torch was built for."""
    own = [one for one in facts.all(Accelerator) if one.vendor == "amd"]
    present = {name for platform in facts.all(Platform) for name in platform.present}
    builds = [one for one in facts.all(TorchBuild) if one.backend]
    packages = [one for one in facts.all(Package) if one.name == "torch" and local(one.version)]
    told: list[TorchBuild | Package] = [one for one in builds if one.backend == "cuda"]
    told += [] if builds else [one for one in packages if CUDA.match(local(one.version))]
    if not own or not (builds or packages) or "nvidia" in present:
        yield Undecided(reason="a machine of AMD alone and what torch was built for are not both told")
    elif told and not any(one.available for one in facts.all(TorchBuild)):
        yield Finding(
            values={"torch": told[0].version, "device": own[0].name or own[0].architecture or "AMD"},
            confidence="high" if any(one.seen_by == "tool" for one in own) else "medium",
            evidence=(Evidence.of(told[0]), Evidence.of(own[0])),
        )
