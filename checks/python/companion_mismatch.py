"""A distribution that is compiled for one torch stands beside another.

## What it finds
torchvision, torchaudio, xformers or torch_npu whose own metadata names another torch than the one that is installed.
Where the text holds no metadata: whose published table does, unless the installed engine pins just this pair.

## Why it matters
Their extension modules are linked against one series of torch: they are not loaded beside another, so operators are
missing (`operator torchvision::nms does not exist`) or the import fails on an undefined symbol, and the engine with it.

## What it cannot know
Builds of one's own: nightlies, alphas and versions with a commit are compiled against the torch that was there, and
are not judged. Two patch releases of one series of torch are taken to fit.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    Package,
    PackageList,
    Pin,
    Remedy,
    Requirement,
    Undecided,
    check,
    expression,
    local,
    minor,
    public,
    satisfies,
    spelled,
)

COMPANIONS = ("torchvision", "torchaudio", "xformers", "torch-npu")
ENGINES = ("vllm", "sglang")
INDEX = " --index-url https://download.pytorch.org/whl/{build}"
RELEASED = expression(r"\d+(?:\.\d+)+(?:\.post\d+|rc\d+)?(?:\+(?:cu\d{3}|cpu|xpu|rocm\d[\d.]*))?")
Asks = Requirement | Pin

CONDA_TORCH_200 = """\
# packages in environment at /home/user/anaconda3/envs/imageSeg:
#
# Name                    Version                   Build  Channel
torch                     2.0.0                    pypi_0    pypi
torchaudio                2.1.1                    pypi_0    pypi
torchvision               0.15.1                   pypi_0    pypi
"""
RESOLVER = """\
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. \
This behaviour is the source of the following dependency conflicts.
torchvision 0.19.1 requires torch==2.4.1, but you have torch 2.5.1 which is incompatible.
"""
FREEZE_VLLM_0330 = """\
torch==2.14.0
torch_c_dlpack_ext==0.1.5
torchaudio==2.11.0
torchcodec==0.17.0
torchvision==0.29.0
vllm==0.33.0
"""
LIST_TORCH_212 = """\
torch                                    2.1.2
torch-neuronx                            2.1.2.2.3.0
torchvision                              0.16.2
"""
CHILD_213 = """\
{"schema": "diag/packages/1", "python": "3.11.7", "executable": "/opt/venv/bin/python", "prefix": "/opt/venv", \
"libc": "glibc-2.36", "kernel": "6.8.0-60-generic", "machine": "x86_64", "path": [], "torch": {"__version__": \
"2.13.0+cpu", "debug": false, "cuda": null, "hip": null, "xpu": null, "git_version": \
"cf30153c4c131c8164ee7798e5022d810682e2cb"}, "packages": [{"name": "torch", "version": "2.13.0+cpu", "location": \
"/opt/base/lib/python3.11/site-packages", "installer": "pip", "tag": "cp311-cp311-manylinux_2_28_x86_64", \
"requires": [["python", ">=3.10"]]}, {"name": "torchaudio", "version": "2.8.0", "location": \
"/opt/venv/lib/python3.11/site-packages", "installer": "pip", "tag": "cp311-cp311-manylinux_2_28_x86_64", \
"requires": [["torch", "==2.8.0"]]}, {"name": "torchvision", "version": "0.23.0", "location": \
"/opt/venv/lib/python3.11/site-packages", "installer": "pip", "tag": "cp311-cp311-manylinux_2_28_x86_64", \
"requires": [["python", ">=3.9"], ["torch", "==2.8.0"]]}], "faults": []}
"""


@check(
    "python/companion-mismatch",
    severity="error",
    about="python",
    verdict="known-bad",
    checked="2026-11-30",
    needs=(Package,),
    uses=(Requirement, Pin, PackageList),
    words={
        "en": {
            "title": "A distribution was compiled for another torch",
            "summary": "{name} {version} is for torch {wanted}; torch {torch} is installed",
            "cause": "One of the two was installed or upgraded without the other, so the extension modules of {name} "
            "do not load, or their operators are never registered.",
        },
        "zh": {
            "title": "有软件包是为另一个 torch 版本编译的",
            "summary": "{name} {version} 对应 torch {wanted}，而已安装的是 torch {torch}",
            "cause": "两者之一被单独安装或升级，{name} 的扩展模块因此无法加载，或其算子无法注册。",
        },
    },
    remedies=(
        Remedy(
            key="pair",
            title={
                "en": "Install the {name} for torch {torch}, without letting pip replace torch",
                "zh": "安装与 torch {torch} 配套的 {name}，且不让 pip 替换 torch",
            },
            commands=('pip install --no-deps "{name}=={fitting}"{index}',),
            safety="disruptive",
            verify='python -c "import {module}; print({module}.__version__)"',
            source="https://github.com/pytorch/vision/blob/main/README.md",
        ),
        Remedy(
            key="engine",
            title={
                "en": "Or install the engine anew in a fresh environment, with torch and {name} as it pins them",
                "zh": "或在全新环境中重新安装推理引擎，由它锁定 torch 和 {name} 的版本",
            },
            safety="manual",
            verify="pip check",
        ),
    ),
    sources=(
        "https://github.com/pytorch/vision/blob/main/README.md",
        "https://docs.pytorch.org/audio/2.11.0/installation.html",
        "https://github.com/vllm-project/vllm-ascend/pull/479",
        "https://github.com/vllm-project/vllm/issues/5736",
    ),
    fires=(CONDA_TORCH_200, RESOLVER, CHILD_213),
    silent=(FREEZE_VLLM_0330, LIST_TORCH_212),
)
def companion_mismatch(facts: Facts) -> Iterator[Answer]:
    """Compare the torch each companion was compiled for with the one that is there."""
    torch = facts.package("torch")
    there = [one for one in map(facts.package, COMPANIONS) if one]
    if torch is None:
        yield Undecided(reason="torch is not among the packages")
    elif not there and not facts.first(PackageList):
        yield Undecided(reason=f"none of {', '.join(COMPANIONS)} is among the packages")
    elif torch:
        for companion in there:
            yield from _judged(facts, torch, companion)


def _judged(facts: Facts, torch: Package, companion: Package) -> Iterator[Answer]:
    told = f"{companion.name} {companion.version} and torch {torch.version}"
    if not all(RELEASED.fullmatch(one.version) for one in (torch, companion)):
        yield Undecided(reason=f"{told}: one of them is no release")
        return
    asks = next(_asks(facts, companion), None)
    if asks is None:
        if not _pinned_together(facts, torch, companion):
            yield Undecided(reason=f"{told}: the torch it was compiled for is not known")
    elif not _fits(torch, asks.specifier) and (
        isinstance(asks, Requirement) or not _pinned_together(facts, torch, companion)
    ):
        yield _finding(facts, (torch, companion), asks)


def _asks(facts: Facts, companion: Package) -> Iterator[Asks]:
    """What names the torch that the companion was compiled for, the strongest first."""
    for own in facts.all(Requirement):
        if (own.package, own.name) == (companion.name, "torch") and own.specifier:
            yield own
    for row in facts.all(Pin):
        if (row.package, row.name) == (companion.name, "torch") and _series(companion.version, row.version):
            yield row


def _series(version: str, series: str) -> bool:
    return f"{public(version)}.".startswith(f"{series}.")


def _fits(torch: Package, specifier: str) -> bool:
    """Whether torch is what is asked for, or of the same series where one release is."""
    exact = specifier.removeprefix("==").partition("+")[0]
    return satisfies(torch.version, f"=={minor(exact)}.*" if specifier.startswith("==") else specifier) is not False


def _pinned_together(facts: Facts, torch: Package, companion: Package) -> bool:
    """Whether an installed engine asks for just these two."""
    wanted: dict[tuple[str, str], Asks] = {}
    asked: tuple[Asks, ...] = (*facts.all(Requirement), *facts.all(Pin))
    for one in asked:
        engine = facts.package(one.package) if one.package in ENGINES else None
        if engine and public(engine.version) == one.version:
            wanted.setdefault((one.package, one.name), one)
    pairs = [(wanted.get((engine, "torch")), wanted.get((engine, companion.name))) for engine in ENGINES]
    return any(
        first
        and second
        and satisfies(torch.version, first.specifier)
        and satisfies(companion.version, second.specifier)
        for first, second in pairs
    )


def _finding(facts: Facts, pair: tuple[Package, Package], asks: Asks) -> Finding:
    torch, companion = pair
    fitting = [
        row.version + (".*" if row.version.count(".") == 1 else "")
        for row in facts.all(Pin)
        if (row.package, row.name) == (companion.name, "torch") and satisfies(torch.version, row.specifier)
    ]
    build = local(torch.version) if companion.name != "torch-npu" else ""
    evidence: tuple[Fact, ...] = (asks, companion, torch) if isinstance(asks, Requirement) else (companion, torch)
    return Finding(
        subject=companion.name,
        values={
            "name": companion.name,
            "version": companion.version,
            "torch": torch.version,
            "wanted": asks.specifier.removeprefix("==").removesuffix(".*"),
            "fitting": fitting[-1] if fitting else "",
            "index": spelled(INDEX if build else "", {"build": build}),
            "module": companion.name.replace("-", "_"),
        },
        evidence=tuple(map(Evidence.of, {one.origin: one for one in evidence}.values())),
        remedies=("pair", "engine") if fitting else ("engine",),
    )
