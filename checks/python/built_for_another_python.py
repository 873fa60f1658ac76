"""An installed wheel holds modules for another version of Python.

## What it finds
A compiled distribution whose wheel was built for one Python (`cp311-cp311`) on the path of another; wheels for the
stable interface (`abi3`) and for any Python fit.

## Why it matters
The interpreter does not see its extension modules: the import fails although the distribution is listed, or an older
copy of it is used.

## What it cannot know
Whether anything imports the distribution.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Package, Python, Remedy, Undecided, check, expression, numbers

TAG = expression(r"(?:cp|pp)(\d)(\d+)$")

NUMPY_311_ON_312 = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "numpy", "version": "2.2.6", "location": "/opt/shared/site-packages", "installer": "pip", "tag": \
"cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64"}, {"name": "msgspec", "version": "0.23.0", "location": \
"/opt/venv/lib/python3.12/site-packages", "installer": "pip", "tag": \
"cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.manylinux_2_28_x86_64"}], "faults": []}
"""
ALL_312 = """\
{"schema": "diag/packages/1", "python": "3.12.1", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": null, "packages": \
[{"name": "msgspec", "version": "0.23.0", "location": "/opt/venv/lib/python3.12/site-packages", "installer": \
"pip", "tag": "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.manylinux_2_28_x86_64"}, {"name": \
"psutil", "version": "7.2.2", "location": "/opt/venv/lib/python3.12/site-packages", "installer": "pip", "tag": \
"cp36-abi3-manylinux_2_12_x86_64.manylinux2010_x86_64.manylinux_2_28_x86_64"}, {"name": "ruff", "version": \
"0.17.6", "location": "/opt/venv/lib/python3.12/site-packages", "installer": "pip", "tag": \
"py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64"}], "faults": []}
"""


@check(
    "python/built-for-another-python",
    severity="error",
    about="python",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package, Python),
    words={
        "en": {
            "title": "Distributions on the path are for another Python",
            "summary": "on the path of Python {python}, built for another: {count}, {packages}",
            "cause": "PYTHONPATH, a mounted folder or a copied environment puts the packages of another interpreter on "
            "the path: {location}.",
        },
        "zh": {
            "title": "搜索路径上有为其他 Python 版本构建的软件包",
            "summary": "Python {python} 的搜索路径上有 {count} 个为其他版本构建的软件包：{packages}",
            "cause": "PYTHONPATH、挂载的目录或复制的环境把另一解释器的软件包放入了搜索路径：{location}。",
        },
    },
    remedies=(
        Remedy(
            key="path",
            title={
                "en": "Start without PYTHONPATH, with the environment's own interpreter",
                "zh": "不设置 PYTHONPATH，用该环境自己的解释器启动",
            },
            commands=("env -u PYTHONPATH python -c 'import sys; print(sys.path)'",),
            safety="safe",
            verify="pip check",
            source="https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",
        ),
    ),
    sources=("https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/",),
    fires=(NUMPY_311_ON_312,),
    silent=(ALL_312,),
    explains=("torch/import-fails",),
)
def built_for_another_python(facts: Facts) -> Iterator[Answer]:
    """Compare the interpreter with the Python that each wheel's tag names."""
    tagged = [one for one in facts.all(Package) if one.tag]
    python = next((one for one in facts.all(Python) if len(numbers(one.version)) >= 2), None)
    if python is None or not tagged:
        yield Undecided(reason="the interpreter and the tags of the wheels are not both told")
        return
    unfit = [one for one in tagged if not _fits(one.tag, numbers(python.version)[:2])]
    if unfit:
        named = ", ".join(f"{one.name} {one.version} ({one.tag.partition('-')[0]})" for one in unfit[:3])
        yield Finding(
            values={
                "python": python.version,
                "count": len(unfit),
                "location": unfit[0].location,
                "packages": named + (", …" if len(unfit) > 3 else ""),
            },
            evidence=(Evidence.of(unfit[0]), Evidence.of(python)),
        )


def _fits(tag: str, python: tuple[int, ...]) -> bool:
    """Whether one of the interpreters of a tag is this one, or, with the stable interface, an older one."""
    interpreters, abis, _ = tag.split("-", 2)
    named = [(int(found[1]), int(found[2])) for word in interpreters.split(".") if (found := TAG.match(word))]
    if not named:
        return True
    return python in named or ({"abi3", "none"} & set(abis.split(".")) != set() and min(named) <= python)
