"""The C library that is asked about is older than the release's wheel asks for.

## What it finds
In a set that somebody asks about: a release whose wheel is tagged for a newer glibc (`manylinux_2_28`) than the one
named, or which pins a torch of which that is so.

## Why it matters
pip passes the wheel over: it takes another version, or compiles the source distribution, which wants compilers and
hours. A wheel of torch has no source to fall back on: "No matching distribution found".

## What it cannot know
Builds that are not on the index: those for another runtime, whose version has a local part, and those of other makers
may be tagged otherwise, and are not judged. For what is installed, see python/glibc-below-tag.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    Answer,
    Component,
    Evidence,
    Facts,
    Finding,
    Fits,
    Host,
    Package,
    Platform,
    Published,
    Release,
    Remedy,
    Shell,
    TorchBuild,
    Undecided,
    asked_words,
    at_least,
    check,
    expression,
    local,
    numbers,
    present_makers,
    public,
    same,
    spelled,
)

RELEASED = expression(r"\d+(?:\.\d+)+(?:\.post\d+|rc\d+)?")
PYTORCH = expression(r"(?:cu|rocm)\d[\d.]*")
"""Local parts of PyTorch's own builds, whose wheels are tagged as the default one is."""
PREFIX = "glibc-"

ASKED = "$ diag matrix check "


class Wheel(NamedTuple):
    """A wheel that would be installed: what asks for it, and its release."""

    asks: Package
    release: Release


@check(
    "python/glibc-below-release",
    severity="error",
    about="python",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Component, Host, Package),
    uses=(Platform, Published, Release, TorchBuild),
    words={
        "en": {
            "title": "There is no wheel of this release for so old a C library",
            "summary": "the wheel of {wheel} is for glibc {wanted} and newer; asked about is {libc}",
            "cause": "The wheel was built on a newer system. pip does not install it here: it takes another version, "
            "or the source distribution where there is one.",
        },
        "zh": {
            "title": "该版本没有适用于如此旧的 C 库的 wheel",
            "summary": "{wheel} 的 wheel 要求 glibc {wanted} 及以上，而所询问的是 {libc}",
            "cause": "该 wheel 在更新的系统上构建，pip 不会在此安装：它会改选其他版本，或在有源码包时从源码构建。",
        },
    },
    remedies=(
        Remedy(
            key="image",
            title={
                "en": "Run {asks} {public} in its image, which brings its own C library",
                "zh": "在自带 C 库的镜像中运行 {asks} {public}",
            },
            commands=("{start}",),
            safety="manual",
            verify="ldd --version",
            source="https://github.com/vllm-project/vllm/issues/39609",
        ),
        Remedy(
            key="container",
            title={
                "en": "Install it in a container whose system has glibc {wanted} or newer",
                "zh": "在 glibc 为 {wanted} 及以上的容器中安装",
            },
            safety="manual",
            verify="ldd --version",
            source="https://github.com/vllm-project/vllm/issues/39609",
        ),
        Remedy(
            key="release",
            title={
                "en": "Or install {asks} {fitting}, the nearest release whose wheels, and those of its torch, are for "
                "{libc}",
                "zh": "或安装 {asks} {fitting}：其 wheel 及 torch 的 wheel 均适用于 {libc}，且版本最接近",
            },
            commands=('pip install --only-binary :all: "{asks}=={fitting}"',),
            safety="disruptive",
            verify='python -c "import {module}; print({module}.__version__)"',
        ),
        Remedy(
            key="suggest",
            title={
                "en": "See which sets of versions are known to go with this system",
                "zh": "查看哪些版本组合适用于该系统",
            },
            commands=("diag matrix suggest {words}",),
            safety="safe",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/39609",
        "https://github.com/vllm-project/vllm/issues/41103",
        "https://pypi.org/project/vllm/0.20.0/",
        "https://pypi.org/project/sglang/0.5.14/",
        "https://pypi.org/project/torch/2.7.0/",
    ),
    fires=(
        ASKED + "vllm==0.20.0 glibc=2.31",
        ASKED + "vllm==0.20.2 glibc=2.34",
        ASKED + "sglang==0.5.14 glibc=2.31",
        ASKED + "torch==2.8.0 glibc=2.17",
        ASKED + "torch==2.8.0+cu128 glibc=2.17",
        ASKED + "gpu=H100 vllm==0.9.1 glibc=2.17",
    ),
    silent=(
        ASKED + "vllm==0.22.0 glibc=2.28",
        ASKED + "vllm==0.19.1 glibc=2.31",
        ASKED + "torch==2.8.0 glibc=2.28",
        ASKED + "sglang==0.5.14 glibc=2.34",
    ),
)
def glibc_below_release(facts: Facts) -> Iterator[Answer]:
    """Compare the C library that is asked about with what the wheel of each release asks for."""
    host = next((one for one in facts.all(Host) if one.libc.startswith(PREFIX)), None)
    wheels = list(_wheels(facts))
    if host is None or not wheels:
        yield Undecided(reason="the C library and the glibc that a wheel of these releases asks for are not both known")
        return
    unfit = [one for one in wheels if not _fits(one.release, host)]
    for asks in dict.fromkeys(one.asks for one in unfit):
        yield _finding(facts, next(one for one in unfit if one.asks == asks), host)
    if not unfit:
        yield _in_order(wheels, host)


def _wheels(facts: Facts) -> Iterator[Wheel]:
    """The wheels of the releases that are asked about, and of the torch that they pin where none is asked about."""
    asked = {(one.origin, one.name) for one in facts.all(Component)}
    torch = facts.package("torch")
    for package in facts.all(Package):
        if (package.origin, package.name) not in asked or not _from_index(facts, package):
            continue
        own = _release(facts, package.name, package.version)
        brought = _release(facts, "torch", own.pinned("torch")) if own and not torch else None
        yield from (Wheel(package, one) for one in (own, brought) if one and one.glibc)


def _release(facts: Facts, name: str, version: str) -> Release | None:
    return next((one for one in facts.all(Release) if one.package == name and same(one.version, version)), None)


def _from_index(facts: Facts, package: Package) -> bool:
    """Whether a plain installation would take the wheel of the index, which is for CUDA where it is an engine's."""
    makers = present_makers(facts)
    if package.name == "torch":
        built = local(package.version)
        return makers <= {"nvidia", "amd", "intel"} and (not built or bool(PYTORCH.fullmatch(built)))
    cuda = all(one.backend in ("", "cuda") for one in facts.all(TorchBuild))
    return cuda and makers <= {"nvidia"} and bool(RELEASED.fullmatch(package.version))


def _fits(release: Release, host: Host) -> bool:
    return not release.glibc or at_least(host.libc.removeprefix(PREFIX), release.glibc) is not False


def _finding(facts: Facts, wheel: Wheel, host: Host) -> Finding:
    asks, release = wheel
    start, fitting = _start(facts, asks), _fitting(facts, asks, host)
    brought, own = release.package != asks.name, f"{asks.name} {asks.version}"
    return Finding(
        subject=asks.name,
        values={
            "wheel": f"torch {release.version} ({own}: torch=={release.version})" if brought else own,
            "wanted": release.glibc,
            "libc": host.libc.replace("-", " "),
            "asks": asks.name,
            "public": public(asks.version),
            "module": asks.name.replace("-", "_"),
            "start": start,
            "fitting": fitting,
            "words": asked_words(facts),
        },
        evidence=tuple({one.origin: Evidence.of(one) for one in (asks, host)}.values()),
        source=release.source,
        checked=release.checked,
        remedies=("image" if start else "container", *(["release"] if fitting else []), "suggest"),
    )


def _start(facts: Facts, asks: Package) -> Shell:
    """The command that starts the image of the release, where the project publishes one."""
    row = next((one for one in facts.all(Published) if one.package == asks.name and one.vendor == "nvidia"), None)
    image = row.image.replace("{version}", public(asks.version)) if row else ""
    return spelled(row.start if row and image else "", {"image": image})


def _fitting(facts: Facts, asks: Package, host: Host) -> str:
    """The nearest release of which the wheel, and that of its torch, states a glibc that fits: newer, else older."""
    rows = [one for one in facts.all(Release) if one.package == asks.name and one.glibc and _fits(one, host)]
    rows = [one for one in rows if RELEASED.fullmatch(one.version) and _torch_fits(facts, one, host)]
    rows.sort(key=lambda one: numbers(one.version))
    newer = [one.version for one in rows if numbers(one.version) > numbers(asks.version)]
    return newer[0] if newer else rows[-1].version if rows else ""


def _torch_fits(facts: Facts, release: Release, host: Host) -> bool:
    torch = _release(facts, "torch", release.pinned("torch"))
    return release.package == "torch" or (torch is not None and _fits(torch, host))


def _in_order(wheels: list[Wheel], host: Host) -> Fits:
    named = ", ".join(f"{one.release.package} {one.release.version} ({one.release.glibc})" for one in wheels)
    return Fits(
        says={
            "en": f"the wheels are for {host.libc.replace('-', ' ')}: {named}",
            "zh": f"这些 wheel 适用于 {host.libc.replace('-', ' ')}：{named}",
        },
        source=wheels[0].release.source,
        checked=wheels[0].release.checked,
    )
