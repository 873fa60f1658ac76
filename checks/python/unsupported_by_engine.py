"""The interpreter is none that the installed engine supports, or torch, or a plug-in.

## What it finds
A version of Python outside the range that one of them declares (`Requires-Python`): in its own metadata, or in that of
its release.

## Why it matters
The range is what the engine was built and tested for: outside of it modules or dependencies are missing, and syntax or
types that the engine uses may not be there.

## What it cannot know
Whether the interpreter that the text tells of is the one that the engine is installed for, where the text is a report
of several programs. Development builds are judged by their own metadata alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Engine,
    Evidence,
    Facts,
    Finding,
    Fits,
    Package,
    Pin,
    Python,
    Remedy,
    Requirement,
    Undecided,
    check,
    public,
    same,
    satisfies,
)

SGLANG_ON_310 = """\
{"schema": "diag/packages/1", "python": "3.10.13", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "sglang", "version": "0.5.23", "location": "/opt/shared/site-packages", "installer": "", "tag": \
"cp312-cp312-manylinux_2_34_x86_64", "requires": [["python", ">=3.11"], ["torch", "==2.14.1"], ["transformers", \
"==5.19.0"]]}], "faults": []}
"""
SGLANG_ON_312 = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "sglang", "version": "0.5.23", "location": "/srv/site/a", "installer": "", "tag": \
"cp312-cp312-manylinux_2_34_x86_64", "requires": [["python", ">=3.11"], ["torch", "==2.14.1"], ["transformers", \
"==5.19.0"]]}], "faults": []}
"""
ASKED = "$ diag matrix check "


@check(
    "python/unsupported-by-engine",
    severity="error",
    about="python",
    verdict="metadata-conflict",
    checked="2026-11-30",
    needs=(Python,),
    uses=(Engine, Package, Requirement, Pin),
    words={
        "en": {
            "title": "The engine, or what it stands on, does not support this Python",
            "summary": "{engine} {version} needs Python {wanted}; this is {python}",
            "cause": "It was put into the environment past pip's own test: copied, installed with "
            "--ignore-requires-python, or found through PYTHONPATH.",
        },
        "zh": {
            "title": "推理引擎或其依赖不支持当前 Python 版本",
            "summary": "{engine} {version} 需要 Python {wanted}，当前为 {python}",
            "cause": "它绕过了 pip 的检查：被复制到该环境、安装时用了 --ignore-requires-python，或经 PYTHONPATH 找到。",
        },
    },
    remedies=(
        Remedy(
            key="environment",
            title={
                "en": "Create an environment with a Python that {engine} supports, and install it there",
                "zh": "用 {engine} 支持的 Python 版本创建环境，并在其中安装",
            },
            commands=('uv venv --python "{wanted}"', "uv pip install {engine}=={public}"),
            safety="safe",
            verify='python -c "import {module}; print({module}.__version__)"',
            source="https://github.com/phoronix-test-suite/test-profiles/issues/337",
        ),
    ),
    sources=("https://github.com/phoronix-test-suite/test-profiles/issues/337",),
    fires=(SGLANG_ON_310, ASKED + "python=3.9 torch==2.9.0", ASKED + "python=3.9 vllm-ascend==0.23.0"),
    silent=(SGLANG_ON_312, ASKED + "python=3.10 torch==2.9.0", ASKED + "python=3.12 vllm-ascend==0.23.0"),
)
def unsupported_by_engine(facts: Facts) -> Iterator[Answer]:
    """Compare the interpreter with what the engine declares, and with what torch and the plug-ins do."""
    python, ranges = facts.all(Python)[0], _ranges(facts)
    engines = {one.name: one for one in facts.all(Engine) if one.version and one.role != "running"}
    others = {one.name: one for one in facts.all(Package) if one.name not in engines and _asks(ranges, one)}
    if not engines and not others:
        yield Undecided(reason="the version of no engine is told")
    judged: list[Engine | Package] = [*engines.values(), *others.values()]
    for told in judged:
        asks = _asks(ranges, told)
        met = None if asks is None else _met(python.version, asks.specifier)
        if asks is None or met is None:
            yield Undecided(reason=f"the Python that {told.name} {told.version} needs is not known")
        else:
            yield _fits(told, python, asks) if met else _finding(told, python, asks)


def _ranges(facts: Facts) -> dict[str, list[Requirement | Pin]]:
    """What distributions ask of Python, by their name: by their own metadata first."""
    ranges: dict[str, list[Requirement | Pin]] = {}
    told: list[Requirement | Pin] = [*facts.all(Requirement), *facts.all(Pin)]
    for one in told:
        if one.name == "python":
            ranges.setdefault(one.package, []).append(one)
    return ranges


def _asks(ranges: dict[str, list[Requirement | Pin]], told: Engine | Package) -> Requirement | Pin | None:
    rows = ranges.get(told.name, [])
    return next((one for one in rows if isinstance(one, Requirement) or same(one.version, told.version)), None)


def _fits(told: Engine | Package, python: Python, asks: Requirement | Pin) -> Fits:
    return Fits(
        says={
            "en": f"{told.name} {told.version} needs Python {asks.specifier}: met by {python.version}",
            "zh": f"{told.name} {told.version} 需要 Python {asks.specifier}：{python.version} 满足",
        },
        source=_source(asks),
        checked=asks.checked if isinstance(asks, Pin) else "",
    )


def _finding(told: Engine | Package, python: Python, asks: Requirement | Pin) -> Finding:
    return Finding(
        subject=told.name,
        values={
            "engine": told.name,
            "module": told.name.replace("-", "_"),
            "version": told.version,
            "public": public(told.version),
            "wanted": asks.specifier,
            "python": python.version,
        },
        evidence=tuple(map(Evidence.of, (python, asks if isinstance(asks, Requirement) else told))),
        source=_source(asks),
        checked=asks.checked if isinstance(asks, Pin) else "",
    )


def _source(asks: Requirement | Pin) -> str:
    return asks.source if isinstance(asks, Pin) else f"metadata of the installed {asks.package}"


def _met(version: str, specifier: str) -> bool | None:
    """Whether the interpreter is in the range; a report that names the series alone (`3.8`) may not tell."""
    if "." not in version:
        return None
    if version.count(".") >= 2:
        return satisfies(version, specifier)
    ends = {satisfies(f"{version}.{patch}", specifier) for patch in (0, 99)}
    return ends.pop() if len(ends) == 1 else None
