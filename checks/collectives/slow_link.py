"""Two ranks exchange slowly, or nothing arrives, while each of them is well with all others.

## What it finds
A pair that is slow in the least of six passes or more, in one direction or both, or in which a message never arrived,
and whose ends are not slow towards others.

## Why it matters
A ring goes over every neighbour: one slow link holds it all.

## What it cannot know
Which part of the path it is: cable, bridge, switch. On machines with two kinds of links between devices the slower kind
makes no picture and nobody is accused.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, CollectiveVerdict, Evidence, Facts, Finding, Remedy, check

RANKS = ", ".join(f'{{"rank": {rank}, "host": "h{rank}"}}' for rank in range(4))
HEAD = (
    '{"schema": "diag/collectives/1", "device": "cpu", "backend": "gloo", "dtype": "bf16", "launcher": "torchrun", '
    f'"size": 4, "ranks": [{RANKS}], "results": [], "isolation": {{"large": 1048576, "error": "", "steps": ['
)
ROUNDS = str([[[one, other]] for one in range(4) for other in range(4) if one != other])
SMALL = (206, 210, 228, 229, 245, 261, 228, 206, 212, 217, 282, 218)
ONE_WAY = (744, 858, 873, 980, 14725, 906, 770, 974, 837, 1041, 796, 781)
TWO_WAYS = (744, 858, 873, 980, 14725, 906, 770, 14974, 837, 1041, 796, 781)
HEALTHY = (773, 693, 773, 970, 1051, 830, 991, 1154, 742, 1065, 1083, 924)
INSIDE = '{"rank": %d, "phase": "isolation: pair 1 to 2", "entered": 40, "finished": 39, "state": "S", "ended": ""}'
DEAD = (
    f'], "error": ""}}, "states": [{INSIDE % 1}, {INSIDE % 2}], "trouble": {{"kind": "stalled", "reason": '
    '"nothing moved for 31 s", "suspects": [], "seconds": 31.0, "released": true}}\n'
)


CALM = ", ".join(
    f'{{"kind": "{kind}", "bytes": 1048576, "seconds": [0.0104, 0.0101, 0.0102, 0.0103]}}'
    for kind in ("self", "late")
    for _ in range(3)
)


def matrix(large: tuple[int, ...], passes: int, end: str = "]}}\n") -> str:
    """A matrix of four ranks, row by row in microseconds."""
    seconds = str([[[few / 1e6, many / 1e6]] for few, many in zip(SMALL, large, strict=True)])
    step = f'{{"kind": "pairs", "of": "all", "bytes": [8192, 1048576], "rounds": {ROUNDS}, "seconds": {seconds}}}'
    return HEAD + f"{CALM}, " + ", ".join([step] * passes) + end


@check(
    "collectives/slow-link",
    severity="warning",
    about="device",
    needs=(CollectiveVerdict,),
    uses=(CollectiveRank,),
    words={
        "en": {
            "title": "One link is slow or dead",
            "summary": "link {ends.en}: {what.en}",
            "cause": "The path between these two alone: a cable, a bridge, a lane that was trained down, a port of the "
            "switch, or a route that leads elsewhere.",
        },
        "zh": {
            "title": "某条链路慢或不通",
            "summary": "链路 {ends.zh}：{what.zh}",
            "cause": "只涉及这两端之间的路径：线缆、桥接、降速的通道、交换机端口，或走错的路由。",
        },
    },
    remedies=(
        Remedy(
            key="link",
            title={
                "en": "Look at the errors and the state of the links between the two",
                "zh": "检查两端之间链路的状态与错误计数",
            },
            commands=(
                "nvidia-smi nvlink -s; nvidia-smi nvlink -e",
                "nvidia-smi topo -m",
                "ibtracert -v SOURCE_LID TARGET_LID; iblinkinfo",
                "sudo dmesg -T | grep -iE 'nvlink|AER|link'",
            ),
            safety="safe",
            verify="diag comm --isolate",
        ),
    ),
    sources=("https://arxiv.org/abs/2406.04594", "https://github.com/NVIDIA/nccl/issues/199"),
    explains=("collectives/below-typical", "collectives/below-baseline", "collectives/rank-silent"),
    fires=(matrix(ONE_WAY, 9), matrix(TWO_WAYS, 6), matrix(HEALTHY, 1, DEAD)),
    silent=(matrix(HEALTHY, 3),),
)
def slow_link(facts: Facts) -> Iterator[Answer]:
    """Each pair that is slow by itself."""
    for one in (one for one in facts.all(CollectiveVerdict) if one.kind == "link"):
        source, target = one.ranks[0], one.peers[0]
        arrow, hosts = "↔" if one.direction == "both" else "→", "/".join(one.hosts)
        what = ("a message never arrived", "消息始终没有到达")
        if one.us is not None and one.base_us:
            told = f"{one.us:.0f} µs / {one.base_us:.0f} µs, {one.us / one.base_us:.1f}x, {one.bytes} B"
            what = (
                f"slower than between others ({told}); found from {one.threshold:g} times on",
                f"比其他配对慢（{told}）；检出阈值 {one.threshold:g} 倍",
            )
        yield Finding(
            subject=f"rank {source} {arrow} rank {target}",
            values={
                "ends.en": f"rank {source} {arrow} rank {target} ({hosts})",
                "ends.zh": f"rank {source} {arrow} rank {target}（{hosts}）",
                "what.en": what[0],
                "what.zh": what[1],
            },
            evidence=(Evidence.of(one),),
        )
