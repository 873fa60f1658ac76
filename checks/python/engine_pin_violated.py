"""An installed engine, or a vendor's plug-in for one, asks for another version of a distribution than is there.

## What it finds
Requirements of vLLM, SGLang, LMDeploy and of plug-ins that what is installed does not meet: as their own metadata
states them, or, where a text does not hold it, as the release published them (the engine's for its CUDA build).

## Why it matters
The engine was compiled and tested with these versions. With another torch its extension modules may not load; with
another transformers, model classes are missing or behave differently.

## What it cannot know
Whether the difference is meant and works. A release whose published requirements were not read, a development build and
a build for another runtime are not judged by the published table. Of the requirements of an engine only those are
compared that it cannot do without: not its web server, nor its telemetry. Those that a plug-in overrides on purpose are
not compared; a vendor's own builds of an engine are not judged at all. Of several engines that is judged which a
command is told to start.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Component,
    Engine,
    Evidence,
    Fact,
    Facts,
    Finding,
    Fits,
    LaunchArguments,
    Package,
    Part,
    Pin,
    Platform,
    Release,
    Remedy,
    Requirement,
    Shell,
    TorchBuild,
    Undecided,
    Vendor,
    check,
    expression,
    local,
    parts_named,
    present_makers,
    public,
    same,
    spelled,
)

ENGINES = ("vllm", "sglang", "lmdeploy")
CORE = {
    *("torch", "torchvision", "torchaudio", "triton", "xformers", "flashinfer-python", "flashinfer-cubin", "numpy"),
    *("transformers", "tokenizers", "sgl-kernel", "sglang-kernel", "numba", "xgrammar", "compressed-tensors"),
}
UPSTREAM = ("nvidia", "amd", "intel")
"""Makers whose devices the engines serve by themselves, without a plug-in that brings its own versions."""
RELEASED = expression(r"\d+(?:\.\d+)*(?:rc\d+|\.post\d+)?(?:\+cu\d{2,3})?")
EXACT = expression(r"==[\w.]+")
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


@check(
    "python/engine-pin-violated",
    severity="warning",
    about="python",
    needs=(Package, Engine),
    uses=(Component, LaunchArguments, Requirement, Pin, Platform, Release, TorchBuild, Vendor),
    verdict="metadata-conflict",
    checked="2026-11-30",
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
    """Compare each requirement of an installed engine and of its plug-ins with what is there."""
    plugins = _plugins(facts)
    engines = {one.name: one for one in facts.all(Engine) if one.name in ENGINES and one.version}
    planned = {one.engine for one in facts.all(LaunchArguments)}
    engines = {name: one for name, one in engines.items() if name in planned} or engines
    if not engines and not plugins:
        yield Undecided(reason="the version of no engine is told")
    for plugin in plugins:
        yield from _judged(facts, plugin, [*_asks(facts, plugin), *_pairs(facts, plugin)])
    overridden = {name for plugin in plugins for one in _releases(facts, plugin.name) for name in one.overrides}
    maker = "" if overridden else _stack(facts)
    for engine in engines.values():
        if maker:
            yield Undecided(reason=f"the stack of {maker} brings its own versions")
        else:
            asks = [one for one in _asks(facts, engine) if one.name in CORE]
            asks = [one for one in asks if f"{engine.name}.{one.name}" not in overridden]
            answers = list(_judged(facts, engine, asks))
            yield from (one for one in answers if not (plugins and isinstance(one, Undecided)))
            yield from _beside(facts, engine, asks, [one for one in engines.values() if one.name > engine.name])


def _judged(facts: Facts, engine: Engine | Package, asks: list[Asks]) -> Iterator[Answer]:
    """What is there against what is asked for; of what is not there nothing is said."""
    pairs = [(one, part) for one in asks if (part := next(iter(parts_named(facts, one.name)), None))]
    unmet = [(one, part) for one, part in pairs if _met(part, one) is False]
    unread = [part for one, part in pairs if _met(part, one) is None]
    if unmet:
        yield _finding(engine, unmet)
    elif unread:
        told = ", ".join(f"{part.name} {part.version}" for part in unread)
        yield Undecided(reason=f"whether {told} is what {engine.name} {engine.version} asks for is not known")
    elif pairs:
        yield _fits(engine, [one for one, _ in pairs], ("met", "均满足"))
    elif asks and facts.first(Component):
        yield _fits(engine, asks, ("what is asked about has none of these", "所询问的组合未给出这些版本"))
    elif (makers := present_makers(facts)) and not makers & {"nvidia"} and engine.name in ENGINES:
        yield Undecided(
            reason=f"what {engine.name} {engine.version} published is for CUDA: on {' and '.join(sorted(makers))} "
            "its plug-in or the maker's own build decides"
        )
    else:
        yield Undecided(reason=f"what {engine.name} {engine.version} asks for is not known, or not what is there")


def _beside(facts: Facts, engine: Engine, asks: list[Asks], others: list[Engine]) -> Iterator[Finding]:
    """Another engine of an asked set that pins a distribution to another version than this one does."""
    exact = {one.name: one for one in asks if EXACT.fullmatch(one.specifier) and facts.package(one.name) is None}
    for other in others if facts.first(Component) else ():
        theirs = [one for one in _asks(facts, other) if one.name in exact and EXACT.fullmatch(one.specifier)]
        for one in theirs:
            own = exact[one.name]
            if not same(own.specifier[2:], one.specifier[2:]):
                part = Part(one.name, f"{one.specifier[2:]} ({other.name} {other.version})", "distribution", other)
                yield _finding(engine, [(own, part)])
                return


def _fits(engine: Engine | Package, asks: list[Asks], how: tuple[str, str]) -> Fits:
    asked = ", ".join(f"{one.name}{one.specifier}" for one in asks)
    row = next((one for one in asks if isinstance(one, Pin)), None)
    return Fits(
        says={
            "en": f"{engine.name} {engine.version} asks for {asked}: {how[0]}",
            "zh": f"{engine.name} {engine.version} 要求 {asked}：{how[1]}",
        },
        source=row.source if row else f"metadata of the installed {engine.name}",
        checked=row.checked if row else "",
    )


def _plugins(facts: Facts) -> list[Package]:
    """The installed plug-ins: what has releases that override pins of an engine."""
    names = {one.package for one in facts.all(Release) if one.overrides}
    return [one for one in facts.all(Package) if one.name in names]


def _pairs(facts: Facts, plugin: Package) -> list[Asks]:
    """What the plug-in's release goes with that is no distribution, as pins."""
    rows = [one for one in _releases(facts, plugin.name) if same(one.version, plugin.version)]
    return [
        Pin(
            origin=row.origin,
            package=row.package,
            version=row.version,
            name=name,
            specifier=version if version[0] in "<>=!~" else f"=={version}",
            source=row.source,
            checked=row.checked,
        )
        for row in rows[:1]
        for name, version in row.pairs.items()
    ]


def _releases(facts: Facts, name: str) -> list[Release]:
    return [one for one in facts.all(Release) if one.package == name]


def _stack(facts: Facts) -> str:
    """The maker whose own builds, or whose software beside them, stand here: they override pins on purpose."""
    packages = facts.all(Package)
    told: tuple[Package | TorchBuild | Engine, ...] = (*packages, *facts.all(TorchBuild), *facts.all(Engine))
    versions = [one.version for one in told]
    for maker in facts.all(Vendor):
        worded = any(word in local(version) for word in maker.locals for version in versions)
        if maker.vendor not in UPSTREAM and (worded or any(one.name in maker.packages for one in packages)):
            return maker.vendor
    return ""


def _asks(facts: Facts, engine: Engine | Package) -> list[Asks]:
    """What it asks for: by its own metadata, else as its release published it, an engine's for CUDA."""
    own = {one.name: one for one in facts.all(Requirement) if one.package == engine.name}
    if own:
        return list(own.values())
    if engine.name in ENGINES and not _for_cuda(facts, engine):
        return []
    rows = [one for one in facts.all(Pin) if one.package == engine.name]
    exact = [one for one in rows if one.version == engine.version]
    return [*(exact or [one for one in rows if same(one.version, engine.version)])]


def _for_cuda(facts: Facts, engine: Engine | Package) -> bool:
    """Whether it is a release of the engine, and nothing tells of another build than that for CUDA."""
    torch = facts.package("torch")
    backends = {one.backend for one in facts.all(TorchBuild) if one.backend}
    cuda = backends <= {"cuda"} and present_makers(facts) <= {"nvidia"} and not (torch and _other(local(torch.version)))
    return cuda and bool(RELEASED.fullmatch(engine.version))


def _other(build: str) -> bool:
    """Whether the local part of torch's version tells of a runtime other than CUDA."""
    return bool(build) and not build.startswith("cu")


def _met(part: Part, asks: Asks) -> bool | None:
    return part.lies_in((",".join(one.partition("+")[0] for one in asks.specifier.split(",")),))


def _finding(engine: Engine | Package, pairs: list[tuple[Asks, Part]]) -> Finding:
    wanted = [f"{asks.name}{asks.specifier}" for asks, _ in pairs]
    row = next((one for one, _ in pairs if isinstance(one, Pin)), None)
    facts: list[Fact] = [
        engine,
        *(part.fact for _, part in pairs),
        *(one for one, _ in pairs if not isinstance(one, Pin)),
    ]
    return Finding(
        subject=engine.name,
        values={
            "engine": engine.name,
            "version": engine.version,
            "public": public(engine.version),
            "wanted": ", ".join(wanted),
            "installed": ", ".join(f"{part.name} {part.version}" for _, part in pairs),
            "specifiers": Shell(" ".join(spelled('"{one}"', {"one": one}) for one in wanted)),
        },
        evidence=tuple(map(Evidence.of, {one.origin: one for one in facts}.values())),
        source=row.source if row else "",
        checked=row.checked if row else "",
        remedies=("resolve", "restore") if RELEASED.fullmatch(engine.version) else ("restore",),
    )
