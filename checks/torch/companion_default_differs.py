"""torchvision or torchaudio, or torch, is the default build beside one for another major version of CUDA.

## What it finds
One of the two bears its runtime in the local part of its version (`torch 2.10.0+cu130`), or torch told it; the other
has none, as the package index serves it (`torchvision 0.25.0`), and what that index serves of it for Linux on x86-64 is
built for another major version of CUDA: that of torch's release which the companion was built with.

## Why it matters
torchvision and torchaudio test it at their import and raise "Detected that PyTorch and torchvision were compiled with
different CUDA major versions". Installers take a version without a local part for met and leave the other build alone.

## What it cannot know
Whether the one without a local part was compiled on the machine, or came from another index, as the one that a file of
requirements may name: hence a warning, at medium confidence. conda's builds are left out. On ARM the index serves other
builds, on Windows and macOS those for the CPU: nothing is said there, nor where one maker's software poses as the other
one's. Where both name their runtime, torch/companion-backend-differs compares them; a companion of another release of
torch is python/companion-mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    Accelerator,
    Answer,
    Component,
    DeviceModel,
    Evidence,
    Fact,
    Facts,
    Finding,
    Host,
    Package,
    Pin,
    Platform,
    Release,
    Remedy,
    TorchBuild,
    Undecided,
    Vendor,
    check,
    devices,
    expression,
    local,
    machines_of,
    minor,
    numbers,
    posed,
    public,
    same,
    satisfies,
)

CUDA = expression(r"cu(\d{2})(\d)")
RELEASED = expression(r"\d+(?:\.\d+){1,2}")
COMPANIONS = ("torchvision", "torchaudio")
X86 = "x86_64"
"""The machine of which the default builds are known."""

FREEZE_CU129 = """\
torch==2.13.0+cu129
torchaudio==2.11.0+cu129
torchvision==0.28.0
"""
LIST_CU118 = """\
Package                  Version
------------------------ ------------
torch                    2.1.0
torchvision              0.16.0+cu118
"""
ENV_CU130 = """\
PyTorch version: 2.10.0+cu130
Is debug build: False
CUDA used to build PyTorch: 13.0

OS: Ubuntu 22.04.5 LTS (x86_64)

Versions of relevant libraries:
[pip3] torch==2.10.0+cu130
[pip3] torchvision==0.25.0
"""
ENV_CU128 = ENV_CU130.replace("cu130", "cu128").replace("13.0", "12.8")
ENV_ARM = ENV_CU130.replace("x86_64", "aarch64")
ENV_WINDOWS = ENV_CU130.replace("Ubuntu 22.04.5 LTS (x86_64)", "Microsoft Windows 11 Pro (10.0.26100 64-bit)")
ASKED = "$ diag matrix check "


class Built(NamedTuple):
    """What one of the two is built for: the version of CUDA, what tells it, the release it is the default build of."""

    cuda: str
    fact: Fact
    release: Release | None = None


@check(
    "torch/companion-default-differs",
    severity="warning",
    about="torch",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(Accelerator, Component, DeviceModel, Host, Pin, Platform, Release, TorchBuild, Vendor),
    words={
        "en": {
            "title": "torch and a companion come from indexes for different CUDA versions",
            "summary": "{name} {version} is for CUDA {other}; torch {torch} for CUDA {own} ({default} is the default "
            "build of the package index)",
            "cause": "One of the two came from the index of a CUDA version, the other from the package index, which "
            "serves the build for one version of CUDA alone.",
        },
        "zh": {
            "title": "torch 与其配套包来自不同 CUDA 版本的索引",
            "summary": "{name} {version} 面向 CUDA {other}，而 torch {torch} 面向 CUDA {own}"
            "（{default} 为软件包索引的默认构建）",
            "cause": "二者之一来自某 CUDA 版本的索引，另一个来自软件包索引，后者只提供面向一个 CUDA 版本的构建。",
        },
    },
    remedies=(
        Remedy(
            key="same-index",
            title={
                "en": "Install {name} again from the index of torch's build: a version that is met already is left "
                "alone unless it is forced",
                "zh": "从 torch 构建对应的索引强制重新安装 {name}：若不强制，版本已满足时不会替换",
            },
            commands=(
                'pip install --force-reinstall --no-deps "{name}=={public}" '
                "--index-url https://download.pytorch.org/whl/{index}",
            ),
            safety="disruptive",
            verify='python -c "import {name}; print({name}.__version__)"',
            source="https://github.com/m-bain/frozen-in-time/pull/7",
        ),
    ),
    sources=(
        "https://github.com/m-bain/frozen-in-time/pull/7",
        "https://github.com/deforum/deforum-stable-diffusion/issues/348",
        "https://github.com/pytorch/audio/releases/tag/v2.11.1",
    ),
    fires=(
        *(FREEZE_CU129, LIST_CU118, ENV_CU130),
        ASKED + "torch==2.10.0+cu130 torchvision==0.25.0",
        ASKED + "torch==2.11.0 torchvision==0.26.0+cu128 sglang==0.5.11",
        ASKED + "vllm==0.20.0 torchaudio==2.11.0+cu129",
    ),
    silent=(
        ENV_CU128,
        FREEZE_CU129.replace("0.28.0", "0.28.0+cu129"),
        FREEZE_CU129.replace("cu129", "cu130"),
        LIST_CU118.replace("cu118", "cu121"),
        ASKED + "torch==2.11.0 torchvision==0.26.0+cu130",
        ASKED + "torch==2.9.1+cu126 torchvision==0.24.1",
    ),
)
def companion_default_differs(facts: Facts) -> Iterator[Answer]:
    """Compare what one names with the default build of the other."""
    if reason := _elsewhere(facts):
        yield Undecided(reason=reason)
        return
    version, own = _torch(facts)
    judged = False
    for companion in filter(None, map(facts.package, COMPANIONS)) if own else ():
        other = _companion(facts, companion, version)
        # Without a local part on either side both come from the same index, whichever that is.
        if own and other and not (own.release and other.release):
            judged = True
            defaults = bool(own.release or other.release)
            if defaults and numbers(own.cuda)[:1] != numbers(other.cuda)[:1]:
                yield _finding(companion, version, own, other)
    if not judged:
        yield Undecided(reason="no torch and companion of which one names its CUDA and the other's default is known")


def _elsewhere(facts: Facts) -> str:
    """Why the default builds are not those for Linux on x86-64; empty where nothing says so."""
    elsewhere = any("Windows" in one.os or "mac" in one.os for one in facts.all(Host))
    if elsewhere or machines_of(facts, devices(facts)) - {X86}:
        return "the package index serves other builds for this machine"
    return "another maker's build" if posed(facts) else ""


def _torch(facts: Facts) -> tuple[str, Built | None]:
    """The version of torch and what it is built for: as its version or its own report says, else the default."""
    package = facts.package("torch")
    if package and (cuda := _named(package.version)):
        return package.version, Built(cuda, package)
    asked = {one.origin for one in facts.all(Component)}
    for build in facts.all(TorchBuild):
        if build.backend != "cuda" or (package and not same(build.version, package.version)):
            continue
        if build.inferred:
            return build.version, _default(facts, build.version, f"=={public(build.version)}", build)
        # A wheel's own report names its CUDA in the version; one that does not is of conda, a distribution or its user.
        if build.origin not in asked:
            return (build.version, Built(cuda, build)) if (cuda := _named(build.version)) else ("", None)
    # A word that names the CUDA version of the set speaks of its other parts, too.
    if package is None or any(one.backend for one in facts.all(TorchBuild)):
        return "", None
    return package.version, _default(facts, package.version, f"=={package.version}", package)


def _companion(facts: Facts, companion: Package, torch: str) -> Built | None:
    """What a companion is built for: as its version says, else for what torch's release that it goes with is."""
    rows = (one for one in facts.all(Pin) if (one.package, one.version) == (companion.name, minor(companion.version)))
    pin = next((one for one in rows if one.name == "torch"), None)
    if pin is None or not satisfies(torch, pin.specifier):
        return None
    if cuda := _named(companion.version):
        return Built(cuda, companion)
    # Newer companions run on any torch from theirs on; they are built with theirs.
    return _default(facts, companion.version, f"=={pin.specifier.lstrip('=>').removesuffix('.*')}.*", companion)


def _named(version: str) -> str:
    found = CUDA.fullmatch(local(version))
    return f"{found[1]}.{found[2]}" if found else ""


def _default(facts: Facts, version: str, of: str, fact: Fact) -> Built | None:
    """The default build of a release: that of the torch of which this is a part; None where its major is not known."""
    conda = isinstance(fact, Package) and fact.installer == "conda"
    if conda or not RELEASED.fullmatch(version):
        return None
    rows = [one for one in facts.all(Release) if one.package == "torch" and satisfies(one.version, of)]
    majors = {numbers(one.runtime_version)[:1] for one in rows if one.runtime == "cuda"}
    known = len(majors) == 1 and all(one.runtime == "cuda" for one in rows)
    return Built(rows[0].runtime_version, fact, rows[0]) if known else None


def _finding(companion: Package, version: str, own: Built, other: Built) -> Finding:
    row = own.release or other.release
    return Finding(
        subject=companion.name,
        values={
            "name": companion.name,
            "version": companion.version,
            "public": public(companion.version),
            "torch": version,
            "own": own.cuda,
            "other": other.cuda,
            "default": "torch" if own.release else companion.name,
            "index": f"cu{own.cuda.replace('.', '')}",
        },
        confidence="medium",
        evidence=tuple({one.origin: Evidence.of(one) for one in (companion, own.fact)}.values()),
        source=row.source if row else "",
        checked=row.checked if row else "",
    )
