"""torch_musa was made for another torch.

## What it finds
torch and torch_musa that do not belong together: each release of torch_musa is made for one release of torch, up to 2.1
under numbers of its own, from 2.7 on under torch's.

## Why it matters
torch_musa is compiled against that torch: with another it does not import (undefined symbols).

## What it cannot know
Whether the SDK (MUSA) and the driver fit as well. Releases of torch_musa that the table does not have are undecided.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    Remedy,
    TorchBuild,
    Undecided,
    at_least,
    check,
    minor,
)

MADE_FOR = {"1.2": "2.0", "1.3": "2.2", "2.0": "2.2", "2.1": "2.5"}
"""torch of each line of releases, by the notes of 1.2.1, 1.3.0, 2.0.0 and 2.1.0."""
SAME_FROM = "2.7"

OLD = "torch                   2.0.0+cpu\ntorch_musa              1.3.0\n"
FITS = "torch                   2.0.0+cpu\ntorch_musa              1.2.1\n"
NEWER_FITS = "torch==2.9.0+musa.4.3.6\ntorch_musa==2.9.0\nmkl==2024.0.0\n"


@check(
    "mthreads/torch-musa-mismatch",
    severity="error",
    about="mthreads",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(TorchBuild,),
    words={
        "en": {
            "title": "torch_musa does not fit the installed torch",
            "summary": "torch_musa {musa} is made for torch {wanted}; installed is {torch}",
            "cause": "torch was upgraded after torch_musa, or the two wheels are of different releases.",
        },
        "zh": {
            "title": "torch_musa 与已安装的 torch 不匹配",
            "summary": "torch_musa {musa} 面向 torch {wanted}，而已安装的是 {torch}",
            "cause": "安装 torch_musa 之后 torch 被升级，或两个 wheel 来自不同的发布版本。",
        },
    },
    remedies=(
        Remedy(
            key="pair",
            title={
                "en": "Install torch and torch_musa from one release of the vendor, or use its image",
                "zh": "安装厂商同一发布版本中的 torch 与 torch_musa，或使用厂商镜像",
            },
            safety="manual",
            verify='python -c "import torch, torch_musa; print(torch.musa.is_available())"',
            source="https://github.com/MooreThreads/torch_musa/blob/main/README.md",
        ),
    ),
    sources=(
        "https://github.com/MooreThreads/torch_musa/releases/tag/v1.2.1",
        "https://github.com/MooreThreads/torch_musa/releases/tag/v1.3.0",
        "https://github.com/MooreThreads/torch_musa/releases/tag/v2.0.0",
        "https://github.com/MooreThreads/torch_musa/releases/tag/v2.1.0",
        "https://github.com/MooreThreads/torch_musa/releases/tag/v2.7.0",
        "https://github.com/MooreThreads/torch_musa/releases/tag/2.11.0.post1",
        "https://github.com/MooreThreads/torch_musa/issues/63",
    ),
    explains=("torch/device-unavailable", "torch/import-fails"),
    fires=(OLD,),
    silent=(FITS, NEWER_FITS),
)
def torch_musa_mismatch(facts: Facts) -> Iterator[Answer]:
    """Compare torch with what the extension is made for."""
    extension = facts.package("torch-musa")
    torches = [one for one in (facts.package("torch"), *facts.all(TorchBuild)) if one and one.version]
    if extension is None or not torches:
        yield Undecided(reason="torch_musa and torch are not both told")
        return
    line = minor(extension.version)
    wanted = line if at_least(line, SAME_FROM) else MADE_FOR.get(line, "")
    if not wanted:
        yield Undecided(reason=f"nothing tells which torch torch_musa {extension.version} is made for")
    elif minor(torches[0].version) != wanted:
        values = {"musa": extension.version, "wanted": wanted, "torch": torches[0].version}
        yield Finding(values={**values}, evidence=(Evidence.of(extension), Evidence.of(torches[0])))
