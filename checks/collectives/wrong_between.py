"""Between two ranks a message arrives changed.

## What it finds
Pairs in which the last of several messages is not what was sent; where all that leaves or reaches a rank is changed, it
is that rank.

## Why it matters
Nothing reports it. A model that is spread over these devices answers, and answers wrong.

## What it cannot know
Whether the memory, the link or the translation of addresses in between changed it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveVerdict, Evidence, Facts, Finding, Remedy, check

RANKS = ", ".join(f'{{"rank": {rank}, "host": "a"}}' for rank in range(4))
HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", '
    f'"size": 4, "ranks": [{RANKS}], "results": [], "isolation": {{"large": 33554432, "error": "", "steps": ['
)
ROUNDS = str([[[one, other]] for one in range(4) for other in range(4) if one != other])
STEP = f'{{"kind": "pairs", "of": "all", "bytes": [8192, 33554432], "rounds": {ROUNDS}, "seconds": '
STEP += str([[[0.00002, 0.0017]]] * 12)
END = "}]}}\n"
ONE = HEAD + STEP + ', "wrong": [[2, 3]]' + END
ALL_OF_ONE = HEAD + STEP + ', "wrong": [[2, 0], [2, 1], [2, 3]]' + END
CALM = ", ".join(
    f'{{"kind": "{kind}", "bytes": 1048576, "seconds": [0.0104, 0.0101, 0.0102, 0.0103]}}'
    for kind in ("self", "late")
    for _ in range(3)
)
RIGHT = HEAD + f"{CALM}, " + ", ".join([STEP + ', "wrong": []}'] * 3) + END[1:]
WAYS = {"out": ("sends", "发出"), "in": ("receives", "收到"), "both": ("exchanges", "收发")}


@check(
    "collectives/wrong-between",
    severity="error",
    about="device",
    needs=(CollectiveVerdict,),
    words={
        "en": {
            "title": "Data change on their way from one rank to another",
            "summary": "{where.en} is not what was sent ({hosts})",
            "cause": "Direct transfers between the devices go through an IOMMU or a switch that does not pass them on "
            "as they are, or a device's memory or link is broken.",
        },
        "zh": {
            "title": "数据在 rank 之间传输时被改变",
            "summary": "{where.zh} 与发送内容不一致（{hosts}）",
            "cause": "设备间直接传输经过 IOMMU 或交换芯片时被破坏，或设备显存、链路损坏。",
        },
    },
    remedies=(
        Remedy(
            key="without-direct-transfers",
            title={
                "en": "See whether it is right without direct transfers, and look at IOMMU and ACS",
                "zh": "关闭设备间直接传输后重测，并检查 IOMMU 与 ACS",
            },
            commands=(
                "NCCL_P2P_DISABLE=1 diag comm --isolate",
                "cat /proc/cmdline; sudo lspci -vvv | grep ACSCtl",
                "nvidia-smi --query-gpu=index,ecc.errors.uncorrected.volatile.total --format=csv",
            ),
            safety="safe",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        ),
    ),
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    explains=("collectives/wrong-result",),
    fires=(ONE, ALL_OF_ONE),
    silent=(RIGHT,),
)
def wrong_between(facts: Facts) -> Iterator[Answer]:
    """Each pair or rank whose data arrive changed."""
    for one in (one for one in facts.all(CollectiveVerdict) if one.kind == "wrong"):
        rank = one.ranks[0]
        way = WAYS[one.direction or "both"]
        words = (f"what rank {rank} {way[0]}", f"rank {rank} {way[1]}的数据")
        for peer in one.peers:
            words = (f"what rank {peer} receives from rank {rank}", f"rank {peer} 从 rank {rank} 收到的数据")
        yield Finding(
            subject=f"rank {rank}",
            values={"where.en": words[0], "where.zh": words[1], "hosts": ", ".join(one.hosts)},
            evidence=(Evidence.of(one),),
        )
