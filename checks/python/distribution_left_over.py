"""An interrupted uninstallation left a folder.

## What it finds
A folder whose name begins with `~`, into which pip had moved a distribution that it was about to remove, or the warning
that pip prints of it.

## Why it matters
pip warns at every call. The folder holds the old files (gigabytes for torch), and shows that an upgrade did not come to
its end, so that the distribution itself may be in pieces.

## What it cannot know
Whether the distribution that was being replaced is whole: other checks look at that.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, PackageFault, Remedy, check

PIP_23 = """\
WARNING: Ignoring invalid distribution -orch (/home/user/.conda/envs/rl/lib/python3.7/site-packages)
Requirement already satisfied: torch==1.12.0 in /home/user/.conda/envs/rl/lib/python3.7/site-packages \
(from lightridge) (1.12.0)
"""
PIP_25 = """\
    WARNING: Ignoring invalid distribution ~orch (/opt/conda/lib/python3.12/site-packages)
    langchain                                0.1.16
"""
LEFT = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}, {"name": "torchvision", \
"version": "0.29.0", "location": "/opt/shared/site-packages", "installer": "", "tag": \
"cp312-cp312-manylinux_2_28_x86_64", "requires": [["torch", "==2.14.0"]]}], "faults": [{"name": "~orchaudio", \
"problem": "leftover", "location": "/opt/shared/site-packages"}]}
"""
OTHER = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}, {"name": "torchvision", \
"version": "0.29.0", "location": "/opt/shared/site-packages", "installer": "", "tag": \
"cp312-cp312-manylinux_2_28_x86_64", "requires": [["torch", "==2.14.0"]]}], "faults": [{"name": "torchvision", \
"version": "0.29.0", "problem": "twice", "location": "/opt/shared/site-packages"}]}
"""


@check(
    "python/distribution-left-over",
    severity="info",
    about="python",
    needs=(PackageFault,),
    words={
        "en": {
            "title": "An interrupted uninstallation left its files",
            "summary": "{location} holds {name}, which pip ignores",
            "cause": "pip was stopped, or could not remove a file that was in use, while it replaced the distribution.",
        },
        "zh": {
            "title": "中断的卸载留下了文件",
            "summary": "{location} 中有 pip 忽略的 {name}",
            "cause": "pip 在替换该软件包时被中止，或因文件被占用而无法删除。",
        },
    },
    remedies=(
        Remedy(
            key="remove",
            title={
                "en": "Remove the folders (their files are deleted), and see that torch still imports",
                "zh": "删除这些目录（其中文件将被永久删除），并确认 torch 仍可导入",
            },
            commands=(
                "ls -d {location}/~*",
                "rm -r {location}/{name}*",
            ),
            safety="manual",
            verify="pip check",
            source="https://github.com/pypa/pip/issues/9906",
        ),
    ),
    sources=(
        "https://github.com/pypa/pip/issues/9906",
        "https://github.com/torch-points3d/torch-points3d/issues/654",
    ),
    fires=(
        PIP_23,
        PIP_25,
        LEFT,
    ),
    silent=(OTHER,),
)
def distribution_left_over(facts: Facts) -> Iterator[Answer]:
    """Each folder that pip left."""
    for fault in {one.name: one for one in facts.all(PackageFault)}.values():
        if fault.problem == "leftover":
            yield Finding(
                subject=fault.name,
                values={"name": fault.name, "location": fault.location},
                evidence=(Evidence.of(fault),),
            )
