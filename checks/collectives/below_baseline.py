"""An operation between devices is slower than what fails a machine elsewhere.

## What it finds
A measured bandwidth below a threshold that somebody runs in production, or below nine tenths of what was measured on
such a machine; rows of `kb/reference/links.yaml` for the same operation, number of ranks and nodes, model and size. The
better of both placements counts; of a noisy measurement only its fastest call.

## Why it matters
All ranks wait for the slowest link: what a machine loses here it loses in each layer of a model that spans it.

## What it cannot know
Why. Sizes at which calls, not links, decide are never judged here, and neither is what was measured between nodes: the
network is not told. A threshold of one cloud may be strict for another's machines: where other thresholds are met the
confidence is medium.
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

MEASURED = 0.9
"""Share of what was measured elsewhere that must be reached: two sweeps of 8 A100 differ by a tenth at 256 MiB, by two
hundredths from 512 MiB on."""
LIMITS = {"pass": 1.0, "measured": MEASURED}

H100 = """\
# nThread 1 nGpus 1 minBytes 8589934592 maxBytes 17179869184 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 \
validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid  65234 on      gpu49 device  0 [0x0a] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  65235 on      gpu49 device  1 [0x18] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid  65236 on      gpu49 device  2 [0x3b] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid  65237 on      gpu49 device  3 [0x44] NVIDIA H100 80GB HBM3
#  Rank  4 Group  0 Pid  65238 on      gpu49 device  4 [0x87] NVIDIA H100 80GB HBM3
#  Rank  5 Group  0 Pid  65239 on      gpu49 device  5 [0x90] NVIDIA H100 80GB HBM3
#  Rank  6 Group  0 Pid  65240 on      gpu49 device  6 [0xb8] NVIDIA H100 80GB HBM3
#  Rank  7 Group  0 Pid  65241 on      gpu49 device  7 [0xc1] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
RING = H100 + (
    "  8589934592    2147483648     float     sum      -1    40955  209.74  367.05      0    40940  209.82  367.18     "
    " 0\n"
    " 17179869184    4294967296     float     sum      -1    81793  210.04  367.57      0    81790  210.05  367.59     "
    " 0\n"
)
NVLS = H100 + (
    "  8589934592    2147483648     float     sum      -1    31392  273.63  478.86      0    31400  273.56  478.73     "
    " 0\n"
    " 17179869184    4294967296     float     sum      -1    62340  275.58  482.26      0    62380  275.41  481.96     "
    " 0\n"
)
ONE_PLACEMENT_SLOW = H100 + (
    " 17179869184    4294967296     float     sum      -1    90000  190.89  334.06      0    62380  275.41  481.96     "
    " 0\n"
)


@check(
    "collectives/below-baseline",
    severity="error",
    about="device",
    needs=(Collective,),
    uses=(Accelerator, CollectiveBaseline, DeviceModel, Link, Package, Platform, Vendor),
    words={
        "en": {
            "title": "Devices exchange data more slowly than such a machine must",
            "summary": "{op} of {size} between {ranks} {device}: {value}, {percent} % of {baseline} ({standing.en})",
            "cause": "A fast path is switched off or broken, a link came up with fewer lanes, the processes are bound "
            "far "
            "from the devices, or others used the machine meanwhile.",
        },
        "zh": {
            "title": "设备间通信速度低于此类机器应有的水平",
            "summary": "{ranks} 个 {device} 之间 {size} 的 {op}：{value}，为基准 {baseline} 的 {percent} %（"
            "{standing.zh}）",
            "cause": "快速通路被关闭或失效、链路降速、进程绑定到远离设备的处理器，或测量期间机器被他人占用。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "Look at the links and at what the library chose, with nothing else running",
                "zh": "在机器空闲时检查链路状态，并查看通信库所选的通路",
            },
            commands=(
                "env | grep -E 'NCCL|RCCL|BKCL|HCCL'; cat /etc/nccl.conf",
                "nvidia-smi topo -m; nvidia-smi nvlink -s",
                "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING all_reduce_perf -b 8G -e 16G -f 2 -g {ranks}",
            ),
            safety="safe",
            source="https://github.com/NVIDIA/nccl-tests/issues/290",
        ),
        Remedy(
            key="bind",
            title={
                "en": "One process for each device, bound to its NUMA node",
                "zh": "每个设备一个进程，并绑定到对应的 NUMA 节点",
            },
            commands=("mpirun -np {ranks} --bind-to numa all_reduce_perf -b 8G -e 16G -f 2 -g 1",),
            safety="safe",
            source="https://github.com/NVIDIA/nccl/issues/644",
        ),
        Remedy(
            key="service",
            title={
                "en": "It stays so on an idle machine: take it out of service, as those do whose threshold it is",
                "zh": "空闲时仍低于阈值：按该阈值的使用方的做法，将机器下线检修",
            },
            safety="manual",
            source="https://github.com/Azure/azurehpc-health-checks",
        ),
    ),
    sources=(
        "https://github.com/Azure/azurehpc-health-checks",
        "https://github.com/oracle-quickstart/oci-hpc",
        "https://github.com/NVIDIA/nccl-tests/issues/212",
        "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
    ),
    fires=(RING,),
    silent=(NVLS, ONE_PLACEMENT_SLOW),
)
def below_baseline(facts: Facts) -> Iterator[Answer]:
    """The worst size of each operation, against the row that it misses most."""
    judged = [one for one in compared_collectives(facts) if one.row.standing in LIMITS and _binding(one)]
    if not judged:
        yield Undecided(reason="no threshold of such a machine is known for what was measured")
    worst: dict[tuple[str, int, str], Comparison] = {}
    for one in (one for one in judged if one.ratio < LIMITS[one.row.standing]):
        place = (one.row.op, one.row.ranks, one.row.device)
        if place not in worst or _missed(one) < _missed(worst[place]):
            worst[place] = one
    for one in worst.values():
        yield _finding(one, [other for other in judged if other.measured is one.measured])


def _binding(one: Comparison) -> bool:
    return one.saturated and not one.differs


def _missed(one: Comparison) -> float:
    return one.ratio / LIMITS[one.row.standing]


def _finding(one: Comparison, alike: list[Comparison]) -> Finding:
    met = any(other.ratio >= LIMITS[other.row.standing] for other in alike)
    standing = {"en": "somebody's threshold", "zh": "他人生产环境的阈值"}
    if one.row.standing == "measured":
        standing = {"en": "measured elsewhere", "zh": "在其他机器上的实测值"}
    return Finding(
        subject=f"{one.row.op} between {one.row.ranks} {one.row.device}",
        values={
            "op": one.row.op,
            "size": size_in_words(one.measured.bytes),
            "ranks": one.row.ranks,
            "device": one.row.device,
            "value": f"{one.value:.1f} GB/s",
            "baseline": f"{one.row.busbw_gbps:g} GB/s",
            "percent": round(100 * one.ratio),
            **{f"standing.{language}": words for language, words in standing.items()},
        },
        confidence="medium" if met else "high",
        evidence=(Evidence.of(one.measured),),
        source=one.row.source,
        checked=one.row.checked,
    )
