"""NumPy 2 beside a torch that was compiled against NumPy 1.

## What it finds
A released torch older than 2.3, the first that knows NumPy 2, in one list with NumPy 2 or newer.

## Why it matters
torch cannot use NumPy then: it warns at the import that a module compiled using NumPy 1.x cannot be run, and whatever
passes arrays to tensors ends in "Numpy is not available".

## What it cannot know
Other extension modules that were compiled against NumPy 1, and builds of torch of one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Remedy, Undecided, check, expression, satisfies

RELEASED = expression(r"\d+\.\d+\.\d+(?:\.post\d+)?(?:\+(?:cu\d{2,3}|cpu|rocm\d[\d.]*))?")

ENV_NUMPY_1 = """\
[pip3] numpy==1.23.5
[pip3] torch==2.0.1+cu117
[pip3] torchaudio==2.0.2+cu117
[pip3] torchvision==0.15.2
"""
ENV_TORCH_214 = """\
[pip3] numpy==2.3.5
[pip3] torch==2.14.0
[pip3] torchaudio==2.11.0
[pip3] torchvision==0.29.0
"""
ENV_TORCH_22 = """\
Versions of relevant libraries:
[pip3] numpy==2.2.6
[pip3] torch==2.2.2+cpu
[pip3] torchvision==0.17.2+cpu
"""


@check(
    "python/numpy-abi",
    severity="error",
    about="python",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    words={
        "en": {
            "title": "NumPy is newer than this torch can use",
            "summary": "numpy {numpy} beside torch {torch}, which was compiled against NumPy 1",
            "cause": "NumPy 2 changed its binary interface; torch 2.3 is the first release that was compiled for it.",
        },
        "zh": {
            "title": "NumPy 版本过新，该 torch 无法使用",
            "summary": "numpy {numpy} 与 torch {torch} 并存，而后者是基于 NumPy 1 编译的",
            "cause": "NumPy 2 改变了二进制接口，torch 2.3 起才针对它编译。",
        },
    },
    remedies=(
        Remedy(
            key="older-numpy",
            title={"en": "Go back to NumPy 1", "zh": "将 NumPy 降级到 1.x"},
            commands=('pip install "numpy<2"',),
            safety="disruptive",
            verify='python -c "import torch; print(torch.zeros(1).numpy())"',
            source="https://github.com/pytorch/pytorch/issues/132179",
        ),
        Remedy(
            key="newer-torch",
            title={"en": "Or use torch 2.3 or newer", "zh": "或使用 torch 2.3 及以上版本"},
            safety="manual",
            verify='python -c "import torch; print(torch.zeros(1).numpy())"',
            source="https://github.com/pytorch/pytorch/issues/107302",
        ),
    ),
    sources=(
        "https://github.com/pytorch/pytorch/issues/132179",
        "https://github.com/pytorch/pytorch/issues/107302",
        "https://github.com/vllm-project/vllm/issues/5594",
    ),
    fires=(ENV_TORCH_22,),
    silent=(ENV_NUMPY_1, ENV_TORCH_214),
)
def numpy_abi(facts: Facts) -> Iterator[Answer]:
    """Compare the two versions, where one list has both."""
    torch, numpy = facts.package("torch"), facts.package("numpy")
    if not torch or not numpy:
        yield Undecided(reason="torch and numpy are not both among the packages")
    elif not RELEASED.fullmatch(torch.version):
        yield Undecided(reason=f"torch {torch.version} is no release")
    elif satisfies(torch.version, "<2.3") and satisfies(numpy.version, ">=2"):
        values = {"numpy": numpy.version, "torch": torch.version}
        yield Finding(values={**values}, evidence=(Evidence.of(numpy), Evidence.of(torch)))
