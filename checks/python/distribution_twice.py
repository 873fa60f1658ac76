"""A folder holds two versions of one distribution.

## What it finds
Two `*.dist-info` folders of one distribution with different versions in one folder of the path.

## Why it matters
The files of one overwrote those of the other, and what asks for the version may be answered either: an engine passes
its tests of versions with modules that are another version.

## What it cannot know
Which of the two the modules belong to.
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

TWO = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}, {"name": "torchvision", \
"version": "0.29.0", "location": "/opt/shared/site-packages", "installer": "", "tag": \
"cp312-cp312-manylinux_2_28_x86_64", "requires": [["torch", "==2.14.0"]]}], "faults": [{"name": "torchvision", \
"version": "0.29.0", "problem": "twice", "location": "/opt/shared/site-packages"}]}
"""
WHOLE = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}], "faults": []}
"""


@check(
    "python/distribution-twice",
    severity="warning",
    about="python",
    needs=(PackageList, Python),
    uses=(PackageFault,),
    words={
        "en": {
            "title": "Two versions of a distribution stand in one folder",
            "summary": "{name} stands twice in {location}, in different versions",
            "cause": "One was installed over the other: by another installer, with --target, by copying, or by an "
            "interrupted upgrade.",
        },
        "zh": {
            "title": "同一目录中有同一软件包的两个版本",
            "summary": "{location} 中的 {name} 有两个不同版本",
            "cause": "后装的覆盖了先装的：使用了其他安装器、--target、复制，或升级被中断。",
        },
    },
    remedies=(
        Remedy(
            key="reinstall",
            title={
                "en": "Uninstall it until nothing is left, then install it once",
                "zh": "反复卸载直到不再残留，然后只安装一次",
            },
            commands=(
                "ls -d {location}/*.dist-info",
                "pip uninstall -y {name}",
                "pip uninstall -y {name}",
                'pip install --no-deps "{name}==…"',
            ),
            safety="disruptive",
            verify="pip check",
            source="https://github.com/pypa/build/issues/626",
        ),
    ),
    sources=(
        "https://github.com/pypa/build/issues/626",
        "https://github.com/pytorch/vision/issues/9174",
    ),
    fires=(TWO,),
    silent=(WHOLE,),
)
def distribution_twice(facts: Facts) -> Iterator[Answer]:
    """Each distribution that stands twice."""
    if not any(one.prefix for one in facts.all(Python)):
        yield Undecided(reason="a list of packages alone does not tell whether they are whole")
    for fault in dict.fromkeys(facts.all(PackageFault)):
        if fault.problem == "twice":
            yield Finding(
                subject=fault.name,
                values={"name": fault.name, "location": fault.location},
                evidence=(Evidence.of(fault),),
            )
