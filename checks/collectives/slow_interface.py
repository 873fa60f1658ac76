"""All that one end sends, or receives, or both, is slow: a rank, its interface, a host or a rail.

## What it finds
In the matrix of pairs a row, a column or both in which every pair is slow, by the least of several passes: what leaves
a rank, what reaches it, or all it exchanges. Where only its pairs with other hosts are, it is the way to the network.
The same of all ranks of a host is that host; of one place on many hosts a rail.

## Why it matters
The whole collective goes at the pace of this end, and hides by how much: a link twenty times slower made an all_reduce
between four ranks but twice as slow.

## What it cannot know
Whether it is the interface, its cable or the port of the switch. Ends that are slower by less than 1.6 times are not
found.
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
SMALL = (206, 210, 228, 229, 245, 261, 228, 206, 212, 217, 282, 218)
THROTTLED = (744, 858, 873, 14980, 14725, 14606, 770, 974, 837, 1041, 796, 781)
HEALTHY = (773, 693, 773, 970, 1051, 830, 991, 1154, 742, 1065, 1083, 924)


CALM = ", ".join(
    f'{{"kind": "{kind}", "bytes": 1048576, "seconds": [0.0104, 0.0101, 0.0102, 0.0103]}}'
    for kind in ("self", "late")
    for _ in range(3)
)


def matrix(large: tuple[int, ...], passes: int = 6) -> str:
    """A recorded matrix of four ranks, row by row in microseconds."""
    seconds = str([[[few / 1e6, many / 1e6]] for few, many in zip(SMALL, large, strict=True)])
    step = f'{{"kind": "pairs", "of": "all", "bytes": [8192, 1048576], "rounds": {ROUNDS}, "seconds": {seconds}}}'
    return HEAD + f"{CALM}, " + ", ".join([step] * passes) + "]}}\n"


ENDS = {
    "node": ("rank {ranks}", "rank {ranks}"),
    "nic": ("the way of rank {ranks} to other hosts", "rank {ranks} 到其他主机的通路"),
    "host": ("host {hosts}", "主机 {hosts}"),
    "rail": ("rail {place} on {count} hosts", "{count} 台主机上的第 {place} 条轨道"),
}
WAYS = {
    "out": ("what it sends", "发出的数据"),
    "in": ("what it receives", "收到的数据"),
    "both": ("what it sends and receives", "收发的数据"),
}
SHOWN = 8


@check(
    "collectives/slow-interface",
    severity="warning",
    about="device",
    needs=(CollectiveVerdict,),
    words={
        "en": {
            "title": "All that one end exchanges is slow",
            "summary": "{end.en}: {way.en} takes {times} as long as between others ({own} µs against {base} µs for "
            "{size} bytes); found from {threshold} times on",
            "cause": "Its interface, cable or port runs at a lower rate, loses what it sends, is shaped or shared; or "
            "its device's link to the host does.",
        },
        "zh": {
            "title": "某一端的全部通信都慢",
            "summary": "{end.zh}：{way.zh}耗时为其他配对的 {times}（{size} 字节：{own} µs 对 {base} µs）；检出阈值 "
            "{threshold} 倍",
            "cause": "其网卡、线缆或交换机端口降速、丢包、被限速或被共享；或其设备到主机的链路如此。",
        },
    },
    remedies=(
        Remedy(
            key="interface",
            title={
                "en": "On {where}, look at the rate, the errors and the shaping of the interface, against another host",
                "zh": "在 {where} 上检查网卡速率、错误计数与限速，并与其他主机对比",
            },
            commands=(
                "ethtool INTERFACE | grep -E 'Speed|Duplex'",
                "ethtool -S INTERFACE | grep -iE 'err|drop|discard|pause' | grep -v ': 0$'",
                "tc -s qdisc show dev INTERFACE",
                "ibstat; perfquery -x",
            ),
            safety="safe",
            verify="diag comm --isolate",
        ),
        Remedy(
            key="device-link",
            title={
                "en": "Look at the width and rate of the device's own link",
                "zh": "检查设备自身链路的宽度与速率",
            },
            commands=("sudo lspci -vv | grep -E '^[0-9a-f]|LnkSta:'", "nvidia-smi nvlink -e", "nvidia-smi topo -m"),
            safety="safe",
        ),
    ),
    sources=(
        "https://arxiv.org/abs/2406.04594",
        "https://github.com/imbue-ai/cluster-health/tree/master/host_validation",
    ),
    explains=("collectives/below-typical", "collectives/below-baseline", "collectives/curve-collapses"),
    fires=(matrix(THROTTLED), matrix(THROTTLED, passes=3)),
    silent=(matrix(HEALTHY),),
)
def slow_interface(facts: Facts) -> Iterator[Answer]:
    """Each end that is slow towards all."""
    for one in facts.all(CollectiveVerdict):
        if one.kind not in ENDS or not one.base_us:
            continue
        hosts = ", ".join(one.hosts[:SHOWN]) + (" …" if len(one.hosts) > SHOWN else "")
        told = {"ranks": ", ".join(map(str, one.ranks[:SHOWN])), "hosts": hosts, "count": len(one.hosts)}
        ends = [words.format(**told, place=one.place) for words in ENDS[one.kind]]
        yield Finding(
            subject=ends[0],
            values={
                **dict(zip(("end.en", "end.zh"), ends, strict=True)),
                **dict(zip(("way.en", "way.zh"), WAYS[one.direction or "both"], strict=True)),
                "times": f"{one.us / one.base_us:.1f}x" if one.us else "∞",
                "own": f"{one.us:.0f}" if one.us else "∞",
                "base": round(one.base_us),
                "size": one.bytes,
                "threshold": one.threshold,
                "where": hosts,
            },
            evidence=(Evidence.of(one),),
        )
