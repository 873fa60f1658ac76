"""A rank of a world ended while it measured.

## What it finds
A process of `diag comm` that a signal ended, or that ended by itself before the others.

## Why it matters
The ranks that are left wait for it. In an engine the same end shows as a hang, or as an error of another rank.

## What it cannot know
Why, where the kernel's log was not read: a killed process may have had more memory than its control group allows; one
that ended with SIGBUS mostly wrote into a `/dev/shm` that is full.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, CollectiveTrouble, CollectiveWorld, Evidence, Facts, Finding, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", '
    '"size": 2, '
)
RANKS = '"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "a"}], "results": [], "states": ['
STATE = (
    '{"rank": %d, "phase": "the first all_reduce, of 8 bytes", "entered": 1, "finished": 0, "pid": 7%d, "state": '
    '"", "ended": "%s"}'
)
KILLED = (
    HEAD
    + RANKS
    + ", ".join((STATE % (0, 0, ""), STATE % (1, 1, "killed by SIGBUS")))
    + '], "trouble": {"kind": "died", "reason": "rank 1, the first all_reduce, of 8 bytes: killed by SIGBUS", '
    '"suspects": [1], '
    '"released": true}}\n'
)
ENDED = HEAD + RANKS + ", ".join((STATE % (0, 0, "exit code 0"), STATE % (1, 1, "exit code 0"))) + "]}\n"


@check(
    "collectives/rank-died",
    severity="error",
    about="device",
    needs=(CollectiveWorld,),
    uses=(CollectiveRank, CollectiveTrouble),
    words={
        "en": {
            "title": "A rank ended while it measured",
            "summary": "{who} ended: {reason}",
            "cause": "The kernel or somebody killed it, or the driver or the library crashed in it.",
        },
        "zh": {
            "title": "测量期间有 rank 的进程结束",
            "summary": "{who} 已结束：{reason}",
            "cause": "进程被内核或他人杀死，或驱动、通信库在其中崩溃。",
        },
    },
    remedies=(
        Remedy(
            key="log",
            title={"en": "See what the kernel says of it", "zh": "查看内核日志中的原因"},
            commands=("sudo dmesg -T | grep -iE 'killed process|oom|segfault|Xid|bus error' | tail", "df -h /dev/shm"),
            safety="safe",
        ),
        Remedy(
            key="shared-memory",
            title={
                "en": "It was SIGBUS: give the container more shared memory",
                "zh": "若为 SIGBUS：为容器增大共享内存",
            },
            commands=("docker run --shm-size=1g …", "docker run --ipc=host …"),
            safety="disruptive",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        ),
    ),
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    fires=(KILLED,),
    silent=(ENDED,),
)
def rank_died(facts: Facts) -> Iterator[Answer]:
    """Each end before its time."""
    ranks = {one.rank: one for one in facts.all(CollectiveRank)}
    for trouble in (one for one in facts.all(CollectiveTrouble) if one.kind == "died"):
        about = [ranks[rank] for rank in trouble.suspects if rank in ranks]
        who = ", ".join(f"rank {rank}" for rank in trouble.suspects) or "?"
        yield Finding(
            subject=who,
            values={"who": who, "reason": trouble.reason},
            remedies=("log", "shared-memory") if "SIGBUS" in trouble.reason else ("log",),
            evidence=(Evidence.of(trouble), *map(Evidence.of, about[:4])),
        )
