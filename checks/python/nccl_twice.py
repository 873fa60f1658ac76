"""A process holds two copies of its collective library.

## What it finds
Two files of `libnccl` (or `librccl`, `libbkcl`, `libhccl`, `libccl`, `libmccl`, `libflagcx`) in the memory of the
process that imported torch, or of a rank that measured collectives, which holds what torch loads at its first call.

## Why it matters
Each copy has a state and a version of its own: what one initialised the other does not know, and a setting or a fix
reaches only one of them.

## What it cannot know
Which copy an engine asks by its own loader later. A copy that is linked into torch itself is no file and is not seen,
and neither is one that lies on the disk and was not loaded.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Library, Remedy, Undecided, check

NAMES = ("libnccl", "librccl", "libbkcl", "libhccl", "libccl", "libmccl", "libflagcx")
RANKS = "collectives"
"""The processes of ranks, as `Library` names them."""

TWO = """\
{"schema": "diag/torch-env/1", "executable": "/opt/venv/bin/python", "import_seconds": 3.9, "build": \
{"version": "2.11.0+cu130", "cuda": "13.0", "hip": null, "xpu": null, "debug": false, "git_version": null, \
"nccl": "2.28.9"}, "available": true, "backend": "cuda", "devices": [], "architectures": [], "warnings": [], \
"libraries": ["/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3", \
"/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2"], "versions": {"ncclGetVersion": 23004}}
"""
IN_A_RANK = """\
{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", "size": 2, \
"results": [], "ranks": [{"rank": 0, "host": "a", "libraries": [["/opt/rocm/lib/librccl.so.1.0.60304", ""], \
["/opt/venv/lib/python3.12/site-packages/torch/lib/librccl.so.1", ""]]}, {"rank": 1, "host": "a"}]}
"""
ONE = TWO.replace('"/usr/lib/x86_64-linux-gnu/libnccl.so.2.28.3", ', "")


@check(
    "python/nccl-twice",
    severity="warning",
    about="python",
    needs=(Library,),
    words={
        "en": {
            "title": "Two copies of the collective library are loaded",
            "summary": "{process.en} holds {paths}",
            "cause": "One copy came with torch's wheel; another was found by its bare name, through LD_LIBRARY_PATH, "
            "LD_PRELOAD or the system's folders.",
        },
        "zh": {
            "title": "进程中加载了两份集合通信库",
            "summary": "{process.zh}同时持有 {paths}",
            "cause": "一份来自 torch 的 wheel，另一份经裸文件名、LD_LIBRARY_PATH、LD_PRELOAD 或系统目录被找到。",
        },
    },
    remedies=(
        Remedy(
            key="one-copy",
            title={
                "en": "Keep one: take the system's folders out of LD_LIBRARY_PATH and LD_PRELOAD, or remove the "
                "system's package where nothing else needs it",
                "zh": "只保留一份：从 LD_LIBRARY_PATH 和 LD_PRELOAD 中去掉系统目录，或在无其他程序需要时卸载系统软件包",
            },
            commands=("env | grep -E 'LD_LIBRARY_PATH|LD_PRELOAD|NCCL_SO_PATH'", "ldconfig -p | grep ccl"),
            safety="manual",
            verify="grep -ho '/.*ccl.so.*' /proc/$PID/maps | sort -u",
            source="https://github.com/verl-project/verl/pull/6621",
        ),
    ),
    sources=(
        "https://github.com/verl-project/verl/pull/6621",
        "https://github.com/rapidsai/cugraph/issues/4465",
    ),
    fires=(TWO, IN_A_RANK),
    silent=(ONE,),
)
def nccl_twice(facts: Facts) -> Iterator[Answer]:
    """Count the files of each name in each process; what a rank holds is told before what torch alone does."""
    told = [one for one in facts.all(Library) if one.name in NAMES]
    if not told:
        yield Undecided(reason="no collective library is among the libraries in memory")
    for name in NAMES:
        processes = sorted({one.process for one in told if one.name == name}, key=lambda one: one != RANKS)
        copies = [
            {one.path: one for one in told if (one.name, one.process) == (name, process)} for process in processes
        ]
        found = next(((process, held) for process, held in zip(processes, copies, strict=True) if len(held) > 1), None)
        if found:
            yield _finding(name, *found)


def _finding(name: str, process: str, copies: dict[str, Library]) -> Finding:
    who = (
        {"en": "a rank", "zh": "rank 进程"}
        if process == RANKS
        else {"en": "the process that imported torch", "zh": "导入 torch 的进程"}
    )
    return Finding(
        subject=name,
        values={"paths": ", ".join(copies), **{f"process.{language}": words for language, words in who.items()}},
        evidence=tuple(map(Evidence.of, copies.values())),
    )
