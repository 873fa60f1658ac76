"""torch_npu was made for another torch.

## What it finds
torch and torch_npu whose versions differ in the first two numbers.

## Why it matters
torch_npu is compiled against one release of torch, which its own version names: with another it does not import
(undefined symbols), and the engine sees no device.

## What it cannot know
Which of two environments a process uses. vLLM's own pin of torch is one ahead of vllm-ascend's by design: of the two it
is torch_npu that must fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Remedy, TorchBuild, Undecided, check, minor

REPLACED = "[pip3] torch==2.8.0+cpu\n[pip3] torch_npu==2.7.1.dev20250724\n[pip3] torchvision==0.22.1\n"
FITS = "[pip3] torch==2.7.1+cpu\n[pip3] torch_npu==2.7.1.dev20250724\n[pip3] torchvision==0.22.1\n"
CANDIDATE = """\
torch                             2.7.1
torch_npu                         2.7.1rc1
torchaudio                        2.7.1
torchvision                       0.23.0
vllm                              0.11.0
"""


@check(
    "ascend/torch-npu-mismatch",
    severity="error",
    about="ascend",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(TorchBuild,),
    words={
        "en": {
            "title": "torch_npu does not fit the installed torch",
            "summary": "torch_npu {npu} is made for torch {wanted}; installed is {torch}",
            "cause": "torch was upgraded after torch_npu, mostly by an installation of vLLM, whose own pin is newer.",
        },
        "zh": {
            "title": "torch_npu 与已安装的 torch 不匹配",
            "summary": "torch_npu {npu} 面向 torch {wanted}，而已安装的是 {torch}",
            "cause": "安装 torch_npu 之后 torch 被升级，多半是安装 vLLM 引起的（其锁定的 torch 更新）。",
        },
    },
    remedies=(
        Remedy(
            key="torch",
            title={
                "en": "Install the torch that torch_npu is made for, after vLLM",
                "zh": "在安装 vLLM 之后，重新安装与 torch_npu 配套的 torch",
            },
            commands=("pip install 'torch=={wanted}.*' --index-url https://download.pytorch.org/whl/cpu",),
            safety="manual",
            verify='python -c "import torch, torch_npu; print(torch.npu.is_available())"',
            source="https://github.com/vllm-project/vllm-ascend/issues/1188",
        ),
    ),
    sources=(
        "https://github.com/Ascend/pytorch/blob/master/README.md",
        "https://github.com/vllm-project/vllm-ascend/issues/4081",
        "https://github.com/vllm-project/vllm-ascend/issues/1188",
        "https://github.com/vllm-project/vllm-ascend/issues/3793",
    ),
    explains=("torch/device-unavailable", "torch/import-fails"),
    fires=(REPLACED,),
    silent=(FITS, CANDIDATE),
)
def torch_npu_mismatch(facts: Facts) -> Iterator[Answer]:
    """Compare the first two numbers of both."""
    extension = facts.package("torch-npu")
    torches = [one for one in (facts.package("torch"), *facts.all(TorchBuild)) if one and one.version]
    if extension is None or not torches:
        yield Undecided(reason="torch_npu and torch are not both told")
    elif minor(torches[0].version) != minor(extension.version):
        values = {"npu": extension.version, "wanted": minor(extension.version), "torch": torches[0].version}
        yield Finding(values={**values}, evidence=(Evidence.of(extension), Evidence.of(torches[0])))
