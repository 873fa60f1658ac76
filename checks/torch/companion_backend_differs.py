"""torchvision or torchaudio was built for another runtime than torch.

## What it finds
torchvision or torchaudio for another major version of CUDA than torch's, or for another maker's runtime, as the local
parts of their versions say (`torch 1.12.1+cu113` beside `torchvision 0.13.1+cu102`). Of releases that compare whole
versions of CUDA (torchaudio before 2.11.1, torchvision up to 0.15) any other version.

## Why it matters
They test it at their import and raise "Detected that PyTorch and torchvision were compiled with different CUDA major
versions", or ask for a runtime that is not there. What imports them, an engine or transformers, ends with that.

## What it cannot know
What a wheel without a local part was built for, as the default index serves it (torch/companion-default-differs asks
that). The CUDA toolkit of the machine (nvcc) has no part in it. A companion for the CPU alone is another fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    Package,
    Remedy,
    TorchBuild,
    Undecided,
    at_least,
    check,
    expression,
    local,
    public,
)

BUILT = expression(r"(cu|rocm|xpu)([\d.]*)$")
RUNTIMES = {"cu": "cuda", "rocm": "rocm", "xpu": "xpu"}
COARSE = {"torchvision": "0.16", "torchaudio": "2.11.1"}
"""The release from which each compares the major version of CUDA alone."""
NAMES = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU"}
Runtime = tuple[str, str]

CU102 = """\
torch==1.12.1+cu113
torchvision==0.13.1+cu102
"""
CU128 = """\
[pip3] torch==2.9.1+cu128
[pip3] torchaudio==2.9.1+cu129
"""
ENV_CU129 = """\
[pip3] torch==2.9.1+cu129
[pip3] torchaudio==2.9.1+cu129
[pip3] torchvision==0.24.1+cu129
"""
ENV_OLD_NVCC = """\
Collecting environment information...
PyTorch version: 2.5.1+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
ROCM used to build PyTorch: N/A
CUDA runtime version: 11.7.64
Versions of relevant libraries:
[pip3] torch==2.5.1
[pip3] torchaudio==2.5.1+cu124
[pip3] torchvision==0.20.1+cu124
"""


@check(
    "torch/companion-backend-differs",
    severity="error",
    about="torch",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(TorchBuild,),
    words={
        "en": {
            "title": "torch and a companion were built for different runtimes",
            "summary": "{name} {version} was built for {other}; torch {torch} for {own}",
            "cause": "The two came from different indexes: one from that of a CUDA version, one from the default.",
        },
        "zh": {
            "title": "torch 与其配套包是为不同运行时构建的",
            "summary": "{name} {version} 为 {other} 构建，而 torch {torch} 为 {own} 构建",
            "cause": "二者来自不同的索引：一个来自某 CUDA 版本的索引，另一个来自默认索引。",
        },
    },
    remedies=(
        Remedy(
            key="same-index",
            title={
                "en": "Install {name} again from the index of torch's build",
                "zh": "从 torch 构建对应的索引重新安装 {name}",
            },
            commands=(
                'pip install --force-reinstall --no-deps "{name}=={public}" '
                "--index-url https://download.pytorch.org/whl/{index}",
            ),
            safety="disruptive",
            verify='python -c "import {name}; print({name}.__version__)"',
            source="https://github.com/AUTOMATIC1111/stable-diffusion-webui/pull/737",
        ),
    ),
    sources=(
        "https://github.com/AUTOMATIC1111/stable-diffusion-webui/pull/737",
        "https://github.com/pytorch/audio/releases/tag/v2.11.1",
        "https://github.com/pytorch/audio/pull/4226",
        "https://github.com/m-bain/whisperX/issues/320",
    ),
    fires=(CU102, CU128),
    silent=(ENV_CU129, ENV_OLD_NVCC),
)
def companion_backend_differs(facts: Facts) -> Iterator[Answer]:
    """Compare the runtimes that the local parts name."""
    torch = facts.package("torch")
    own, proof = _of_torch(facts, torch)
    judged = False
    for name in COARSE if torch and own else ():
        companion = facts.package(name)
        other = _runtime(local(companion.version)) if companion else None
        if torch and own and companion and other:
            judged = True
            if _differ(own, other, companion):
                yield _finding(torch, companion, (own, other), proof)
    if not judged:
        yield Undecided(reason="what torch and what torchvision or torchaudio were built for are not both told")


def _runtime(build: str) -> Runtime | None:
    """The runtime and its version that a local part names: `cu128` is CUDA 12.8."""
    found = BUILT.match(build)
    if not found:
        return None
    digits = found[2]
    dotted = f"{digits[:-1]}.{digits[-1]}" if digits.isdecimal() and len(digits) > 1 else digits
    return RUNTIMES[found[1]], dotted


def _of_torch(facts: Facts, torch: Package | None) -> tuple[Runtime | None, Fact | None]:
    """The runtime of torch: of its own version, else as its build says."""
    if torch and (own := _runtime(local(torch.version))):
        return own, torch
    for build in facts.all(TorchBuild):
        same = torch and build.origin != torch.origin and public(build.version) == public(torch.version)
        if same and build.backend in RUNTIMES.values() and build.backend_version:
            return (build.backend, build.backend_version), build
    return None, None


def _differ(own: Runtime, other: Runtime, companion: Package) -> bool:
    """Whether the two do not run together."""
    if own[0] != other[0]:
        return True
    coarse = at_least(companion.version, COARSE[companion.name])
    return own[0] == "cuda" and (
        own[1].partition(".")[0] != other[1].partition(".")[0] or (not coarse and own[1] != other[1])
    )


def _finding(torch: Package, companion: Package, runtimes: tuple[Runtime, Runtime], proof: Fact | None) -> Finding:
    own, other = runtimes
    index = {"cuda": f"cu{own[1].replace('.', '')}", "rocm": f"rocm{own[1]}", "xpu": "xpu"}[own[0]]
    return Finding(
        subject=companion.name,
        values={
            "name": companion.name,
            "version": companion.version,
            "public": public(companion.version),
            "torch": torch.version,
            "own": f"{NAMES[own[0]]} {own[1]}".strip(),
            "other": f"{NAMES[other[0]]} {other[1]}".strip(),
            "index": index,
        },
        evidence=(Evidence.of(companion), Evidence.of(proof or torch)),
    )
