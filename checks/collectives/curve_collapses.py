"""Bandwidth between devices falls steeply with larger messages.

## What it finds
A sweep in which every message above some size moves at less than half of the bandwidth that a smaller one had.

## Why it matters
Bandwidth grows with the message until the link is full, and stays. Where it falls to a fraction, packets get lost or
the sender is held back: prefill and the loading of sharded weights go at that pace.

## What it cannot know
Where the packets get lost. A fall of a tenth or a fifth is usual where the algorithm changes, and says nothing; a sweep
of two sizes, or one that others disturbed, says nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from diag.api import (
    Answer,
    Collective,
    Evidence,
    Facts,
    Finding,
    Remedy,
    best_placed,
    bus_bandwidth,
    check,
    size_in_words,
)

FALLEN = 0.5
SIZES = 4
"""Sizes of a sweep, at the least."""

HEAD = """\
# nThread 1 nGpus 1 minBytes 8388608 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 \
validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 497888 on h100clust-worker-0 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 497889 on h100clust-worker-1 device  0 [0x1b] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1    517.8   16.20   16.20      0    514.3   16.31   16.31      0
    16777216       4194304     float     sum      -1    696.4   24.09   24.09      0    697.3   24.06   24.06      0
    33554432       8388608     float     sum      -1   1137.4   29.50   29.50      0   1192.4   28.14   28.14      0
"""
COLLAPSED = HEAD + (
    "    67108864      16777216     float     sum      -1    12734    5.27    5.27      0    12734    5.27    5.27     "
    " 0\n"
    "   134217728      33554432     float     sum      -1    25712    5.22    5.22      0    25324    5.30    5.30     "
    " 0\n"
    "   268435456      67108864     float     sum      -1    65632    4.09    4.09      0    63460    4.23    4.23     "
    " 0\n"
)
ONE_DISTURBED = HEAD + (
    "    67108864      16777216     float     sum      -1    12734    5.27    5.27      0    12734    5.27    5.27     "
    " 0\n"
    "   134217728      33554432     float     sum      -1   4329.6   31.00   31.00      0   4331.0   30.99   30.99     "
    " 0\n"
    "   268435456      67108864     float     sum      -1   8604.0   31.20   31.20      0   8606.8   31.19   31.19     "
    " 0\n"
)


@check(
    "collectives/curve-collapses",
    severity="warning",
    about="device",
    needs=(Collective,),
    words={
        "en": {
            "title": "Bandwidth falls to a fraction with larger messages",
            "summary": "{op} between {ranks} ranks: busbw {peak} GB/s at {best}, at most {rest} GB/s from {size} on",
            "cause": "Between nodes: a RoCE fabric without flow control drops packets, a port or cable is at fault, or "
            "the "
            "links of the switches are congested. Inside a machine: a memory or PCI Express path that cannot take all "
            "flows.",
        },
        "zh": {
            "title": "消息变大后带宽骤降",
            "summary": "{ranks} 个 rank 的 {op}：{best} 时 busbw 为 {peak} GB/s，自 {size} 起最高仅 {rest} GB/s",
            "cause": "跨机：RoCE 网络未启用流控而丢包、端口或线缆故障、交换机链路拥塞；单机：内存或 PCI Express 通路承"
            "载不了全部流量。",
        },
    },
    remedies=(
        Remedy(
            key="counters",
            title={
                "en": "See which counters grow while it runs: drops, pauses, retransmissions",
                "zh": "运行期间查看哪些计数器增长：丢包、暂停帧、重传",
            },
            commands=(
                "grep . /sys/class/infiniband/*/ports/*/hw_counters/*",
                "ethtool -S INTERFACE | grep -E 'pause|discard|out_of_buffer|drop'",
            ),
            safety="safe",
            source="https://github.com/NVIDIA/nccl/issues/378",
        ),
        Remedy(
            key="flow-control",
            title={
                "en": "RoCE: switch priority flow control (PFC) or pause frames on, on both adapters and switches",
                "zh": "RoCE：在网卡与交换机上同时启用优先级流控（PFC）或暂停帧",
            },
            commands=("sudo mlnx_qos -i INTERFACE --pfc 0,0,0,1,0,0,0,0 --trust dscp",),
            safety="manual",
            source="https://github.com/NVIDIA/nccl/issues/378",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/1453",
        "https://github.com/NVIDIA/nccl/issues/378",
        "https://github.com/NVIDIA/nccl/issues/2169",
        "https://github.com/Azure/ai-infrastructure-on-azure/blob/a01b07318f46/skills/slurm/nccl_performance_diagnosis/SKILL.md",
    ),
    fires=(COLLAPSED,),
    silent=(ONE_DISTURBED,),
)
def curve_collapses(facts: Facts) -> Iterator[Answer]:
    """Each sweep by itself."""
    told = [one for one in best_placed(facts.all(Collective)) if bus_bandwidth(one) and not one.noisy]
    for _, sweep in groupby(sorted(told, key=_sweep), key=_sweep):
        yield from _judged(sorted(sweep, key=lambda one: one.bytes))


def _sweep(one: Collective) -> tuple[str, str, str, int, int]:
    return one.origin.capture, one.op, one.mode, one.ranks or 0, one.nodes or 0


def _judged(sweep: Sequence[Collective]) -> Iterator[Answer]:
    speeds = [bus_bandwidth(one) or 0.0 for one in sweep]
    if len({one.bytes for one in sweep}) < SIZES or len({one.bytes for one in sweep}) < len(sweep):
        return
    peak = speeds.index(max(speeds))
    rest = [at for at in range(peak + 1, len(sweep)) if max(speeds[at:]) < FALLEN * speeds[peak]]
    if rest:
        yield Finding(
            subject=sweep[0].op,
            values={
                "op": sweep[0].op,
                "ranks": sweep[0].ranks or "?",
                "peak": f"{speeds[peak]:.1f}",
                "best": size_in_words(sweep[peak].bytes),
                "size": size_in_words(sweep[rest[0]].bytes),
                "rest": f"{max(speeds[rest[0] :]):.1f}",
            },
            confidence="high" if len(rest) > 1 else "medium",
            evidence=(Evidence.of(sweep[peak]), *(Evidence.of(sweep[at]) for at in rest[:2])),
        )
