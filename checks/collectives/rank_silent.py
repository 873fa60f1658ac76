"""A world of ranks stood still in an exchange.

## What it finds
Ranks of `diag comm` of which none moved for longer than it may: where each stood, and which the others wait for: one
that is stopped or gone, one that has not entered the call that the others are in, or one outside of every call.

## Why it matters
A collective ends when all have come. One rank that does not come holds the whole engine, without an error until some
watchdog ends it half an hour later.

## What it cannot know
What holds a rank inside a call of a driver. Where all are in the same call none is suspected: then it is the data that
do not arrive, over PCI Express (IOMMU, ACS) or a network that leads elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, CollectiveTrouble, CollectiveWorld, Evidence, Facts, Finding, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", '
    '"size": 3, '
)
RANKS = (
    '"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "a"}, {"rank": 2, "host": "a"}], "results": [], '
    '"states": ['
)
STATE = (
    '{"rank": %d, "phase": "round 0: all_reduce of 4194304 bytes, synchronised", "entered": %d, "finished": %d, "pid": '
    "7%d, "
    '"state": "%s", "ended": ""}'
)
STOPPED = (
    HEAD
    + RANKS
    + ", ".join((STATE % (0, 12, 11, 0, "S"), STATE % (1, 11, 11, 1, "T"), STATE % (2, 12, 11, 2, "S")))
    + '], "trouble": {"kind": "stalled", "reason": "nothing moved for 31 s", "suspects": [1], "seconds": 31.0, '
    '"released": true}}\n'
)
ALL_INSIDE = (
    HEAD
    + RANKS
    + ", ".join(STATE % (rank, 1, 0, rank, "R") for rank in range(3))
    + '], "trouble": {"kind": "stalled", "reason": "nothing moved for 31 s", "suspects": [], "seconds": 31.0, '
    '"released": false}}\n'
)
DONE = HEAD + RANKS + ", ".join(STATE % (rank, 12, 12, rank, "S") for rank in range(3)) + "]}\n"


@check(
    "collectives/rank-silent",
    severity="error",
    about="device",
    needs=(CollectiveWorld,),
    uses=(CollectiveRank, CollectiveTrouble),
    words={
        "en": {
            "title": "The ranks stood still in an exchange",
            "summary": "{who.en}; nothing moved for {seconds} s",
            "cause": "One rank did not come to the exchange: it is stopped, has ended, waits for a file or a device, "
            "or loops in a "
            "driver. Or all came, and the data do not arrive: direct transfers between the devices are announced and "
            "do not "
            "work (IOMMU, ACS, a virtual machine), or the network does not lead to the other side.",
        },
        "zh": {
            "title": "各 rank 在通信中停住不动",
            "summary": "{who.zh}；{seconds} 秒内没有任何进展",
            "cause": "某个 rank 没有进入通信：进程被暂停、已结束、在等待文件或设备，或在驱动中死循环；"
            "或所有 rank 都已进入而数据没有到达：设备间直接传输看似可用而实际不通（IOMMU、ACS、虚拟机），或网络无法到达"
            "对端。",
        },
    },
    remedies=(
        Remedy(
            key="the-rank",
            title={
                "en": "Look at what the rank that is waited for does, while it stands",
                "zh": "在其停住时查看被等待的 rank 在做什么",
            },
            commands=("py-spy dump --pid {pid}", "cat /proc/{pid}/wchan /proc/{pid}/stack", "sudo dmesg -T | tail -50"),
            safety="safe",
        ),
        Remedy(
            key="without-direct-transfers",
            title={
                "en": "All are inside: see whether it runs without direct transfers between the devices",
                "zh": "所有 rank 都在调用中：关闭设备间直接传输，看能否运行",
            },
            commands=("NCCL_P2P_DISABLE=1 diag comm", "sudo lspci -vvv | grep ACSCtl", "cat /proc/cmdline"),
            safety="safe",
            source="https://github.com/NVIDIA/nccl/issues/199",
        ),
        Remedy(
            key="network",
            title={
                "en": "Between hosts: name the interface, and try without RDMA",
                "zh": "跨主机：指定网卡，并尝试关闭 RDMA",
            },
            commands=("export NCCL_SOCKET_IFNAME=INTERFACE GLOO_SOCKET_IFNAME=INTERFACE", "export NCCL_IB_DISABLE=1"),
            safety="safe",
            source="https://docs.vllm.ai/en/latest/usage/troubleshooting/",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/199",
        "https://github.com/NVIDIA/nccl/issues/2079",
        "https://docs.vllm.ai/en/latest/usage/troubleshooting/",
    ),
    fires=(STOPPED, ALL_INSIDE),
    silent=(DONE,),
)
def rank_silent(facts: Facts) -> Iterator[Answer]:
    """Each standstill, and who is waited for."""
    ranks = {one.rank: one for one in facts.all(CollectiveRank)}
    for trouble in (one for one in facts.all(CollectiveTrouble) if one.kind == "stalled"):
        about = [ranks[rank] for rank in trouble.suspects if rank in ranks]
        yield Finding(
            subject=", ".join(f"rank {rank}" for rank in trouble.suspects),
            values={"seconds": f"{trouble.seconds or 0:.0f}", "pid": _pid(about), **_words(about, ranks)},
            confidence="medium" if len(about) == 1 else "low",
            remedies=("the-rank", "network") if about else ("without-direct-transfers", "network"),
            evidence=(Evidence.of(trouble), *map(Evidence.of, (about or list(ranks.values()))[:4])),
        )


def _pid(about: list[CollectiveRank]) -> str | int:
    return next((one.pid for one in about if one.pid), "PID")


def _words(about: list[CollectiveRank], ranks: dict[int, CollectiveRank]) -> dict[str, str | int | float]:
    """Who is waited for, or where all of them are."""
    if about:
        each = ", ".join(f"rank {one.rank} ({_where(one)})" for one in about)
        return {"who.en": f"the others wait for {each}", "who.zh": f"其他 rank 在等待 {each}"}
    phase = next((one.phase for one in ranks.values() if one.phase), "?")
    return {"who.en": f"all ranks are in the same place ({phase})", "who.zh": f"所有 rank 都停在同一处（{phase}）"}


def _where(one: CollectiveRank) -> str:
    """Where a rank stands, in the words of the measurement and the kernel's letter."""
    calls = "" if one.entered is None else f"entered {one.entered} calls, left {one.finished or 0}"
    state = f"state {one.state}" if one.state else ""
    return "; ".join(filter(None, (one.host, one.phase, calls, state, one.ended)))
