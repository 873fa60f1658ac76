"""Two distributions of one NVIDIA library, for two versions of CUDA, that write the same files.

## What it finds
NCCL, cuDNN, cuSPARSELt or NVSHMEM installed for two versions of CUDA (`nvidia-nccl-cu12` beside `nvidia-nccl-cu13`):
the wheels put their library into the same folder under the same name, so only the one installed last is there.

## Why it matters
torch then loads a library of another version than both lists say, or of another CUDA: `undefined symbol:
ncclCommResume` at the import, or a hang that no version explains.

## What it cannot know
Which of the two was installed last. The other libraries of CUDA have folders or names of their own for each version,
and stand beside each other without harm. A torch for the CPU or for another maker loads none of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    PackageList,
    Remedy,
    Shell,
    TorchBuild,
    Undecided,
    check,
    local,
    numbers,
)

LIBRARIES = {
    "nvidia-nccl": ("nvidia/nccl/lib", "libnccl.so.2"),
    "nvidia-cudnn": ("nvidia/cudnn/lib", "libcudnn.so"),
    "nvidia-cusparselt": ("nvidia/cusparselt/lib", "libcusparseLt.so.0"),
    "nvidia-nvshmem": ("nvidia/nvshmem/lib", "libnvshmem_host.so.3"),
}
"""Where each wheel puts its library, whatever CUDA it is for."""
SUFFIXES = ("cu11", "cu12", "cu13")

FREEZE_BOTH = """\
nvidia-cublas==13.0.0.19
nvidia-cublas-cu12==12.6.4.1
nvidia-cudnn-cu12==9.10.2.21
nvidia-cudnn-cu13==9.13.0.50
nvidia-cusparselt-cu12==0.7.1
nvidia-cusparselt-cu13==0.8.0
nvidia-nccl-cu12==2.27.5
nvidia-nccl-cu13==2.27.7
nvidia-nvshmem-cu12==3.4.5
nvidia-nvshmem-cu13==3.3.24
pytorch-triton==3.5.1+gitbfeb0668
"""
NCCL_11_12 = """\
nvidia-nccl-cu11==2.14.3
nvidia-nccl-cu12==2.27.3
"""
BESIDE_CPU = """\
nvidia-cublas==13.1.0.3
nvidia-cublas-cu12==12.8.4.1
nvidia-cudnn-cu12==9.10.2.21
nvidia-cudnn-cu13==9.19.0.56
nvidia-nccl-cu12==2.27.5
nvidia-nccl-cu13==2.28.9
torch==2.11.0+cpu
"""
VLLM_0330 = """\
nvidia-cublas==13.1.1.3
nvidia-cudnn-cu13==9.24.0.43
nvidia-cutlass-dsl-libs-cu12==4.8.0
nvidia-cutlass-dsl-libs-cu13==4.8.0
nvidia-nccl-cu13==2.30.7
torch==2.14.0
"""


@check(
    "python/cuda-packages-mixed",
    severity="warning",
    about="nvidia",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(PackageList, TorchBuild),
    words={
        "en": {
            "title": "Two versions of an NVIDIA library overwrite each other",
            "summary": "{packages}: those of one library both write {file}, and only the last installed is there",
            "cause": "Something that needs the libraries of another CUDA was installed beside torch.",
        },
        "zh": {
            "title": "同一 NVIDIA 库的两个版本互相覆盖",
            "summary": "{packages}：同一库的两个包都写入 {file}，实际只保留最后安装的那个",
            "cause": "在 torch 之外又安装了需要另一 CUDA 版本库的软件。",
        },
    },
    remedies=(
        Remedy(
            key="keep",
            title={
                "en": "Remove all of them, and install again those for torch's {cuda}",
                "zh": "全部卸载，再重新安装 torch 所用 {cuda} 对应的那些",
            },
            commands=("pip uninstall -y {names}", "pip install --force-reinstall --no-deps {keep}"),
            safety="disruptive",
            verify='python -c "import torch; print(torch.cuda.nccl.version(), torch.backends.cudnn.version())"',
            source="https://github.com/pytorch/pytorch/issues/186591",
        ),
        Remedy(
            key="ask",
            title={
                "en": "See which of them torch asks for, remove all, and install only those again",
                "zh": "查看 torch 要求哪些，全部卸载后只重新安装那些",
            },
            commands=(
                "pip show torch | grep ^Requires",
                "pip uninstall -y {names}",
                "pip install --force-reinstall --no-deps …",
            ),
            safety="disruptive",
            verify='python -c "import torch; print(torch.cuda.nccl.version(), torch.backends.cudnn.version())"',
            source="https://github.com/pytorch/pytorch/issues/186591",
        ),
    ),
    sources=(
        "https://github.com/pytorch/pytorch/issues/186591",
        "https://github.com/marin-community/marin/issues/7344",
        "https://github.com/rwth-i6/returnn/issues/1802",
        "https://github.com/NVIDIA/cuml/pull/7304",
    ),
    fires=(FREEZE_BOTH, NCCL_11_12),
    silent=(BESIDE_CPU, VLLM_0330),
    explains=("torch/import-fails",),
)
def cuda_packages_mixed(facts: Facts) -> Iterator[Answer]:
    """Look for a second distribution of a library, unless torch loads none of them."""
    torch = facts.package("torch")
    backends = {one.backend for one in facts.all(TorchBuild) if one.backend}
    if (torch and local(torch.version)[:2] not in ("", "cu")) or (backends and "cuda" not in backends):
        return
    told = [one for library in LIBRARIES for one in _installed(facts, library)]
    if len(told) < 2 and not facts.first(PackageList):
        yield Undecided(reason="fewer than two of the libraries are among the packages")
    pairs = {
        f"{folder}/{file}": found
        for library, (folder, file) in LIBRARIES.items()
        if len(found := _installed(facts, library)) > 1 and not _apart(library, found)
    }
    if pairs:
        yield _finding(facts, pairs)


def _installed(facts: Facts, library: str) -> list[Package]:
    return [one for suffix in SUFFIXES if (one := facts.package(f"{library}-{suffix}"))]


def _apart(library: str, found: list[Package]) -> bool:
    """Whether the files have different names: those of cuDNN 8 and 9."""
    return library == "nvidia-cudnn" and len({numbers(one.version)[:1] for one in found}) == len(found)


def _finding(facts: Facts, pairs: dict[str, list[Package]]) -> Finding:
    torch, build = facts.package("torch"), next((one for one in facts.all(TorchBuild) if one.backend_version), None)
    major = f"cu{build.backend_version.partition('.')[0]}" if build else local(torch.version)[:4] if torch else ""
    found = [one for pair in pairs.values() for one in pair]
    keep = [f"{one.name}=={one.version}" for one in found if major and one.name.endswith(major)]
    return Finding(
        values={
            "packages": ", ".join(f"{one.name} {one.version}" for one in found),
            "names": Shell(shlex.join(one.name for one in found)),
            "file": ", ".join(pairs),
            "cuda": major,
            "keep": Shell(shlex.join(keep)),
        },
        evidence=tuple(map(Evidence.of, found)),
        remedies=("keep",) if len(keep) == len(pairs) else ("ask",),
    )
