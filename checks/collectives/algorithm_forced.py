"""A variable forces an algorithm or a protocol on the collective library where something was measured.

## What it finds
`NCCL_ALGO` or `NCCL_PROTO` beside a measured exchange.

## Why it matters
The library no longer chooses by size and machine: with a ring, NVLink SHARP is not used, and eight H200 reach 367 GB/s
of busbw instead of 480; with a protocol for small messages, large ones get a fraction.

## What it cannot know
Whether a cloud asks for it on its network, as some do, or somebody wants to see the links by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Collective, Evidence, Facts, Finding, Remedy, Setting, Undecided, check

NAMES = ("NCCL_ALGO", "NCCL_PROTO")

TABLE = """\
# Using devices
#  Rank  0 Group  0 Pid    313 on worker-0 device  0 [0x18] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid    314 on worker-0 device  1 [0x2a] NVIDIA H100 80GB HBM3
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     8388608       2097152     float     sum      -1    120.1   69.85   69.85      0    119.9   69.96   69.96      0
"""
FORCED = "export NCCL_ALGO=Ring\n" + TABLE
CHOSEN = "export NCCL_DEBUG=WARN\n" + TABLE


@check(
    "collectives/algorithm-forced",
    severity="info",
    about="device",
    needs=(Collective, Setting),
    words={
        "en": {
            "title": "A variable forces how the collective library works",
            "summary": "{name}={value} was set where {op} was measured: the library did not choose by itself",
            "cause": "Somebody set it for a test, or to get round a fault, and it stayed.",
        },
        "zh": {
            "title": "环境变量强制指定了通信库的算法或协议",
            "summary": "测量 {op} 时设置了 {name}={value}：通信库没有自行选择",
            "cause": "有人为测试或规避故障而设置了它，之后没有取消。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={"en": "Measure once without it", "zh": "取消该变量后再测一次"},
            commands=("unset {name}", "grep -n {name} /etc/nccl.conf ~/.nccl.conf"),
            safety="safe",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        "https://github.com/IBM/pytorch-communication-benchmarks/issues/1",
        "https://github.com/stas00/ml-engineering/blob/744d01e18b79/network/README.md",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical", "collectives/curve-collapses"),
    fires=(FORCED,),
    silent=(CHOSEN,),
)
def algorithm_forced(facts: Facts) -> Iterator[Answer]:
    """The variables that force something."""
    settings, measured = facts.environment(), facts.all(Collective)
    if not settings:
        yield Undecided(reason="no variable of the environment is told")
    for setting in (settings[name] for name in NAMES if name in settings and settings[name].value):
        yield Finding(
            subject=setting.name,
            values={"name": setting.name, "value": setting.value, "op": measured[0].op},
            evidence=(Evidence.of(setting), Evidence.of(measured[0])),
        )
