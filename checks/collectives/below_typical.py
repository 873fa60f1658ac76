"""An operation between devices is much slower than others report of like machines.

## What it finds
A measurement that reaches less than seven tenths of what users, makers or one field report publish of the same
operation, number of ranks and model, or of a threshold or a measurement of a machine that differs from this one in one
respect: a near size, links or a network that are not told. Of sizes at which the calls and not the links decide, less
than half. Where `collectives/below-baseline` speaks already, nothing.

## Why it matters
Somebody has a machine of these devices that exchanges data much faster; it is worth looking at why.

## What it cannot know
Whether that machine was built alike: its board, its PCI Express switches, its processors, the releases it runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Collective,
    CollectiveBaseline,
    Comparison,
    DeviceModel,
    Evidence,
    Facts,
    Finding,
    Link,
    Package,
    Platform,
    Remedy,
    Undecided,
    Vendor,
    check,
    compared_collectives,
    size_in_words,
)

TYPICAL, SMALL = 0.7, 0.5
BINDING = ("pass", "measured")
STANDING = {
    "pass": ("somebody's threshold", "他人生产环境的阈值"),
    "measured": ("measured elsewhere", "在其他机器上的实测值"),
    "user": ("published by a user", "用户公布的结果"),
    "vendor": ("published by a maker or a cloud", "厂商或云平台公布的结果"),
    "seed": ("a single field report", "单份现场报告"),
}
DIFFERS = {
    "": ("", ""),
    "size": (", of another size", "，大小不同"),
    "link": (", and it is not told how the devices are joined here", "，本机的互联方式未知"),
    "nodes": (", and it is not told on how many nodes this ran", "，节点数未知"),
    "dtype": (", of another type", "，数据类型不同"),
}

HEAD = """\
# nThread 1 nGpus 8 minBytes 1073741824 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 \
validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   6151 on     ubuntu device  0 [0x01] NVIDIA GeForce RTX 5090
#  Rank  1 Group  0 Pid   6151 on     ubuntu device  1 [0x25] NVIDIA GeForce RTX 5090
#  Rank  2 Group  0 Pid   6151 on     ubuntu device  2 [0x41] NVIDIA GeForce RTX 5090
#  Rank  3 Group  0 Pid   6151 on     ubuntu device  3 [0x61] NVIDIA GeForce RTX 5090
#  Rank  4 Group  0 Pid   6151 on     ubuntu device  4 [0x81] NVIDIA GeForce RTX 5090
#  Rank  5 Group  0 Pid   6151 on     ubuntu device  5 [0xa1] NVIDIA GeForce RTX 5090
#  Rank  6 Group  0 Pid   6151 on     ubuntu device  6 [0xc1] NVIDIA GeForce RTX 5090
#  Rank  7 Group  0 Pid   6151 on     ubuntu device  7 [0xe1] NVIDIA GeForce RTX 5090
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
SLOW = HEAD + (
    "  1073741824     268435456     float     sum      -1   208000    5.16    9.03      0   208100    5.16    9.03     "
    " 0\n"
)
USUAL = HEAD + (
    "  1073741824     268435456     float     sum      -1    66900   16.05   28.09      0    66950   16.04   28.07     "
    " 0\n"
)
SMALL_H100 = (
    HEAD.replace("GeForce RTX 5090", "H100 80GB HBM3")
    + "     1048576        262144     float     sum      -1    131.4    7.98   13.97      0    131.0    8.00   14.01   "
    "   0\n"
)


@check(
    "collectives/below-typical",
    severity="warning",
    about="device",
    needs=(Collective,),
    uses=(Accelerator, CollectiveBaseline, DeviceModel, Link, Package, Platform, Vendor),
    words={
        "en": {
            "title": "Devices exchange data much more slowly than others report",
            "summary": "{op} of {size} between {ranks} {device}: {value}, {percent} % of {baseline} ({standing.en})",
            "cause": "The links are narrower than there, direct transfers between the devices are off, or the machine "
            "was "
            "not idle; the other machine may also have been built otherwise.",
        },
        "zh": {
            "title": "设备间通信速度远低于他人公布的同类结果",
            "summary": "{ranks} 个 {device} 之间 {size} 的 {op}：{value}，为 {baseline} 的 {percent} %（"
            "{standing.zh}）",
            "cause": "链路比对方机器更窄、设备间直接传输被关闭，或测量时机器不空闲；也可能两台机器的构造本就不同。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "See how the devices are joined and which way the library takes",
                "zh": "查看设备的互联方式与通信库实际使用的通路",
            },
            commands=(
                "env | grep -E 'NCCL|RCCL|BKCL|HCCL'; cat /etc/nccl.conf",
                "nvidia-smi topo -m; rocm-smi --showtopo; xpu-smi topo -m",
                "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING all_reduce_perf -b 1G -e 8G -f 2 -g {ranks}",
            ),
            safety="safe",
            source="https://github.com/NVIDIA/nccl-tests/issues/290",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/1639",
        "https://github.com/NVIDIA/nccl-tests/issues/149",
        "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
    ),
    fires=(SLOW, SMALL_H100),
    silent=(USUAL,),
)
def below_typical(facts: Facts) -> Iterator[Answer]:
    """The worst size of each operation that no threshold speaks of."""
    told = compared_collectives(facts)
    if not told:
        yield Undecided(reason="nothing is known of what other machines of these devices reach")
    failed = {_place(one) for one in told if _binding(one) and one.ratio < _limit(one)}
    worst: dict[tuple[str, int, str], Comparison] = {}
    for one in told:
        least = TYPICAL if one.saturated else SMALL
        if _binding(one) or _place(one) in failed or one.ratio >= least or _reached(one, told):
            continue
        if _place(one) not in worst or one.ratio < worst[_place(one)].ratio:
            worst[_place(one)] = one
    for one in worst.values():
        yield _finding(one)


def _place(one: Comparison) -> tuple[str, int, str]:
    return one.row.op, one.row.ranks, one.row.device


def _binding(one: Comparison) -> bool:
    """Whether `collectives/below-baseline` judges by it."""
    return one.row.standing in BINDING and one.saturated and not one.differs


def _limit(one: Comparison) -> float:
    return 1.0 if one.row.standing == "pass" else 0.9


def _reached(one: Comparison, told: tuple[Comparison, ...]) -> bool:
    """Whether another row that speaks of the same measurement finds it usual: machines of one model differ."""
    alike = (other for other in told if other.measured is one.measured and other is not one)
    return any(other.ratio >= (TYPICAL if other.saturated else SMALL) for other in alike)


def _finding(one: Comparison) -> Finding:
    (english, chinese), (differs, chinese_differs) = STANDING[one.row.standing], DIFFERS[one.differs]
    latency = one.row.latency_us is not None
    return Finding(
        subject=f"{one.row.op} between {one.row.ranks} {one.row.device}",
        values={
            "op": one.row.op,
            "size": size_in_words(one.measured.bytes),
            "ranks": one.row.ranks,
            "device": one.row.device,
            "value": f"{one.value:.1f} µs" if latency else f"{one.value:.1f} GB/s",
            "baseline": f"{one.row.latency_us:g} µs" if latency else f"{one.row.busbw_gbps:g} GB/s",
            "percent": round(100 * one.ratio),
            "standing.en": english + differs,
            "standing.zh": chinese + chinese_differs,
        },
        confidence="low" if one.differs or not one.saturated else "medium",
        evidence=(Evidence.of(one.measured),),
        source=one.row.source,
        checked=one.row.checked,
    )
