"""A distribution has no metadata.

## What it finds
A `*.dist-info` folder without the file METADATA.

## Why it matters
Its version cannot be read: `importlib.metadata.version` answers None or raises, on which pip and packages that test
versions at their import (transformers, vLLM plug-ins) end in a TypeError.

## What it cannot know
Whether anything asks for this version, and whether the modules of the distribution are whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    PackageFault,
    PackageList,
    Python,
    Remedy,
    Undecided,
    check,
)

EMPTY = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}, {"name": "torchvision", \
"version": "0.29.0", "location": "/opt/shared/site-packages", "installer": "", "tag": \
"cp312-cp312-manylinux_2_28_x86_64", "requires": [["torch", "==2.14.0"]]}], "faults": [{"name": "numpy", \
"version": "2.2.6", "problem": "no-metadata", "location": "/opt/shared/site-packages"}]}
"""
WHOLE = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}], "faults": []}
"""


@check(
    "python/distribution-without-metadata",
    severity="warning",
    about="python",
    needs=(PackageList, Python),
    uses=(PackageFault,),
    words={
        "en": {
            "title": "An installed distribution has no metadata",
            "summary": "{name} in {location} has no METADATA",
            "cause": "An uninstallation was interrupted, or left the folder because a file had been added to it.",
        },
        "zh": {
            "title": "已安装的软件包缺少元数据",
            "summary": "{location} 中的 {name} 没有 METADATA",
            "cause": "卸载被中断，或因目录中有后来添加的文件而残留。",
        },
    },
    remedies=(
        Remedy(
            key="remove",
            title={
                "en": "Look at the folder, remove it where it is a remnant, and install {name} again if needed",
                "zh": "查看该目录，若是残留则删除；如仍需要，再重新安装 {name}",
            },
            commands=("ls -d {location}/*.dist-info",),
            safety="manual",
            verify="pip check",
            source="https://github.com/pypa/build/issues/626",
        ),
    ),
    sources=(
        "https://github.com/pypa/build/issues/626",
        "https://github.com/python/cpython/issues/91216",
    ),
    fires=(EMPTY,),
    silent=(WHOLE,),
)
def distribution_without_metadata(facts: Facts) -> Iterator[Answer]:
    """Each distribution without metadata."""
    if not any(one.prefix for one in facts.all(Python)):
        yield Undecided(reason="a list of packages alone does not tell whether they are whole")
    for fault in dict.fromkeys(facts.all(PackageFault)):
        if fault.problem == "no-metadata":
            yield Finding(
                subject=fault.name,
                values={"name": fault.name, "location": fault.location},
                evidence=(Evidence.of(fault),),
            )
