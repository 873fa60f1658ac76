"""The engine's wheel links another major version of the runtime than torch was built for.

## What it finds
An installed release, or one that is asked about, whose wheel was compiled against another major version of CUDA than
the torch beside it. A version without a local part is the default build; `+cu129` names the runtime itself.

## Why it matters
torch brings the runtime of its own major version alone. The engine's extension asks for another one: its import ends
with "libcudart.so.13: cannot open shared object file", or its kernels are missing.

## What it cannot know
Whether the engine was compiled on this machine: such a build may bear the same version. Whether a copy of the other
runtime lies where the loader finds it. Hence a warning. What an engine prints of itself leaves its local part out, and
is not judged; nor is a torch of which the runtime is concluded, nor an engine that has planned its KV cache.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from diag.api import (
    RAN,
    Answer,
    Component,
    EngineState,
    Evidence,
    Facts,
    Finding,
    Fits,
    Package,
    Platform,
    Published,
    Release,
    Remedy,
    Shell,
    TorchBuild,
    Undecided,
    Vendor,
    asked_words,
    check,
    expression,
    local,
    numbers,
    present_makers,
    public,
    same,
    spelled,
)

RELEASED = expression(r"\d+(?:\.\d+)+(?:\.post\d+|rc\d+)?(?:\+cu\d{3})?")
BUILT = expression(r"cu(\d{2})(\d)")
CALLED = {"cuda": "CUDA", "rocm": "ROCm", "xpu": "XPU"}
UPSTREAM = ("nvidia", "amd", "intel")
"""Makers for whose devices the engines publish builds themselves."""

ASKED = "$ diag matrix check "
FROZEN_CU129 = "torch==2.11.0+cu129\nvllm==0.21.0\n"
FROZEN_ALIKE = "torch==2.11.0+cu129\nvllm==0.26.0+cu129\n"


def _stack(facts: Facts) -> str:
    """Why the builds may be those of another maker, whose devices or software stand here; empty where none does."""
    present = present_makers(facts)
    packages = {one.name for one in facts.all(Package)}
    makers = (one for one in facts.all(Vendor) if one.vendor not in UPSTREAM)
    maker = next((one.vendor for one in makers if one.vendor in present or packages & set(one.packages)), "")
    return f"the stack of {maker} brings its own builds" if maker else ""


@check(
    "engine/built-for-another-runtime",
    severity="warning",
    about="engine",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package, TorchBuild),
    applies=_stack,
    uses=(Component, EngineState, Platform, Published, Release, Vendor),
    words={
        "en": {
            "title": "The engine's wheel is linked against another runtime than torch's",
            "summary": "{engine} {version} is linked against {runtime} {linked}; torch {torch}is for {runtime} {built}",
            "cause": "Choosing a torch for another {runtime} does not choose the engine's wheel for it: the index has "
            "one wheel per release, for its default runtime.",
        },
        "zh": {
            "title": "推理引擎的 wheel 链接的运行时与 torch 不同",
            "summary": "{engine} {version} 链接 {runtime} {linked}，而 torch {torch}面向 {runtime} {built}",
            "cause": "选择面向其他 {runtime} 版本的 torch 并不会选中对应的推理引擎 wheel："
            "索引上每个版本只有一个面向默认运行时的 wheel。",
        },
    },
    remedies=(
        Remedy(
            key="see",
            title={
                "en": "See whether the engine's extension loads, as it does where it was compiled on this machine",
                "zh": "检查推理引擎的扩展能否加载（在本机编译的可以）",
            },
            commands=('python -c "import torch, {module}._C; print(torch.version.cuda)"',),
            safety="safe",
            source="https://github.com/vllm-project/vllm/issues/52300",
        ),
        Remedy(
            key="build",
            title={
                "en": "Install the build of {engine} {public} for {runtime} {fitting}, with the torch for it",
                "zh": "安装面向 {runtime} {fitting} 的 {engine} {public} 及配套的 torch",
            },
            commands=("{install}",),
            safety="disruptive",
            verify='python -c "import torch, {module}._C; print(torch.version.cuda)"',
            source="https://github.com/vllm-project/vllm/issues/44335",
        ),
        Remedy(
            key="torch",
            title={
                "en": "Or install, in a fresh environment, {engine} {public} with the torch that it brings, where the "
                "driver runs {runtime} {default}",
                "zh": "或在驱动支持 {runtime} {default} 时，于全新环境中安装 {engine} {public}，使用其自带的 torch",
            },
            commands=('pip install "{engine}=={public}"',),
            safety="manual",
            verify='python -c "import torch, {module}._C; print(torch.version.cuda)"',
            source="https://github.com/vllm-project/vllm/issues/44335",
        ),
        Remedy(
            key="suggest",
            title={
                "en": "See which sets of versions are known to go together",
                "zh": "查看哪些版本组合可以配合使用",
            },
            commands=("diag matrix suggest {words}",),
            safety="safe",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/44335",
        "https://github.com/vllm-project/vllm/issues/43435",
        "https://github.com/vllm-project/vllm/issues/52300",
        "https://github.com/vllm-project/vllm/issues/42756",
        "https://github.com/vllm-project/vllm/issues/42338",
        "https://github.com/vllm-project/vllm/pull/39878",
    ),
    fires=(
        FROZEN_CU129,
        ASKED + "gpu=H100 vllm==0.21.0 torch==2.11.0+cu129",
        ASKED + "vllm==0.21.0 cuda=12.8",
        ASKED + "vllm==0.19.1 torch==2.10.0+cu130",
        ASKED + "vllm==0.26.0+cu129 torch==2.11.0+cu130",
    ),
    explains=(
        "python/libcudart-missing",
        "matrix/engines/vllm-cuda-13-requirements-with-cuda-12-torch",
    ),
    silent=(
        FROZEN_ALIKE,
        ASKED + "vllm==0.26.0+cu129 torch==2.11.0+cu129",
        ASKED + "vllm==0.19.1 torch==2.10.0+cu128",
        ASKED + "gpu=H100 vllm==0.21.0 torch==2.11.0+cu130",
    ),
)
def built_for_another_runtime(facts: Facts) -> Iterator[Answer]:
    """Compare what each release's wheel links with what torch was built for."""
    engines = list(_engines(facts))
    builds = [one for one in facts.all(TorchBuild) if one.backend in CALLED and one.backend_version and not one.basis]
    if not engines or len({(one.backend, numbers(one.backend_version)[:1]) for one in builds}) != 1:
        yield Undecided(reason="what a release of the engine links and what torch was built for are not both told")
        return
    for package, release in engines:
        linked = _linked(package, release)
        if not linked or builds[0].backend != release.runtime:
            yield Undecided(reason=f"{package.name} {package.version} is no build of a release for torch's runtime")
        elif any(one.engine == package.name and one.name in RAN for one in facts.all(EngineState)):
            yield Undecided(reason=f"{package.name} {package.version} ran on this machine, whatever it links")
        elif numbers(linked)[:1] != numbers(builds[0].backend_version)[:1]:
            yield _finding(facts, package, release, builds[0])
        else:
            yield _fits(package, release, builds[0])


def _engines(facts: Facts) -> Iterator[tuple[Package, Release]]:
    """The distributions with code of their own for a runtime, of which a release pins torch."""
    rows = [one for one in facts.all(Release) if one.runtime and one.runtime_version and "torch" in one.pins]
    for package in {one.name: one for one in reversed(facts.all(Package))}.values():
        for row in rows:
            if row.package == package.name and same(row.version, package.version):
                yield package, row


def _linked(package: Package, release: Release) -> str:
    """The version of the runtime that this build links; empty where it is no build of the release."""
    if not RELEASED.fullmatch(package.version):
        return ""
    named = BUILT.fullmatch(local(package.version))
    return f"{named[1]}.{named[2]}" if named else release.runtime_version


def _finding(facts: Facts, package: Package, release: Release, torch: TorchBuild) -> Finding:
    fitting = _fitting(release, torch)
    install = _install(facts, package, fitting) if fitting else Shell()
    keys = ["see", *(["build"] if install else []), *(["torch"] if _brings(facts, release) else []), "suggest"]
    return Finding(
        subject=package.name,
        values={
            "engine": package.name,
            "module": package.name.replace("-", "_"),
            "version": package.version,
            "public": public(package.version),
            "runtime": CALLED[release.runtime],
            "linked": _linked(package, release),
            "default": release.runtime_version,
            "torch": f"{torch.version} ".lstrip(),
            "built": torch.backend_version,
            "fitting": fitting,
            "install": install,
            "words": _words(facts, package, torch),
        },
        evidence=tuple({one.origin: Evidence.of(one) for one in (package, torch)}.values()),
        source=release.source,
        checked=release.checked,
        remedies=tuple(keys),
    )


def _fitting(release: Release, torch: TorchBuild) -> str:
    """The runtime of another published build of the release that is of torch's major version, the nearest."""
    wanted = numbers(torch.backend_version)
    builds = [one for one in release.builds if numbers(one)[:1] == wanted[:1]]
    exact = [one for one in builds if numbers(one)[:2] == wanted[:2]]
    return max(exact or builds, key=numbers, default="")


def _install(facts: Facts, package: Package, fitting: str) -> Shell:
    """The command that installs the build for a runtime, where the project publishes it."""
    row = next((one for one in facts.all(Published) if one.package == package.name and one.build), None)
    build = row.build if row else ""
    return spelled(build, {"version": public(package.version), "build": fitting.replace(".", "")})


def _brings(facts: Facts, release: Release) -> bool:
    """Whether the torch that a plain installation brings is for the runtime of the release's default build."""
    rows = [one for one in facts.all(Release) if (one.package, one.version) == ("torch", release.pinned("torch"))]
    return any(numbers(one.runtime_version)[:1] == numbers(release.runtime_version)[:1] for one in rows)


def _fits(package: Package, release: Release, torch: TorchBuild) -> Fits:
    runtime, major = CALLED[release.runtime], torch.backend_version.partition(".")[0]
    return Fits(
        says={
            "en": f"{package.name} {package.version} is linked against {runtime} {major}, as torch is",
            "zh": f"{package.name} {package.version} 与 torch 均链接 {runtime} {major}",
        },
        source=release.source,
        checked=release.checked,
    )


def _words(facts: Facts, package: Package, torch: TorchBuild) -> Shell:
    """The words that ask about this set: those that were given, else the engine and torch."""
    named = [f"torch=={torch.version}"] if torch.version else [f"{torch.backend}={torch.backend_version}"]
    return asked_words(facts) or Shell(shlex.join([f"{package.name}=={package.version}", *named]))
