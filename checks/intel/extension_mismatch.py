"""Intel's extension of torch was made for another torch.

## What it finds
torch and `intel_extension_for_pytorch` whose versions differ in the first two numbers.

## Why it matters
The extension refuses to be imported: "needs to work with PyTorch 2.8.*, but PyTorch 2.6.0+cu124 is found", and ends the
process.

## What it cannot know
Which of two environments a process uses, and whether anything imports it: vLLM needs it up to 0.14. Intel retires it
for torch's own support.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Remedy, TorchBuild, Undecided, check, minor

NAME = "intel-extension-for-pytorch"

MISMATCH = "intel-extension-for-pytorch==2.5.0\ntorch==2.6.0\n"
FITS = "intel-extension-for-pytorch==2.5.10+xpu\ntorch==2.5.1+cxx11.abi\n"


@check(
    "intel/extension-mismatch",
    severity="error",
    about="intel",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(TorchBuild,),
    words={
        "en": {
            "title": "Intel's extension does not fit the installed torch",
            "summary": "intel_extension_for_pytorch {extension} works with torch {wanted}; installed is {torch}",
            "cause": "torch was upgraded after the extension, or pip took the newest extension for an older torch.",
        },
        "zh": {
            "title": "Intel 扩展与已安装的 torch 不匹配",
            "summary": "intel_extension_for_pytorch {extension} 需要 torch {wanted}，而已安装的是 {torch}",
            "cause": "安装扩展之后 torch 被升级，或 pip 为较旧的 torch 安装了最新的扩展。",
        },
    },
    remedies=(
        Remedy(
            key="pair",
            title={
                "en": "Install the extension of the same two numbers as torch",
                "zh": "安装与 torch 前两位版本号相同的扩展",
            },
            commands=("pip install 'intel-extension-for-pytorch=={torch_minor}.*'",),
            safety="manual",
            verify='python -c "import torch, intel_extension_for_pytorch as ipex; print(torch.__version__, '
            'ipex.__version__)"',
            source="https://github.com/intel/intel-extension-for-pytorch/issues/778",
        ),
        Remedy(
            key="remove",
            title={
                "en": "Or remove it where nothing imports it: newer torch has the support itself",
                "zh": "若没有程序导入它，也可以卸载：较新的 torch 自带支持",
            },
            commands=("pip uninstall intel-extension-for-pytorch",),
            safety="manual",
            verify='python -c "import torch; print(torch.xpu.is_available())"',
            source="https://github.com/intel/intel-extension-for-pytorch/issues/871",
        ),
    ),
    sources=(
        "https://github.com/intel/intel-extension-for-pytorch/issues/778",
        "https://github.com/intel/intel-extension-for-transformers/pull/1278",
        "https://github.com/intel/intel-extension-for-pytorch/issues/865",
        "https://github.com/intel/intel-extension-for-pytorch/issues/507",
    ),
    fires=(MISMATCH,),
    silent=(FITS,),
)
def extension_mismatch(facts: Facts) -> Iterator[Answer]:
    """Compare the first two numbers of both."""
    extension = facts.package(NAME)
    torches = [one for one in (facts.package("torch"), *facts.all(TorchBuild)) if one and one.version]
    if extension is None or not torches:
        yield Undecided(reason="torch and Intel's extension are not both told")
    elif minor(torches[0].version) != minor(extension.version):
        yield Finding(
            values={
                "extension": extension.version,
                "wanted": minor(extension.version),
                "torch": torches[0].version,
                "torch_minor": minor(torches[0].version),
            },
            evidence=(Evidence.of(extension), Evidence.of(torches[0])),
        )
