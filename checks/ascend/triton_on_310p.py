"""Triton is installed on NPUs of the 310P, which it does not support.

## What it finds
A device of the 310P (Atlas 300I Duo, 200I Pro), and `triton` or `triton-ascend` in the environment.

## Why it matters
vllm-ascend's guide names both as not supported on this chip, and its image for the 310P removes them.

## What it cannot know
Whether the environment serves other devices as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Package, PackageList, Remedy, Undecided, check

CHIP = "310P"
NAMES = ("triton-ascend", "triton")

SMI_310P = """\
+--------------------------------------------------------------------------------------------+
| npu-smi 22.0.0                       Version: 22.0.2                                       |
+-------------------+-----------------+------------------------------------------------------+
| NPU     Name      | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device    | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===================+=================+======================================================+
| 0       310P3     | OK              | 16.3         53                1236 / 1236           |
| 0       0         | 0000:86:00.0    | 0            4060 / 21534                            |
+===================+=================+======================================================+
"""
SMI_910B = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.3                   Version: 23.0.3                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B2C              | OK            | 89.9        53                0    / 0             |
| 0                         | 0000:5A:00.0  | 0           0    / 0          3317 / 65536         |
"""
WITH = """\
[pip3] torch==2.8.0+cpu
[pip3] torch_npu==2.8.0
[pip3] torchvision==0.23.0
[pip3] transformers==4.57.1
[pip3] triton-ascend==3.2.0.dev2025123114
"""


@check(
    "ascend/triton-on-310p",
    severity="warning",
    about="ascend",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator, Package),
    uses=(PackageList,),
    words={
        "en": {
            "title": "Triton is installed on a 310P",
            "summary": "{package} {version} is installed; {device} does not support it",
            "cause": "The environment was made for the 910B, or a dependency brought the package.",
        },
        "zh": {
            "title": "310P 上安装了 Triton",
            "summary": "已安装 {package} {version}，而 {device} 不支持",
            "cause": "环境是为 910B 准备的，或由其他依赖带入。",
        },
    },
    remedies=(
        Remedy(
            key="remove",
            title={"en": "Remove both packages from the environment", "zh": "从环境中卸载这两个包"},
            commands=("pip uninstall triton triton-ascend",),
            safety="manual",
            verify="pip list | grep -i triton",
            source="https://docs.vllm.ai/projects/ascend/en/v0.26.0rc1/installation.html",
        ),
    ),
    sources=("https://docs.vllm.ai/projects/ascend/en/v0.26.0rc1/installation.html",),
    fires=(SMI_310P + WITH,),
    silent=(SMI_910B + WITH,),
)
def triton_on_310p(facts: Facts) -> Iterator[Answer]:
    """Compare the chip with the packages."""
    named = [one for one in facts.all(Accelerator) if one.vendor == "ascend" and one.name]
    chip = next((one for one in named if CHIP in one.name), None)
    package = next((found for name in NAMES if (found := facts.package(name))), None)
    if chip and package:
        yield Finding(
            values={"package": package.name, "version": package.version, "device": chip.name},
            evidence=(Evidence.of(package), Evidence.of(chip)),
        )
    elif not named or (chip and not facts.first(PackageList)):
        yield Undecided(reason="the chip's name and all packages are not both told")
