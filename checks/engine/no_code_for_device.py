"""The engine's wheel holds no machine code for this device.

## What it finds
A device on which none of the architectures runs that the engine's own extension was compiled for, by the list of the
release: neither code of the device's major version at or below its minor, nor PTX of an older one.

## Why it matters
torch works, and the engine's first kernel ends with "no kernel image is available for execution on the device".

## What it cannot know
Whether the engine was compiled on this machine: such a build bears the same version, hence not more than medium
confidence. Development builds, builds for another runtime, images of others and boards whose wheels are the maker's own
are not judged; nor is an engine that has planned its KV cache, since it ran, or one beside a list of architectures for
a build of one's own. Kernels that are compiled at run time (Triton, FlashInfer) are not counted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    JETSON,
    RAN,
    Accelerator,
    Answer,
    Component,
    DeviceModel,
    Engine,
    EngineState,
    Evidence,
    Fact,
    Facts,
    Finding,
    Fits,
    Host,
    LaunchArguments,
    Package,
    Platform,
    Published,
    Release,
    Remedy,
    Shell,
    TorchArchitectures,
    TorchBuild,
    Undecided,
    Vendor,
    architecture_of,
    asked_words,
    check,
    devices,
    expression,
    minor,
    numbers,
    posed,
    runs_on,
    same,
    satisfies,
)

RELEASED = expression(r"\d+(?:\.\d+)+(?:\.post\d+|rc\d+)?")
LIST = "TORCH_CUDA_ARCH_LIST"

ENV_5080 = """\
PyTorch version              : 2.7.0+cu128
Is debug build               : False
CUDA used to build PyTorch   : 12.8
ROCM used to build PyTorch   : N/A
Is CUDA available            : True
CUDA runtime version         : 12.8.93
CUDA_MODULE_LOADING set to   : LAZY
GPU models and configuration :
GPU 0: NVIDIA GeForce RTX 5080
GPU 1: NVIDIA GeForce RTX 5080

[pip3] torch==2.7.0+cu128
[pip3] torchaudio==2.7.0+cu128
[pip3] torchvision==0.22.0+cu128
vLLM Version                 : 0.9.1
"""
ASKED = "$ diag matrix check "


class Told(NamedTuple):
    """An engine of which a version is told, by what, and its release."""

    fact: Fact
    name: str
    version: str
    release: Release


@check(
    "engine/no-code-for-device",
    severity="error",
    about="nvidia",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Accelerator,),
    uses=(
        *(Component, DeviceModel, Engine, EngineState, Host, LaunchArguments, Package, Platform, Published, Release),
        *(TorchArchitectures, TorchBuild, Vendor),
    ),
    words={
        "en": {
            "title": "The engine's wheel holds no machine code for this device",
            "summary": "{device} is {architecture}; the wheel of {engine} {version} holds code for {supported} alone",
            "cause": "The device is newer than the list of architectures that this release was compiled for, or so old "
            "that the list leaves it out. That torch has code for it does not help: the engine brings kernels of its "
            "own.",
        },
        "zh": {
            "title": "推理引擎的 wheel 不包含该设备的机器码",
            "summary": "{device} 为 {architecture}，而 {engine} {version} 的 wheel 仅包含 {supported} 的代码",
            "cause": "该设备比此版本编译时的架构列表更新，或过于老旧而未列入。torch 支持该设备也无济于事："
            "推理引擎有自己的内核。",
        },
    },
    remedies=(
        Remedy(
            key="release",
            title={
                "en": "Install {engine} {fitting}, the nearest release whose wheel, and the torch it brings, hold code "
                "for {architecture}",
                "zh": "安装 {engine} {fitting}：其 wheel 及所带的 torch 均包含 {architecture} 代码，且版本最接近",
            },
            commands=('pip install "{engine}=={fitting}"',),
            safety="disruptive",
            verify='python -c "import {module}; print({module}.__version__)"',
            source="https://github.com/vllm-project/vllm/pull/19794",
        ),
        Remedy(
            key="suggest",
            title={
                "en": "See which sets of versions are known to go with this device",
                "zh": "查看哪些版本组合适用于该设备",
            },
            commands=("diag matrix suggest {words}",),
            safety="safe",
        ),
        Remedy(
            key="build",
            title={
                "en": "Or compile {engine} on this machine, for {architecture}",
                "zh": "或在本机为 {architecture} 编译 {engine}",
            },
            safety="manual",
            source="https://github.com/vllm-project/vllm/issues/16901",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/19906",
        "https://github.com/vllm-project/vllm/issues/19018",
        "https://github.com/vllm-project/vllm/pull/19794",
        "https://github.com/vllm-project/vllm/pull/19747",
        "https://github.com/vllm-project/vllm/issues/19542",
        "https://github.com/vllm-project/vllm/pull/39878",
    ),
    fires=(
        ENV_5080,
        ASKED + 'gpu="RTX 5080" vllm==0.9.1 torch==2.7.0+cu128',
        ASKED + 'gpu="GTX 1080 Ti" vllm==0.9.1',
        ASKED + "gpu=V100 vllm==0.20.0",
        ASKED + "gpu=8xB200 vllm==0.8.5",
    ),
    explains=(
        "torch/no-kernel-for-device",
        "matrix/nvidia/vllm-020-before-turing",
        "matrix/nvidia/vllm-before-volta",
    ),
    silent=(
        ENV_5080.replace("0.9.1", "0.9.2"),
        ENV_5080.replace("GeForce RTX 5080", "A100-SXM4-80GB"),
        ASKED + "gpu=A100 vllm==0.9.1 torch==2.7.0+cu128",
        ASKED + "gpu=8xH100 vllm==0.9.1",
        ASKED + "gpu=V100 vllm==0.19.1",
        ASKED + "gpu=GB10 vllm==0.20.0",
        ASKED + "gpu=B300 vllm==0.20.0",
    ),
)
def no_code_for_device(facts: Facts) -> Iterator[Answer]:
    """Compare each device's architecture with the list of the release that is installed, started or asked about."""
    told = [one for one in _told(facts) if one.release.architectures]
    known = [(one, architecture) for one in devices(facts) if (architecture := _architecture(facts, one))]
    if not told or not known:
        yield Undecided(reason="the architectures of a device and of a release of the engine are not both known")
    for one in told if known else ():
        if reason := _not_judged(facts, one):
            yield Undecided(reason=f"{one.name} {one.version}: {reason}")
        else:
            yield from _judged(facts, one, known)


def _told(facts: Facts) -> Iterator[Told]:
    """Each engine whose release is known: as a distribution, else as it says of itself, else as its image has it."""
    seen: set[str] = set()
    facts_of: tuple[tuple[Fact, str, str], ...] = (
        *((one, one.name, one.version) for one in facts.all(Package)),
        *((one, one.name, one.version) for one in facts.all(Engine)),
        *((one, one.engine, one.version) for one in facts.all(LaunchArguments)),
    )
    for fact, name, version in facts_of:
        row = next((one for one in facts.all(Release) if one.package == name and same(one.version, version)), None)
        if version and row and name not in seen:
            seen.add(name)
            yield Told(fact, name, version, row)


def _architecture(facts: Facts, device: Accelerator) -> str:
    architecture = architecture_of(facts, device)
    return architecture if architecture.startswith("sm_") and architecture not in JETSON else ""


def _not_judged(facts: Facts, told: Told) -> str:
    """Why the list of the release is not that of this build; empty where it is."""
    if not RELEASED.fullmatch(told.version):
        return "a development build, or one for another runtime"
    if any(one.engine == told.name and one.name in RAN for one in facts.all(EngineState)):
        return "it ran on this machine"
    if LIST in facts.environment():
        return f"{LIST} is set, so it may have been compiled here"
    if posed(facts, "nvidia") or any("Windows" in one.os for one in facts.all(Host)):
        return "its wheels are not the project's own"
    if isinstance(told.fact, LaunchArguments) and not _published(facts, told, told.fact.image):
        return "the image is not the project's own for the default runtime"
    return "" if _default(facts, told) else "torch is built for another runtime, so another build may be meant"


def _published(facts: Facts, told: Told, image: str) -> bool:
    names = [one.image.replace("{version}", told.version) for one in facts.all(Published) if one.package == told.name]
    return any(name and image.endswith(name) for name in names)


def _default(facts: Facts, told: Told) -> bool:
    """Whether nothing tells of a build of the engine for another runtime than the default one's.

    A distribution bears that in its version; what an engine prints of itself, or somebody asks about, may leave it out.
    """
    asked = any(one.origin == told.fact.origin for one in facts.all(Component))
    builds = [one for one in facts.all(TorchBuild) if one.backend and one.backend_version]
    if any(one.backend != told.release.runtime for one in builds):
        return False
    if isinstance(told.fact, Package) and not asked:
        return True
    fitting = {told.release.runtime_version}
    fitting |= {
        row.runtime_version
        for row in facts.all(Release)
        if row.package == "torch" and any(same(row.version, one.version) for one in builds)
    }
    return all(minor(one.backend_version) in fitting for one in builds)


def _judged(facts: Facts, told: Told, known: list[tuple[Accelerator, str]]) -> Iterator[Answer]:
    lacking: dict[tuple[str, str], list[Accelerator]] = {}
    for device, architecture in known:
        if not runs_on(architecture, told.release.architectures):
            lacking.setdefault((device.name, architecture), []).append(device)
    for (_, architecture), alike in lacking.items():
        yield _finding(facts, told, alike, architecture)
    if not lacking:
        named = ", ".join(dict.fromkeys(architecture for _, architecture in known))
        yield Fits(
            says={
                "en": f"the wheel of {told.name} {told.version} holds code that runs on {named}",
                "zh": f"{told.name} {told.version} 的 wheel 包含可在 {named} 上运行的代码",
            },
            source=told.release.source,
            checked=told.release.checked,
        )


def _finding(facts: Facts, told: Told, alike: list[Accelerator], architecture: str) -> Finding:
    """One for all devices of a name; they are named where there is one."""
    device, fitting = alike[0], _fitting(facts, told, architecture)
    return Finding(
        values={
            "device": device.name or architecture,
            "architecture": architecture,
            "engine": told.name,
            "module": told.name.replace("-", "_"),
            "version": told.version,
            "supported": " ".join(told.release.architectures),
            "fitting": fitting,
            "words": _words(facts, told, device),
        },
        subject=f"device {device.index}" if device.index is not None and len(alike) == 1 else "",
        confidence="medium",
        evidence=tuple({one.origin: Evidence.of(one) for one in (*alike, told.fact)}.values()),
        source=told.release.source,
        checked=told.release.checked,
        remedies=("release", "suggest", "build") if fitting else ("suggest", "build"),
    )


def _fitting(facts: Facts, told: Told, architecture: str) -> str:
    """The nearest release that runs on the device, with the torch it brings: the next newer, else the last older."""
    rows = [one for one in facts.all(Release) if one.package == told.name and RELEASED.fullmatch(one.version)]
    rows = [one for one in rows if runs_on(architecture, one.architectures) and _torch_runs(facts, one, architecture)]
    here = numbers(told.version)
    newer = sorted((one for one in rows if numbers(one.version) > here), key=lambda one: numbers(one.version))
    older = sorted((one for one in rows if numbers(one.version) < here), key=lambda one: numbers(one.version))
    return newer[0].version if newer else older[-1].version if older else ""


def _torch_runs(facts: Facts, release: Release, architecture: str) -> bool:
    """Whether the default build of the torch that a release pins holds code for an architecture."""
    version = release.pinned("torch")
    torch = next((one for one in facts.all(Release) if one.package == "torch" and one.version == version), None)
    if torch is None:
        return False
    return any(
        runs_on(architecture, one.architectures)
        for one in facts.all(TorchArchitectures)
        if one.runtime == torch.runtime
        and _matches(torch.runtime_version, one.version)
        and satisfies(version, one.torch)
    )


def _matches(version: str, pattern: str) -> bool:
    return version == pattern or (pattern.endswith(".*") and version.startswith(pattern[:-1]))


def _words(facts: Facts, told: Told, device: Accelerator) -> str:
    """The words that ask about this set: those that were given, else the device and the engine."""
    named = [f"gpu={device.name}"] if device.name else []
    return asked_words(facts) or Shell(shlex.join([*named, f"{told.name}=={told.version}"]))
