"""A distribution is listed although its modules are gone.

## What it finds
One of the distributions that an engine is made of whose metadata stands on the path, and none of the modules that it
brought stands beside it.

## Why it matters
The import fails, or another copy of the module is found further along the path, while every list of packages still
names the version.

## What it cannot know
Modules that are found by a hook of their own. Editable installations are left out, and so is a distribution that does
not list its modules.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Package,
    PackageFault,
    PackageList,
    Python,
    Remedy,
    Undecided,
    check,
)

GONE = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}, {"name": "torchvision", \
"version": "0.29.0", "location": "/opt/shared/site-packages", "installer": "", "tag": \
"cp312-cp312-manylinux_2_28_x86_64", "requires": [["torch", "==2.14.0"]]}], "faults": [{"name": "xformers", \
"version": "0.0.32.post1", "problem": "unimportable", "location": "/opt/shared/site-packages"}]}
"""
WHOLE = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "torchvision", "version": "0.23.0", "location": "/opt/shared/site-packages", "installer": "pip", \
"tag": "cp311-cp311-manylinux_2_28_x86_64", "requires": [["torch", "==2.8.0"]]}], "faults": []}
"""


@check(
    "python/distribution-broken",
    severity="error",
    about="python",
    needs=(PackageList, Python),
    uses=(Package, PackageFault),
    words={
        "en": {
            "title": "An installed distribution has lost its files",
            "summary": "{name} is listed in {location}, and its modules are not there",
            "cause": "An uninstallation or an upgrade was interrupted, a folder was removed by hand, or only metadata "
            "was copied.",
        },
        "zh": {
            "title": "已安装的软件包丢失了文件",
            "summary": "{location} 中列有 {name}，但其模块不存在",
            "cause": "卸载或升级被中断，目录被手动删除，或只复制了元数据。",
        },
    },
    remedies=(
        Remedy(
            key="reinstall",
            title={
                "en": "Install {name} again from the index that it came from, without its dependencies",
                "zh": "从原来的索引重新安装 {name}，不带依赖",
            },
            commands=('pip install --force-reinstall --no-deps "{name}=={version}"',),
            safety="disruptive",
            verify="pip check",
            source="https://github.com/pypa/pip/issues/9906",
        ),
    ),
    sources=("https://github.com/pypa/pip/issues/9906",),
    fires=(GONE,),
    silent=(WHOLE,),
    explains=("torch/import-fails", "torch/missing"),
)
def distribution_broken(facts: Facts) -> Iterator[Answer]:
    """Each distribution without its modules."""
    if not any(one.prefix for one in facts.all(Python)):
        yield Undecided(reason="a list of packages alone does not tell whether they are whole")
    for fault in dict.fromkeys(facts.all(PackageFault)):
        package = facts.package(fault.name)
        if fault.problem == "unimportable":
            yield Finding(
                subject=fault.name,
                values={"name": fault.name, "location": fault.location, "version": package.version if package else "…"},
                evidence=(Evidence.of(fault),),
            )
