"""The interpreter is none that the installed engine supports.

## What it finds
A version of Python outside the range that the installed engine declares (`Requires-Python`): in its own metadata, or in
that of its release.

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
    Fact,
    Facts,
    Finding,
    Fits,
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


@check(
    "python/unsupported-by-engine",
    severity="error",
    about="python",
    verdict="metadata-conflict",
    checked="2026-11-30",
    needs=(Python, Engine),
    uses=(Requirement, Pin),
    words={
        "en": {
            "title": "The engine does not support this Python",
            "summary": "{engine} {version} needs Python {wanted}; this is {python}",
            "cause": "The engine was put into the environment past pip's own test: copied, installed with "
            "--ignore-requires-python, or found through PYTHONPATH.",
        },
        "zh": {
            "title": "推理引擎不支持当前 Python 版本",
            "summary": "{engine} {version} 需要 Python {wanted}，当前为 {python}",
            "cause": "推理引擎绕过了 pip 的检查：被复制到该环境、安装时用了 --ignore-requires-python，"
            "或经 PYTHONPATH 找到。",
        },
    },
    remedies=(
        Remedy(
            key="environment",
            title={
                "en": "Create an environment with a Python that the engine supports, and install the engine there",
                "zh": "用推理引擎支持的 Python 版本创建环境，并在其中安装推理引擎",
            },
            commands=('uv venv --python "{wanted}"', "uv pip install {engine}=={public}"),
            safety="safe",
            verify='python -c "import {engine}; print({engine}.__version__)"',
            source="https://github.com/phoronix-test-suite/test-profiles/issues/337",
        ),
    ),
    sources=("https://github.com/phoronix-test-suite/test-profiles/issues/337",),
    fires=(SGLANG_ON_310,),
    silent=(SGLANG_ON_312,),
)
def unsupported_by_engine(facts: Facts) -> Iterator[Answer]:
    """Compare the interpreter with what the engine declares."""
    python = facts.all(Python)[0]
    engines = {one.name: one for one in facts.all(Engine) if one.version and one.role != "running"}
    if not engines:
        yield Undecided(reason="the version of no engine is told")
    for engine in engines.values():
        asks = next(_asks(facts, engine), None)
        own = f"metadata of the installed {engine.name}"
        source, checked = (asks.source, asks.checked) if isinstance(asks, Pin) else (own, "")
        met = None if asks is None else _met(python.version, asks.specifier)
        if asks is None or met is None:
            yield Undecided(reason=f"the Python that {engine.name} {engine.version} needs is not known")
        elif met:
            yield Fits(
                says={
                    "en": f"{engine.name} {engine.version} needs Python {asks.specifier}: met by {python.version}",
                    "zh": f"{engine.name} {engine.version} 需要 Python {asks.specifier}：{python.version} 满足",
                },
                source=source,
                checked=checked,
            )
        else:
            told: tuple[Fact, ...] = (python, asks) if isinstance(asks, Requirement) else (python, engine)
            yield Finding(
                subject=engine.name,
                values={
                    "engine": engine.name,
                    "version": engine.version,
                    "public": public(engine.version),
                    "wanted": asks.specifier,
                    "python": python.version,
                },
                evidence=tuple(map(Evidence.of, told)),
                source=source,
                checked=checked,
            )


def _asks(facts: Facts, engine: Engine) -> Iterator[Requirement | Pin]:
    for own in facts.all(Requirement):
        if (own.package, own.name) == (engine.name, "python"):
            yield own
    for row in facts.all(Pin):
        if (row.package, row.name) == (engine.name, "python") and same(row.version, engine.version):
            yield row


def _met(version: str, specifier: str) -> bool | None:
    """Whether the interpreter is in the range; a report that names the series alone (`3.8`) may not tell."""
    if "." not in version:
        return None
    if version.count(".") >= 2:
        return satisfies(version, specifier)
    ends = {satisfies(f"{version}.{patch}", specifier) for patch in (0, 99)}
    return ends.pop() if len(ends) == 1 else None
