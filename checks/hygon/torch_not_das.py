"""On a Hygon machine torch is not the vendor's build.

## What it finds
A device of Hygon, and a torch whose version bears the mark of another index (`+cu128`, `+rocm6.3`), or that was built
for CUDA. The vendor's builds bear `das` or `dtk` (`2.9.0+das.opt1.dtk2604`).

## Why it matters
A torch for CUDA sees no device; AMD's has neither kernels for these devices (`gfx928`, `gfx936`, `gfx938`) nor a
runtime that speaks with Hygon's driver. Ordinary installs replace the vendor's build without a word.

## What it cannot know
A version without a local part tells nothing of itself: PyPI's have none, nor had some of the vendor's. A torch for the
CPU alone is another finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Fact,
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

VENDOR = ("das", "dtk")
OTHER = expression(r"(?:cu|rocm)[0-9]")

SMI = """\
{"card0": {"Device ID": "0x6210", "Card Series": "K100_AI", "Card Vendor": "Chengdu Haiguang IC Design Co., Ltd.", \
"Average Graphics Package Power (W)": "77.0", "Temperature (Sensor edge) (C)": "37.0", "HCU use (%)": "0.0", \
"vram Total Memory (MiB)": "65520", "vram Total Used Memory (MiB)": "2"}}
"""
UPSTREAM = "torch==2.13.0+cu130\ntorchvision==0.22.0+das.opt1.dtk2604.torch271\n"
VENDORS = "torch==2.7.1+das.opt1.dtk2604\ntorchvision==0.22.0+das.opt1.dtk2604.torch271\n"


@check(
    "hygon/torch-not-das",
    severity="error",
    about="hygon",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator,),
    uses=(Package, TorchBuild),
    words={
        "en": {
            "title": "torch is not Hygon's build",
            "summary": "torch {torch} on {device}: the build of another vendor",
            "cause": "A package that depends on torch pulled the one of the public index over the vendor's.",
        },
        "zh": {
            "title": "torch 不是海光 DAS 构建",
            "summary": "{device} 上安装的是 torch {torch}：其他厂商的构建",
            "cause": "安装依赖 torch 的软件包时，公共索引的 torch 覆盖了厂商版本。",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Start anew from the vendor's image, or install its wheel of torch for your DTK; install further "
                "packages without their dependencies",
                "zh": "用厂商镜像重新创建容器，或安装与 DTK 配套的 torch wheel；之后安装其他软件包时不要带依赖",
            },
            commands=('cat "$ROCM_PATH/.info/rocm_version"', "pip install --no-deps …"),
            safety="manual",
            verify='python -c "import torch; print(torch.__version__, torch.version.hip, torch.cuda.is_available())"',
            source="https://github.com/AlphaMine-Tech/alpha-miner/issues/18",
        ),
    ),
    sources=(
        "https://github.com/AlphaMine-Tech/alpha-miner/issues/18",
        "https://github.com/gpustack/gpustack/issues/2032",
    ),
    explains=("torch/built-for-another-vendor", "torch/device-unavailable", "torch/architecture-missing"),
    fires=(SMI + UPSTREAM,),
    silent=(SMI + VENDORS,),
)
def torch_not_das(facts: Facts) -> Iterator[Answer]:
    """Compare the device's maker with the mark of torch."""
    device = next((one for one in facts.all(Accelerator) if one.vendor == "hygon"), None)
    told = list(_torches(facts))
    if device is None or not told:
        yield Undecided(reason="a device of Hygon and the version of torch are not both told")
    elif any(one.available for one in facts.all(TorchBuild)) or any(_marked(local(version)) for _, version, _ in told):
        return
    elif foreign := next((one for one in told if OTHER.match(local(one[1])) or one[2] == "cuda"), None):
        yield Finding(
            values={"torch": foreign[1], "device": device.name or "Hygon DCU"},
            evidence=(Evidence.of(foreign[0]), Evidence.of(device)),
        )
    else:
        yield Undecided(reason=f"the version {told[0][1]} does not tell whose build it is")


def _torches(facts: Facts) -> Iterator[tuple[Fact, str, str]]:
    """What tells of torch, its version, and what it was built for where that is told."""
    for build in facts.all(TorchBuild):
        if build.version:
            yield build, build.version, build.backend
    if torch := facts.package("torch"):
        yield torch, torch.version, ""


def _marked(mark: str) -> bool:
    return any(word in mark for word in VENDOR)
