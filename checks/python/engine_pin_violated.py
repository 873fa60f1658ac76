"""An installed engine asks for another version of a distribution than the one that is there.

## What it finds
Requirements of vLLM, SGLang and LMDeploy that what is installed does not meet: as the engine's own metadata states
them, or, where a text does not hold it, as the release published them for its CUDA build.

## Why it matters
The engine was compiled and tested with these versions. With another torch its extension modules may not load; with
another transformers, model classes are missing or behave differently.

## What it cannot know
Whether the difference is meant and works. A release whose published requirements were not read, a development build and
a build for another runtime are not judged by the published table. Of the requirements of an engine only those are
compared that it cannot do without: not its web server, nor its telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Engine,
    Evidence,
    Fact,
    Facts,
    Finding,
    Package,
    Pin,
    Platform,
    Remedy,
    Requirement,
    TorchBuild,
    Undecided,
    Vendor,
    check,
    expression,
    local,
    public,
    satisfies,
)

ENGINES = ("vllm", "sglang", "lmdeploy")
CORE = {
    *("torch", "torchvision", "torchaudio", "triton", "xformers", "flashinfer-python", "flashinfer-cubin", "numpy"),
    *("transformers", "tokenizers", "sgl-kernel", "sglang-kernel", "numba", "xgrammar", "compressed-tensors"),
}
UPSTREAM = ("nvidia", "amd", "intel")
"""Makers whose devices the engines serve by themselves, without a plug-in that brings its own versions."""
RELEASED = expression(r"\d+(?:\.\d+)*(?:\.post\d+)?(?:\+cu\d{2,3})?")
Asks = Requirement | Pin

CHECK_0210 = """\
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. \
This behaviour is the source of the following dependency conflicts.
vllm 0.21.0 requires torch==2.11.0, but you have torch 2.6.0+cu124 which is incompatible.
Successfully installed sympy-1.13.1 torch-2.6.0+cu124 triton-3.2.0
"""
LIST_0160 = """\
[pip3] numpy==2.2.6
[pip3] torch==2.9.1+cu129
[pip3] torchaudio==2.9.1+cu129
[pip3] torchvision==0.24.1+cu129
[pip3] transformers==4.57.6
vLLM Version                 : 0.16.0
"""
TRANSFORMERS_5 = """\
vllm 0.18.1rc1.dev186+gbecaed6ec requires transformers<5,>=4.56.0, \
but you have transformers 5.4.0 which is incompatible.
"""


def _plugged(facts: Facts) -> str:
    """The maker whose plug-in or whose own builds stand here: they override the engine's pins on purpose."""
    packages = facts.all(Package)
    told: tuple[Package | TorchBuild | Engine, ...] = (*packages, *facts.all(TorchBuild), *facts.all(Engine))
    versions = [one.version for one in told]
    for maker in facts.all(Vendor):
        worded = any(word in local(version) for word in maker.locals for version in versions)
        if maker.vendor not in UPSTREAM and (worded or any(one.name in maker.packages for one in packages)):
            return f"the stack of {maker.vendor} brings its own versions"
    return ""


@check(
    "python/engine-pin-violated",
    severity="warning",
    about="python",
    needs=(Package, Engine),
    uses=(Requirement, Pin, Platform, TorchBuild, Vendor),
    applies=_plugged,
    words={
        "en": {
            "title": "What the engine asks for is not what is installed",
            "summary": "{engine} {version} asks for {wanted}; installed: {installed}",
            "cause": "Another installation replaced what the engine had brought, or the engine was installed without "
            "its dependencies.",
        },
        "zh": {
            "title": "已安装的版本不符合推理引擎的要求",
            "summary": "{engine} {version} 要求 {wanted}，实际安装：{installed}",
            "cause": "后来的安装替换了推理引擎自带的依赖，或安装推理引擎时没有安装其依赖。",
        },
    },
    remedies=(
        Remedy(
            key="resolve",
            title={
                "en": "Install the engine and what was added after it in one command, in a fresh environment, so that "
                "its pins are kept",
                "zh": "在全新环境中用同一条命令安装推理引擎和后来添加的软件包，使其版本约束得到遵守",
            },
            commands=('pip install "{engine}=={public}" …',),
            safety="manual",
            verify="pip check",
        ),
        Remedy(
            key="restore",
            title={
                "en": "Put back what {engine} {version} asks for",
                "zh": "恢复 {engine} {version} 所要求的版本",
            },
            commands=("pip install {specifiers}",),
            safety="disruptive",
            verify="pip check",
        ),
    ),
    sources=(
        "https://github.com/hiyouga/EasyR1/issues/27",
        "https://github.com/vllm-project/vllm/issues/5594",
        "https://github.com/vllm-project/vllm/pull/2155",
    ),
    fires=(CHECK_0210, TRANSFORMERS_5),
    silent=(LIST_0160,),
)
def engine_pin_violated(facts: Facts) -> Iterator[Answer]:
    """Compare each requirement of an installed engine with what is there."""
    versions = {one.name: one for one in facts.all(Engine) if one.name in ENGINES and one.version}
    if not versions:
        yield Undecided(reason="the version of no engine is told")
    for engine in versions.values():
        asks = [one for one in _asks(facts, engine) if one.name in CORE and facts.package(one.name)]
        if not asks:
            yield Undecided(reason=f"what {engine.name} {engine.version} asks for is not known, or not what is there")
        pairs = [(one, package) for one in asks if (package := facts.package(one.name)) and not _met(package, one)]
        if pairs:
            yield _finding(engine, pairs)


def _asks(facts: Facts, engine: Engine) -> list[Asks]:
    """What the engine asks for: by its own metadata, else as its release published it for CUDA."""
    own = {one.name: one for one in facts.all(Requirement) if one.package == engine.name}
    if own:
        return list(own.values())
    torch = facts.package("torch")
    backends = {one.backend for one in facts.all(TorchBuild) if one.backend}
    makers = {name for one in facts.all(Platform) for name in one.present}
    cuda = backends <= {"cuda"} and makers <= {"nvidia"} and not (torch and _other(local(torch.version)))
    if not cuda or not RELEASED.fullmatch(engine.version):
        return []
    rows = facts.all(Pin)
    return [one for one in rows if (one.package, one.version) == (engine.name, public(engine.version))]


def _other(build: str) -> bool:
    """Whether the local part of torch's version tells of a runtime other than CUDA."""
    return bool(build) and not build.startswith("cu")


def _met(package: Package, asks: Asks) -> bool:
    specifier = ",".join(part.partition("+")[0] for part in asks.specifier.split(","))
    return satisfies(package.version, specifier) is not False


def _finding(engine: Engine, pairs: list[tuple[Asks, Package]]) -> Finding:
    wanted = [f"{asks.name}{asks.specifier}" for asks, _ in pairs]
    facts: list[Fact] = [engine, *(one for pair in pairs for one in pair if not isinstance(one, Pin))]
    return Finding(
        subject=engine.name,
        values={
            "engine": engine.name,
            "version": engine.version,
            "public": public(engine.version),
            "wanted": ", ".join(wanted),
            "installed": ", ".join(f"{package.name} {package.version}" for _, package in pairs),
            "specifiers": " ".join(f'"{one}"' for one in wanted),
        },
        evidence=tuple(map(Evidence.of, {one.origin: one for one in facts}.values())),
        remedies=("resolve", "restore") if RELEASED.fullmatch(engine.version) else ("restore",),
    )
