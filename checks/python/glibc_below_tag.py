"""The machine's C library is older than the one that an installed wheel was built for.

## What it finds
A distribution whose wheel asks for a newer glibc (`manylinux_2_34`) than the interpreter runs on, or for another C
library: a wheel for glibc on musl, a wheel for musl on glibc.

## Why it matters
pip never installs such a wheel. Where it got there all the same, because an environment was copied or mounted from
another machine, the import of its modules may end in "version `GLIBC_2.34' not found".

## What it cannot know
Which symbols the modules really use: a wheel may run on an older library than its tag says. Hence a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Host,
    Package,
    Remedy,
    Undecided,
    at_least,
    check,
    expression,
)

GLIBC = expression(r"manylinux_(\d+)_(\d+)_")
OLD = {"manylinux1_": "2.5", "manylinux2010_": "2.12", "manylinux2014_": "2.17"}
"""What the names that older wheels bear stand for."""

SGLANG_ON_231 = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.31", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "sglang", "version": "0.5.23", "location": "/srv/site/a", "installer": "", "tag": \
"cp312-cp312-manylinux_2_34_x86_64", "requires": []}], "faults": []}
"""
SGLANG_ON_236 = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "sglang", "version": "0.5.23", "location": "/srv/site/a", "installer": "", "tag": \
"cp312-cp312-manylinux_2_34_x86_64", "requires": []}], "faults": []}
"""


@check(
    "python/glibc-below-tag",
    severity="warning",
    about="python",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package, Host),
    words={
        "en": {
            "title": "The C library is older than installed wheels ask for",
            "summary": "wheels that ask for more than {libc}: {count}, {packages}",
            "cause": "The environment was made on, or for, a newer system, and was copied or mounted here.",
        },
        "zh": {
            "title": "C 库版本低于已安装 wheel 的要求",
            "summary": "有 {count} 个 wheel 要求高于 {libc}：{packages}",
            "cause": "该环境是在（或为）更新的系统创建的，被复制或挂载到了本机。",
        },
    },
    remedies=(
        Remedy(
            key="container",
            title={
                "en": "Run the environment in a container whose system is new enough",
                "zh": "在系统版本足够新的容器中运行该环境",
            },
            safety="manual",
            verify="ldd --version",
            source="https://github.com/vllm-project/vllm/issues/39609",
        ),
        Remedy(
            key="anew",
            title={
                "en": "Or create the environment anew on this machine, so that pip chooses wheels that fit",
                "zh": "或在本机重新创建环境，由 pip 选择适配的 wheel",
            },
            safety="manual",
            verify="pip check",
            source="https://github.com/vllm-project/vllm/issues/39609",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/39609",
        "https://github.com/vllm-project/vllm/issues/41103",
        "https://github.com/vllm-project/vllm/issues/58270",
    ),
    fires=(SGLANG_ON_231,),
    silent=(SGLANG_ON_236,),
)
def glibc_below_tag(facts: Facts) -> Iterator[Answer]:
    """Compare the C library with what each wheel's tag asks for."""
    host = next((one for one in facts.all(Host) if one.libc), None)
    tagged = [one for one in facts.all(Package) if one.tag]
    if host is None or not tagged:
        yield Undecided(reason="the C library and the tags of the wheels are not both told")
        return
    unfit = [one for one in tagged if not _fits(one.tag, host.libc)]
    if unfit:
        named = ", ".join(f"{one.name} {one.version} ({one.tag.rpartition('-')[2]})" for one in unfit[:3])
        yield Finding(
            values={"count": len(unfit), "libc": host.libc, "packages": named + (", …" if len(unfit) > 3 else "")},
            evidence=(Evidence.of(unfit[0]), Evidence.of(host)),
        )


def _fits(tag: str, libc: str) -> bool:
    """Whether one of the platforms of a tag fits; a platform that tells nothing of a C library does."""
    platforms = tag.rpartition("-")[2].split(".")
    asked = [word for word in platforms if word.startswith(("manylinux", "musllinux"))]
    return not asked or any(_platform_fits(word, libc) for word in asked)


def _platform_fits(word: str, libc: str) -> bool:
    if word.startswith("musllinux"):
        return not libc.startswith("glibc")
    found = GLIBC.match(word)
    wanted = (
        f"{found[1]}.{found[2]}"
        if found
        else next((least for start, least in OLD.items() if word.startswith(start)), "")
    )
    return libc.startswith("glibc-") and (not wanted or at_least(libc.removeprefix("glibc-"), wanted) is not False)
