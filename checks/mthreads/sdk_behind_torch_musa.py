"""The MUSA SDK is older than this torch_musa needs.

## What it finds
The version of the MUSA toolkit below the one that the notes of the installed release of torch_musa ask for: 5.1.0 for
2.9.1 and 2.11.0.

## Why it matters
torch_musa links against the libraries of that SDK: with an older one it does not import ("libmusa.so…: cannot open
shared object file", undefined symbols).

## What it cannot know
What other releases of torch_musa need: their notes name no least version.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Remedy, Runtime, Undecided, at_least, check, public

LEAST = {"2.9.1": "5.1.0", "2.11.0": "5.1.0"}

SDK_4_2 = """\
>> musa_version_query

musa_toolkits:
{
\t"version":\t"4.2.0",
\t"git branch":\t"release_musa_4.2.0",
\t"git tag":\t"No tag",
\t"commit id":\t"c5a0537662e1d1ac27e1d05100f9fb164808e654",
\t"commit date":\t"2025-07-08 17:02:25 +0800"
}
"""
NEW = "torch==2.9.0+musa5.2.0\ntorch_musa==2.9.1\n"
SDK_5_1 = """\
musa_runtime:
{
    "version":      "5.1.0",
    "git branch":   "release_musa_5.1.0",
    "commit id":    "xxxxxx"
}
"""


@check(
    "mthreads/sdk-behind-torch-musa",
    severity="warning",
    about="mthreads",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package, Runtime),
    words={
        "en": {
            "title": "The MUSA SDK is older than this torch_musa needs",
            "summary": "MUSA {sdk}; torch_musa {musa} needs {needed} or newer",
            "cause": "torch_musa was upgraded without the SDK.",
        },
        "zh": {
            "title": "MUSA SDK 版本低于 torch_musa 的要求",
            "summary": "MUSA 为 {sdk}；torch_musa {musa} 要求 {needed} 或更新版本",
            "cause": "升级了 torch_musa 而没有升级 MUSA SDK。",
        },
    },
    remedies=(
        Remedy(
            key="sdk",
            title={
                "en": "Install the MUSA SDK {needed} with its driver, or use the vendor's image of this torch_musa",
                "zh": "安装 MUSA SDK {needed} 及其配套驱动，或使用该 torch_musa 版本的厂商镜像",
            },
            safety="disruptive",
            verify="musa_version_query | grep -A1 -m1 musa_toolkits",
            source="https://github.com/MooreThreads/torch_musa/releases/tag/v2.9.1",
        ),
    ),
    sources=(
        "https://github.com/MooreThreads/torch_musa/releases/tag/v2.9.1",
        "https://github.com/MooreThreads/torch_musa/releases/tag/2.11.0.post1",
        "https://github.com/MooreThreads/torch_musa/issues/102",
        "https://github.com/MooreThreads/torch_musa/issues/138",
    ),
    explains=("torch/device-unavailable", "torch/import-fails"),
    fires=(SDK_4_2 + NEW,),
    silent=(SDK_5_1 + NEW,),
)
def sdk_behind_torch_musa(facts: Facts) -> Iterator[Answer]:
    """Compare the toolkit with what the release asks for."""
    extension = facts.package("torch-musa")
    toolkit = next((one for one in facts.all(Runtime) if one.name == "musa" and one.kind == "toolkit"), None)
    needed = LEAST.get(public(extension.version).partition(".post")[0], "") if extension else ""
    if extension is None or toolkit is None:
        yield Undecided(reason="torch_musa and the MUSA toolkit are not both told")
    elif not needed:
        yield Undecided(reason=f"nothing tells which SDK torch_musa {extension.version} needs")
    elif at_least(toolkit.version, needed) is False:
        values = {"sdk": toolkit.version, "musa": extension.version, "needed": needed}
        yield Finding(values={**values}, evidence=(Evidence.of(toolkit), Evidence.of(extension)))
