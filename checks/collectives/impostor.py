"""Another library than its name says stands behind a backend of torch.

## What it finds
A backend that was asked for by the name of one maker's library, where the process holds another maker's: `nccl` is
RCCL on AMD and Hygon devices, BKCL on Kunlun's, MCCL on MetaX's.

## Why it matters
What is known of the one does not hold for the other: its variables, its versions, its faults. The version that torch
tells may be that of an interface, not of the library.

## What it cannot know
What is linked into torch itself and is no file.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveWorld, Evidence, Facts, Finding, Library, Remedy, Undecided, check

OWN = {"nccl": "libnccl", "xccl": "libccl", "ccl": "libccl", "hccl": "libhccl", "mccl": "libmccl", "rccl": "librccl"}
CALLED = {
    "libnccl": "NCCL",
    "librccl": "RCCL",
    "libbkcl": "BKCL",
    "libccl": "oneCCL",
    "libhccl": "HCCL",
    "libmccl": "MCCL",
    "libflagcx": "FlagCX",
}

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", '
    '"size": 2, '
)
KUNLUN = HEAD + (
    '"implementation": "ProcessGroupXCCL", "results": [], "ranks": [{"rank": 0, "host": "a", "libraries": '
    '[["/usr/local/lib/python3.10/site-packages/torch_xmlir/libbkcl.so", ""]]}, {"rank": 1, "host": "a", "libraries": '
    '[["/usr/local/lib/python3.10/site-packages/torch_xmlir/libbkcl.so", ""]]}]}\n'
)
NVIDIA = HEAD + (
    '"implementation": "ProcessGroupNCCL", "results": [], "ranks": [{"rank": 0, "host": "a", "libraries": '
    '[["/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2", "2.28.9"]]}, {"rank": 1, "host": "a", '
    '"libraries": [["/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2", "2.28.9"]]}]}\n'
)


@check(
    "collectives/impostor",
    severity="info",
    about="device",
    needs=(CollectiveWorld,),
    uses=(Library,),
    words={
        "en": {
            "title": "A backend of torch is another library than its name says",
            "summary": 'the backend "{backend}" ({implementation}) is {called}: {path}',
            "cause": "The maker's build of torch registers its own library under the name that programs ask for.",
        },
        "zh": {
            "title": "torch 后端的实际通信库与名称不符",
            "summary": '后端 "{backend}"（{implementation}）实际为 {called}：{path}',
            "cause": "厂商的 torch 构建以程序惯用的名称注册了自己的通信库。",
        },
    },
    remedies=(
        Remedy(
            key="its-own",
            title={
                "en": "Nothing is to be mended: set that library's own variables, and state its own version",
                "zh": "无需修复：请设置该库自己的环境变量，并以其自身的版本为准",
            },
            commands=("grep -o '/.*ccl.*' /proc/$PID/maps | sort -u", "strings {path} | grep -iE '[a-z]ccl version'"),
            safety="safe",
            source="https://github.com/baidu/vLLM-Kunlun",
        ),
    ),
    sources=(
        "https://github.com/baidu/vLLM-Kunlun",
        "https://github.com/ROCm/rccl/blob/HEAD/README.md",
        "https://github.com/flagos-ai/FlagCX",
    ),
    fires=(KUNLUN,),
    silent=(NVIDIA,),
)
def impostor(facts: Facts) -> Iterator[Answer]:
    """Compare the backend's name with the libraries in the ranks' memory."""
    held = {one.name: one for one in facts.all(Library) if one.process == "collectives" and one.name in CALLED}
    for world in facts.all(CollectiveWorld):
        own = OWN.get(world.backend)
        if own is None or own in held:
            continue
        if not held:
            yield Undecided(reason="no collective library is among the files in the ranks' memory")
            continue
        other = next(iter(held.values()))
        yield Finding(
            subject=world.backend,
            values={
                "backend": world.backend,
                "implementation": world.implementation or "?",
                "called": CALLED[other.name],
                "path": other.path,
            },
            evidence=(Evidence.of(world), Evidence.of(other)),
        )
