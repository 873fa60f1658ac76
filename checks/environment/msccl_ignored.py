"""A variable of MSCCL is set, and this RCCL has none.

## What it finds
`RCCL_MSCCL_…`, `RCCL_MSCCLPP_…` or `MSCCLPP_…` beside ROCm 7.13 or newer.

## Why it matters
It was set to make small all-reduces faster, or to switch a fault off, and does neither: AMD took MSCCL and MSCCL++ out
of RCCL and left their functions there without effect.

## What it cannot know
Which RCCL the process loads: that of torch's wheel may be older than the system's ROCm.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Remedy, Runtime, Setting, TorchBuild, Undecided, at_least, check

PREFIXES = ("RCCL_MSCCL", "MSCCLPP_", "MSCCL_")
WITHOUT = "7.13"

COLLECT_ENV = (
    "PyTorch version: 2.13.0\nIs debug build: False\nCUDA used to build PyTorch: N/A\n"
    "ROCM used to build PyTorch: %s\n\nexport RCCL_MSCCL_ENABLE=0\n"
)
NEW, OLD = COLLECT_ENV % "7.14.60850", COLLECT_ENV % "7.0.51831"


@check(
    "environment/msccl-ignored",
    severity="info",
    about="amd",
    needs=(Setting,),
    uses=(Runtime, TorchBuild),
    words={
        "en": {
            "title": "A variable of MSCCL has no effect",
            "summary": "{name}={value} is set, but RCCL of ROCm {version} has no MSCCL",
            "cause": "The variable was kept from an older release.",
        },
        "zh": {
            "title": "MSCCL 环境变量不再生效",
            "summary": "设置了 {name}={value}，但 ROCm {version} 的 RCCL 已不含 MSCCL",
            "cause": "该变量沿用自旧版本。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Take it out, and measure what it was set for anew",
                "zh": "删除该变量，并重新测量其原本要解决的问题",
            },
            commands=("unset {name}", "diag comm"),
            safety="safe",
            source="https://rocm.docs.amd.com/projects/rccl/en/docs-7.14.0/how-to/rccl-usage-tips.html",
        ),
    ),
    sources=(
        "https://rocm.docs.amd.com/projects/rccl/en/docs-7.14.0/how-to/rccl-usage-tips.html",
        "https://rocm.docs.amd.com/projects/rccl/en/7.13.0-preview/how-to/rccl-usage-tips.html",
        "https://rocm.docs.amd.com/projects/rccl/en/docs-7.0.2/how-to/rccl-usage-tips.html",
    ),
    fires=(NEW,),
    silent=(OLD,),
)
def msccl_ignored(facts: Facts) -> Iterator[Answer]:
    """The release that torch was built for, else the system's."""
    named = [one for name, one in sorted(facts.environment().items()) if name.startswith(PREFIXES)]
    versions = [one.backend_version for one in facts.all(TorchBuild) if one.backend == "rocm" and one.backend_version]
    versions += [one.version for one in facts.all(Runtime) if one.name in ("rocm", "hip")]
    if not named or not versions:
        yield Undecided(reason="no variable of MSCCL, or no release of ROCm is told")
        return
    if at_least(versions[0], WITHOUT):
        for setting in named:
            yield Finding(
                subject=setting.name,
                values={"name": setting.name, "value": setting.value, "version": versions[0]},
                evidence=(Evidence.of(setting),),
            )
