"""A rank may run on one core only.

## What it finds
Ranks that measured, and whose process may use one processor, where the machine has more of them than there are ranks.

## Why it matters
A rank has threads that wait for each other: one that calls, those that drive the network and the copies through the
host. On one core they take turns, and each exchange waits for the scheduler.

## What it cannot know
How much it costs here. Devices that exchange by themselves over fast links lose little; the network and shared memory
lose half and more.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, Evidence, Facts, Finding, Host, Remedy, Undecided, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "Open MPI", '
    '"size": 2, "results": [], "ranks": [{"rank": 0, "host": "a", "cpus": %d}, {"rank": 1, "host": "a", "cpus": %d}]}\n'
)
LSCPU = "Architecture:                         x86_64\nCPU(s):                               %d\n"
ONE = HEAD % (1, 1) + LSCPU % 128
SOCKET = HEAD % (64, 64) + LSCPU % 128


@check(
    "collectives/ranks-bound-to-one-core",
    severity="warning",
    about="host",
    needs=(CollectiveRank,),
    uses=(Host,),
    words={
        "en": {
            "title": "Ranks are bound to one core each",
            "summary": "ranks {ranks} may run on one processor only",
            "cause": "The launcher binds by itself: mpirun does, to a core or a socket, unless it is told otherwise.",
        },
        "zh": {
            "title": "rank 被绑定到单个核心",
            "summary": "rank {ranks} 只能在一个处理器上运行",
            "cause": "启动器自行进行了绑定：mpirun 默认会绑定到核心或插槽，除非另行指定。",
        },
    },
    remedies=(
        Remedy(
            key="unbound",
            title={
                "en": "Bind to the NUMA node of the device, or not at all",
                "zh": "绑定到设备所在的 NUMA 节点，或不绑定",
            },
            commands=("mpirun --bind-to numa …", "mpirun --bind-to none …", "srun --cpu-bind=none …"),
            safety="safe",
            verify="grep Cpus_allowed_list /proc/PID/status",
            source="https://github.com/NVIDIA/nccl/issues/644",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/644",
        "https://github.com/NVIDIA/nccl/issues/374",
        "https://github.com/ROCm/rccl-tests",
    ),
    explains=(
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/ranks-uneven",
        "collectives/noisy",
    ),
    fires=(ONE,),
    silent=(SOCKET,),
)
def ranks_bound_to_one_core(facts: Facts) -> Iterator[Answer]:
    """The ranks with one processor, unless there are no more than that for each."""
    ranks = {one.rank: one for one in facts.all(CollectiveRank)}
    if all(one.cpus is None for one in ranks.values()):
        yield Undecided(reason="the processors that the ranks may use are not told")
        return
    bound = [one for one in ranks.values() if one.cpus == 1]
    there = facts.field(Host, "cpus")
    if bound and (there is None or there > len(ranks)):
        numbers = ", ".join(str(one.rank) for one in bound[:8]) + (" …" if len(bound) > 8 else "")
        yield Finding(
            values={"ranks": numbers},
            confidence="medium" if there is None else "high",
            evidence=tuple(map(Evidence.of, bound[:4])),
        )
