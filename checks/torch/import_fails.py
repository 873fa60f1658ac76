"""torch is installed and cannot be imported.

## What it finds
A torch on the interpreter's path whose import raised, crashed, or did not end in time, in a process of its own.

## Why it matters
No engine starts.

## What it cannot know
Which library is at fault; the message or the signal is quoted.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Remedy, TorchBuild, Unavailable, Undecided, check

PACKAGES = """\
{"schema": "diag/packages/1", "python": "3.11.7", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.18.44", "machine": "x86_64", "path": ["/opt/venv/lib/python3.11/site-packages"], \
"torch": {"__version__": "2.13.0+cpu", "debug": false, "cuda": null, "hip": null, "xpu": null}, "packages": [{"name": \
"torch", "version": "2.13.0+cpu", "location": "/opt/venv/lib/python3.11/site-packages", "installer": "pip"}]}
"""
BROKEN = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "error": "ImportError: libc10.so: cannot open \
shared object file: No such file or directory"}
"""
SOUND = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "import_seconds": 3.924, "build": {"version": \
"2.13.0+cpu", "cuda": null, "hip": null, "xpu": null, "debug": false, "git_version": \
"cf30153c4c131c8164ee7798e5022d810682e2cb", "architectures": []}, "available": false, "backend": "", "devices": []}
"""


@check(
    "torch/import-fails",
    severity="error",
    about="torch",
    needs=(),
    uses=(Package, TorchBuild, Unavailable),
    words={
        "en": {
            "title": "torch is installed and cannot be imported",
            "summary": "torch {version} cannot be imported: {reason}",
            "cause": "A library that torch loads is missing, of another build, or crashes on this machine.",
        },
        "zh": {
            "title": "torch 已安装但无法导入",
            "summary": "torch {version} 无法导入：{reason}",
            "cause": "torch 所加载的某个库缺失、与构建不匹配，或在本机上崩溃。",
        },
    },
    remedies=(
        Remedy(
            key="reinstall",
            title={
                "en": "Reinstall torch in a fresh environment, with the versions the engine pins",
                "zh": "在全新环境中按推理引擎锁定的版本重新安装 torch",
            },
            safety="manual",
            verify='python -c "import torch"',
        ),
    ),
    sources=("https://github.com/pytorch/pytorch/issues/47397",),
    fires=(PACKAGES + BROKEN,),
    silent=(PACKAGES + SOUND,),
)
def import_fails(facts: Facts) -> Iterator[Answer]:
    """Look for a torch that is there and a torch child that told nothing."""
    dead = next((one for one in facts.all(Unavailable) if one.what == "torch" and one.how == "failed"), None)
    installed = facts.package("torch") or facts.first(TorchBuild)
    if dead and installed and not dead.reason.startswith("stopped"):
        evidence = (Evidence.of(dead), Evidence.of(installed))
        yield Finding(values={"version": installed.version, "reason": dead.reason}, evidence=evidence)
    elif not any(one.available is not None for one in facts.all(TorchBuild)):
        yield Undecided(reason="nothing tells whether torch was imported")
