"""An extension for torch was built for another torch than the one that is there.

## What it finds
A distribution whose version says what it was built for (`flash_attn 2.8.3+cu12torch2.7cxx11abiTRUE`,
`torch_scatter 2.1.2+pt24cu121`) beside a torch of another series or with the other C++ ABI.

## Why it matters
The module is not loaded: `undefined symbol: _ZN3c10…` at the import, which an engine may take for "not installed".

## What it cannot know
What a distribution was built for whose version does not say it, as when it was compiled on this machine. Builds for
torch's stable interface run on newer releases and are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
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
    minor,
)

SERIES = expression(r"(?i)(?:torch(\d)\.(\d{1,2})|pt(\d)(\d{1,2})|pt(\d)\.(\d{1,2}))(?:\.\d+)?(?=$|\+|cu|cxx|cpu)")
ABI = expression(r"(?i)cxx11abi(true|false)")

FLASH_27 = """\
{"schema": "diag/packages/1", "python": "3.12.3", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.39", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": {"__version__": \
"2.10.0+cu128", "debug": false, "cuda": "12.8", "hip": null, "xpu": null, "git_version": null}, "packages": [{"name": \
"flash_attn", "version": "2.8.3+cu12torch2.7cxx11abiTRUE", "location": "/opt/venv/lib/python3.12/site-packages", \
"installer": "pip"}, {"name": "torch", "version": "2.10.0+cu128", "location": \
"/opt/venv/lib/python3.12/site-packages", "installer": "pip"}], "faults": []}
"""
FLASH_210 = FLASH_27.replace("cu12torch2.7cxx11abiTRUE", "cu12torch2.10cxx11abiTRUE")


@check(
    "python/abi-mismatch",
    severity="error",
    about="python",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(TorchBuild,),
    words={
        "en": {
            "title": "An extension was built for another torch",
            "summary": "{name} {version} was built for {built}; torch {torch} is installed",
            "cause": "torch was upgraded after the extension, or a wheel for another torch was chosen.",
        },
        "zh": {
            "title": "扩展是为另一个 torch 构建的",
            "summary": "{name} {version} 是为 {built} 构建的，而已安装的是 torch {torch}",
            "cause": "安装扩展之后 torch 被升级，或选择了为其他 torch 构建的 wheel。",
        },
    },
    remedies=(
        Remedy(
            key="wheel",
            title={
                "en": "Install the wheel of {name} whose name has this torch, CUDA, C++ ABI and Python",
                "zh": "安装文件名与当前 torch、CUDA、C++ ABI 和 Python 一致的 {name} wheel",
            },
            commands=(
                "python -V",
                "python -c 'import torch as t; print(t.__version__, t.version.cuda, t.compiled_with_cxx11_abi())'",
            ),
            safety="manual",
            verify='python -c "import torch, {module}"',
            source="https://github.com/Dao-AILab/flash-attention/issues/1644",
        ),
        Remedy(
            key="compile",
            title={
                "en": "Or compile it against the torch that is there",
                "zh": "或针对当前 torch 自行编译",
            },
            commands=(
                "pip install --force-reinstall --no-deps --no-build-isolation --no-cache-dir --no-binary {name} {name}",
            ),
            safety="disruptive",
            verify='python -c "import torch, {module}"',
            source="https://github.com/Dao-AILab/flash-attention/issues/1696",
        ),
    ),
    sources=(
        "https://github.com/mudler/LocalAI/pull/9557",
        "https://github.com/Dao-AILab/flash-attention/issues/1644",
        "https://github.com/Dao-AILab/flash-attention/issues/853",
    ),
    fires=(FLASH_27,),
    silent=(FLASH_210,),
)
def abi_mismatch(facts: Facts) -> Iterator[Answer]:
    """Compare what the versions of extensions say with the torch that is there."""
    torch = facts.package("torch")
    told = {one.name: one for one in facts.all(Package) if SERIES.search(local(one.version))}
    if torch is None or not told:
        yield Undecided(reason="torch, or a distribution whose version names the torch it was built for, is not told")
        return
    abi = next((one for one in facts.all(TorchBuild) if one.cxx11_abi is not None), None)
    for package in told.values():
        series, other = _series(package), ABI.search(local(package.version))
        wrong_abi = bool(abi and other and (other[1].lower() == "true") is not abi.cxx11_abi)
        if series != minor(torch.version) or wrong_abi:
            facts_told: tuple[Fact, ...] = (package, abi) if abi and wrong_abi else (package, torch)
            yield Finding(
                subject=package.name,
                confidence="high" if wrong_abi else "medium",
                values={
                    "name": package.name,
                    "module": package.name.replace("-", "_"),
                    "version": package.version,
                    "built": f"torch {series}" + (f", C++11 ABI {other[1].upper()}" if other else ""),
                    "torch": torch.version + (f" (C++11 ABI {str(abi.cxx11_abi).upper()})" if abi else ""),
                },
                evidence=tuple(map(Evidence.of, facts_told)),
            )


def _series(package: Package) -> str:
    """The series of torch that a version names."""
    found = SERIES.search(local(package.version))
    return ".".join(part for part in found.groups() if part) if found else ""
