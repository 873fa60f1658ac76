"""Something is slow between ranks, and it is no rank, link or host.

## What it finds
Slow pairs that make no picture, which nobody is accused of; and hosts whose pairs are all healthy, while every group in
which certain ones take part together is slow.

## Why it matters
It says where not to look: a spare part will not help. What is left is the fabric, its congestion, the configuration, or
a machine that was busy.

## What it cannot know
Which of these. On machines with several kinds of links between devices the slower kind looks the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveVerdict, Evidence, Facts, Finding, Remedy, check

RANKS = ", ".join(f'{{"rank": {rank}, "host": "h{rank}"}}' for rank in range(4))
HEAD = (
    '{"schema": "diag/collectives/1", "device": "cpu", "backend": "gloo", "dtype": "bf16", "launcher": "torchrun", '
    f'"size": 4, "ranks": [{RANKS}], "results": [], "isolation": {{"large": 1048576, "error": "", "steps": ['
)
ROUNDS = str([[[one, other]] for one in range(4) for other in range(4) if one != other])
SCATTERED = (744, 2858, 873, 980, 1025, 3906, 770, 974, 837, 3041, 796, 781)
HEALTHY = (773, 693, 773, 970, 1051, 830, 991, 1154, 742, 1065, 1083, 924)


CALM = ", ".join(
    f'{{"kind": "{kind}", "bytes": 1048576, "seconds": [0.0104, 0.0101, 0.0102, 0.0103]}}'
    for kind in ("self", "late")
    for _ in range(3)
)


def matrix(large: tuple[int, ...]) -> str:
    """Nine passes of a matrix of four ranks, row by row in microseconds."""
    seconds = str([[[0.0002, many / 1e6]] for many in large])
    step = f'{{"kind": "pairs", "of": "all", "bytes": [8192, 1048576], "rounds": {ROUNDS}, "seconds": {seconds}}}'
    return HEAD + f"{CALM}, " + ", ".join([step] * 9) + "]}}\n"


@check(
    "collectives/nobody-to-blame",
    severity="info",
    about="device",
    needs=(CollectiveVerdict,),
    words={
        "en": {
            "title": "Something is slow, and no single rank or link is to blame",
            "summary": "nobody is accused: {what.en}",
            "cause": "It lies elsewhere: {cause.en}",
        },
        "zh": {
            "title": "通信有慢处，但不是单个 rank 或链路的问题",
            "summary": "未指认任何一方：{what.zh}",
            "cause": "原因在别处：{cause.zh}",
        },
    },
    remedies=(
        Remedy(
            key="again",
            title={
                "en": "Measure again when the machine is idle, and with another algorithm",
                "zh": "机器空闲时重测，并更换算法对比",
            },
            commands=("diag comm --isolate --budget 60", "NCCL_ALGO=Ring diag comm", "nvidia-smi topo -m"),
            safety="safe",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
    ),
    fires=(matrix(SCATTERED),),
    silent=(matrix(HEALTHY),),
)
def nobody_to_blame(facts: Facts) -> Iterator[Answer]:
    """What is slow and makes no picture, or only together."""
    for one in facts.all(CollectiveVerdict):
        if one.kind == "noise":
            words = {
                "what.en": "slow pairs of ranks make no picture",
                "what.zh": "慢的配对没有规律",
                "cause.en": "the machine or the fabric was busy, or its devices are joined by several kinds of links.",
                "cause.zh": "机器或网络繁忙，或设备之间有多种链路。",
            }
        elif one.kind == "configuration":
            hosts = ", ".join(one.hosts)
            words = {
                "what.en": f"every pair is healthy, groups with {hosts} are slow",
                "what.zh": f"每个配对都正常，但同时包含 {hosts} 的分组慢",
                "cause.en": "congestion or a route between these in the fabric, or the algorithm that was chosen.",
                "cause.zh": "网络拥塞或路由问题，或所选算法不合适。",
            }
        else:
            continue
        yield Finding(values={**words}, evidence=(Evidence.of(one),))
