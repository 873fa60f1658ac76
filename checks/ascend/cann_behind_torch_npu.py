"""CANN is older than the one this torch_npu is paired with.

## What it finds
The version of the CANN toolkit below the oldest that Huawei's tables (or that of vllm-ascend) pair with the installed
release of torch_npu.

## Why it matters
torch_npu calls what the toolkit does not have: undefined symbols at import, or operators that fail when they are first
compiled.

## What it cannot know
Which of several toolkits a process loads: where they differ, undecided. A release of torch_npu with a date, or a test
build of CANN (`8.0.T6`), has no row.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    Reference,
    Remedy,
    Runtime,
    Undecided,
    check,
    expression,
    public,
)

SHAPE = expression(r"([0-9]{1,3})\.([0-9]{1,3})\.(RC|rc)?([0-9]{1,3})(?:\.(?:beta)?[0-9]{1,3})*")

CANN_8_0_0 = """\
package_name=Ascend-cann-toolkit
version=8.0.0
innerversion=V100R001C20SPC001B251
compatible_version=[V100R001C15],[V100R001C17],[V100R001C18],[V100R001C19],[V100R001C20]
arch=aarch64
os=linux
path=/usr/local/Ascend/ascend-toolkit/8.0.0/aarch64-linux
"""
CANN_8_3_RC1 = """\
package_name=Ascend-cann-toolkit
version=8.3.RC1
innerversion=V100R001C23SPC001B235
compatible_version=[V100R001C15],[V100R001C18],[V100R001C19],[V100R001C20],[V100R001C21],[V100R001C23]
arch=aarch64
os=linux
path=/usr/local/Ascend/ascend-toolkit/8.3.RC1/aarch64-linux
"""
NPU_2_7_1 = "[pip3] torch==2.7.1+cpu\n[pip3] torch_npu==2.7.1\n[pip3] torchvision==0.22.1\n"


class PairedToolkit(Reference, frozen=True, kw_only=True):
    """The oldest release of a vendor's toolkit that a release of its extension of torch is paired with."""

    package: str
    version: str
    toolkit: str


@check(
    "ascend/cann-behind-torch-npu",
    severity="warning",
    about="ascend",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package, Runtime),
    uses=(PairedToolkit,),
    words={
        "en": {
            "title": "CANN is older than this torch_npu needs",
            "summary": "CANN {cann}; torch_npu {npu} is paired with {needed} or newer",
            "cause": "torch_npu was upgraded without the toolkit, or an image's toolkit is older than the wheel.",
        },
        "zh": {
            "title": "CANN 版本低于 torch_npu 的配套要求",
            "summary": "CANN 为 {cann}；torch_npu {npu} 配套的 CANN 为 {needed} 或更新版本",
            "cause": "升级了 torch_npu 而没有升级 CANN，或镜像中的 CANN 比 wheel 旧。",
        },
    },
    remedies=(
        Remedy(
            key="pair",
            title={
                "en": "Install CANN {needed} (toolkit, kernels and NNAL of one release), or the torch_npu that is "
                "paired with CANN {cann}",
                "zh": "安装 CANN {needed}（toolkit、kernels 与 NNAL 同一版本），或改用与 CANN {cann} 配套的 torch_npu",
            },
            safety="manual",
            verify='python -c "import torch, torch_npu; print(torch.ones(2).npu() + 1)"',
            source="https://www.hiascend.com/document/detail/zh/Pytorch/720/releasenote/releasenote_0003.html",
        ),
    ),
    sources=(
        "https://www.hiascend.com/document/detail/zh/Pytorch/720/releasenote/releasenote_0003.html",
        "https://hiascend.com/document/detail/zh/Pytorch/600/quickstart/releasenote/releasenote_0001.html",
        "https://github.com/vllm-project/vllm-ascend/issues/117",
    ),
    fires=(CANN_8_0_0 + NPU_2_7_1,),
    silent=(CANN_8_3_RC1 + NPU_2_7_1,),
)
def cann_behind_torch_npu(facts: Facts) -> Iterator[Answer]:
    """Compare the toolkit with the row of the installed release."""
    extension = facts.package("torch-npu")
    toolkits = [one for one in facts.all(Runtime) if one.name == "cann"]
    rows = [one for one in facts.all(PairedToolkit) if extension and one.version == public(extension.version)]
    if not extension or len({one.version for one in toolkits}) != 1:
        yield Undecided(reason="torch_npu and a single CANN are not both told")
        return
    have = _read(toolkits[0].version)
    need = _read(rows[0].toolkit) if rows else None
    if have is None or need is None:
        yield Undecided(reason=f"no row tells which CANN torch_npu {extension.version} needs, or CANN is a test build")
    elif have < need:
        yield Finding(
            values={"cann": toolkits[0].version, "npu": extension.version, "needed": rows[0].toolkit},
            evidence=(Evidence.of(toolkits[0]), Evidence.of(extension)),
        )


def _read(version: str) -> tuple[int, int, bool, int] | None:
    """A release, in order: its candidates (`8.3.RC2`) come before it (`8.3.0`)."""
    found = SHAPE.fullmatch(version)
    return (int(found[1]), int(found[2]), not found[3], int(found[4])) if found else None
