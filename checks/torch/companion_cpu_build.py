"""torchvision or torchaudio is a build for the CPU beside a torch for an accelerator.

## What it finds
`+cpu` in the version of torchvision or torchaudio, where torch was built for CUDA, ROCm or XPU.

## Why it matters
Their operators exist for the CPU alone: "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend", at
the first image, or slow preprocessing.

## What it cannot know
Whether anything asks for these operators. On Ascend and other plug-ins a torch for the CPU is meant, and no fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Remedy, TorchBuild, Undecided, check, local, public

COMPANIONS = ("torchvision", "torchaudio")
DEVICES = ("cu", "rocm", "xpu")

CPU_BESIDE_CU118 = """\
torch==2.6.0+cu118
torchvision==0.21.0+cpu
"""
BOTH_CPU = """\
[pip3] numpy==2.2.6
[pip3] torch==2.2.2+cpu
[pip3] torchvision==0.17.2+cpu
"""
BOTH_CUDA = """\
[pip3] torch==2.9.1+cu129
[pip3] torchaudio==2.9.1+cu129
[pip3] torchvision==0.24.1+cu129
"""


@check(
    "torch/companion-cpu-build",
    severity="warning",
    about="torch",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(TorchBuild,),
    words={
        "en": {
            "title": "A companion of torch is a CPU build",
            "summary": "{name} {version} is for the CPU alone, beside torch {torch}",
            "cause": "It was installed from another index than torch, or as a dependency of another package.",
        },
        "zh": {
            "title": "torch 的配套包是 CPU 构建",
            "summary": "{name} {version} 仅支持 CPU，与 torch {torch} 并存",
            "cause": "它与 torch 来自不同的索引，或由其他软件包作为依赖带入。",
        },
    },
    remedies=(
        Remedy(
            key="same-index",
            title={
                "en": "Install {name} again from the index that torch came from",
                "zh": "从 torch 的来源索引重新安装 {name}",
            },
            commands=(
                'pip install --force-reinstall --no-deps "{name}=={public}" '
                "--index-url https://download.pytorch.org/whl/{index}",
            ),
            safety="disruptive",
            verify='python -c "import {name}; print({name}.__version__)"',
            source="https://github.com/dchatel/comfyui_facetools/issues/26",
        ),
    ),
    sources=(
        "https://github.com/dchatel/comfyui_facetools/issues/26",
        "https://github.com/facebookresearch/sam2/issues/220",
        "https://github.com/pytorch/vision/issues/3058",
    ),
    fires=(CPU_BESIDE_CU118,),
    silent=(BOTH_CPU, BOTH_CUDA),
)
def companion_cpu_build(facts: Facts) -> Iterator[Answer]:
    """Look for `+cpu` beside a torch that names a runtime."""
    torch = facts.package("torch")
    there = [one for one in map(facts.package, COMPANIONS) if one and local(one.version)]
    build = local(torch.version) if torch else ""
    if torch is None or not there or not build:
        yield Undecided(reason="what torch and its companions were built for is not told")
        return
    for companion in there:
        if local(companion.version) == "cpu" and build.startswith(DEVICES):
            values = {"name": companion.name, "version": companion.version, "torch": torch.version}
            yield Finding(
                subject=companion.name,
                values={**values, "public": public(companion.version), "index": build},
                evidence=(Evidence.of(companion), Evidence.of(torch)),
            )
