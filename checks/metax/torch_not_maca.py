"""On a MetaX machine torch is not the vendor's build.

## What it finds
A device of MetaX that its tool or the bus shows, and a torch with the mark of another index (`+cu128`, `+rocm6.3`). The
vendor's builds bear `metax` (`2.8.0+metax3.5.3.9`), as its plug-in for vLLM pins them.

## Why it matters
MACA poses as CUDA, but a torch that was built for NVIDIA does not run on it. Ordinary installs replace the vendor's
build without a word.

## What it cannot know
A version without a local part tells nothing of itself.
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
    Remedy,
    TorchBuild,
    Undecided,
    check,
    expression,
    local,
)

VENDOR = "metax"
OTHER = expression(r"(?:cu|rocm)[0-9]")

SMI = """\
+---------------------------------------------------------------------------------+
| MX-SMI 2.1.6                        Kernel Mode Driver Version: 2.5.014         |
| MACA Version: 2.23.0.1018           BIOS Version: 1.13.5.0                      |
|------------------------------------+---------------------+----------------------+
| GPU         NAME                   | Bus-id              | GPU-Util             |
| Temp        Power                  | Memory-Usage        |                      |
|====================================+=====================+======================|
| 0           MXC500                 | 0000:05:00.0        | 0%                   |
| 51C         71W                    | 60982/65536 MiB     |                      |
"""
UPSTREAM = "PyTorch version: 2.7.1+cu128\nIs debug build: False\nCUDA used to build PyTorch: 12.8\n"
VENDORS = """\
[pip3] torch==2.6.0+metax3.0.0.3
[pip3] torchaudio==2.4.1+metax3.0.0.3
[pip3] torchvision==0.15.1+metax3.0.0.3
[pip3] transformers==4.55.4
[pip3] triton==3.0.0+metax3.0.0.3
"""


@check(
    "metax/torch-not-maca",
    severity="error",
    about="metax",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator,),
    uses=(Package, TorchBuild),
    words={
        "en": {
            "title": "torch is not MetaX's build",
            "summary": "torch {torch} on {device}: the build of another vendor",
            "cause": "A package that depends on torch pulled the one of the public index over the vendor's.",
        },
        "zh": {
            "title": "torch 不是沐曦构建",
            "summary": "{device} 上安装的是 torch {torch}：其他厂商的构建",
            "cause": "安装依赖 torch 的软件包时，公共索引的 torch 覆盖了厂商版本。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Start anew from the vendor's image, or install the torch that vllm-metax pins for your MACA; "
                "install further packages without their dependencies",
                "zh": "用厂商镜像重新创建容器，或安装 vllm-metax 针对所用 MACA 锁定的 torch；"
                "之后安装其他软件包时不要带依赖",
            },
            commands=("mx-smi", "pip install --no-deps …"),
            safety="manual",
            verify='python -c "import torch; print(torch.__version__, torch.cuda.is_available())"',
            source="https://github.com/MetaX-MACA/vLLM-metax/issues/147",
        ),
    ),
    sources=(
        "https://github.com/MetaX-MACA/vLLM-metax/issues/48",
        "https://github.com/MetaX-MACA/vLLM-metax/issues/147",
    ),
    explains=("torch/built-for-another-vendor", "torch/device-unavailable", "torch/architecture-missing"),
    fires=(SMI + UPSTREAM, "$ diag matrix check gpu=C500 torch==2.7.1+cu128"),
    silent=(SMI + VENDORS, "$ diag matrix check gpu=C500 torch==2.6.0+metax3.0.0.3"),
)
def torch_not_maca(facts: Facts) -> Iterator[Answer]:
    """Compare the device's maker with the mark of torch."""
    own = [one for one in facts.all(Accelerator) if one.vendor == "metax" and one.seen_by in ("tool", "pci", "asked")]
    told: list[Package | TorchBuild] = [one for one in facts.all(TorchBuild) if one.version]
    told += [one for one in facts.all(Package) if one.name == "torch"]
    if not own or not told:
        yield Undecided(reason="a device of MetaX and the version of torch are not both told")
    elif any(one.available for one in facts.all(TorchBuild)) or any(VENDOR in local(one.version) for one in told):
        return
    elif foreign := next((one for one in told if OTHER.match(local(one.version))), None):
        yield Finding(
            values={"torch": foreign.version, "device": own[0].name or "MetaX"},
            evidence=(Evidence.of(foreign), Evidence.of(own[0])),
        )
    else:
        yield Undecided(reason=f"the version {told[0].version} does not tell whose build it is")
