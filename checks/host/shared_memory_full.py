"""`/dev/shm` has next to no room left.

## What it finds
Less than a tenth, and less than 1 GiB, free of a `/dev/shm` that is larger than a container's default of 64 MiB.

## Why it matters
Collective libraries and workers make their segments there when they start: "failed to extend /dev/shm/nccl-…: No space
left on device".

## What it cannot know
Whether an engine that runs now needs what is there, or a crashed one left it behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Mount, Remedy, SharedSegment, Undecided, check

DEFAULT = 64 * 2**20
LITTLE = 2**30

DF_FULL = """\
$ df
Filesystem                   1K-blocks      Used  Available Use% Mounted on
/dev/mapper/vg_root-lv_root   20511356   2613276   16833120  14% /
devtmpfs                      65949600         0   65949600   0% /dev
tmpfs                         65960200  65960200          0 100% /dev/shm
tmpfs                         65960200    243060   65717140   1% /run
"""
DF_FREE = """\
$ df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
tmpfs            24G     0   24G   0% /dev/shm
"""


@check(
    "host/shared-memory-full",
    severity="warning",
    about="host",
    needs=(Mount,),
    uses=(SharedSegment,),
    words={
        "en": {
            "title": "/dev/shm is nearly full",
            "summary": "{free} MiB of {size} MiB are free in /dev/shm",
            "cause": "Segments of engines that run, or that ended without removing theirs, fill it. A server that "
            "crashes and starts again leaves more each time.",
        },
        "zh": {
            "title": "/dev/shm 几乎已满",
            "summary": "/dev/shm 共 {size} MiB，仅剩 {free} MiB",
            "cause": "正在运行的引擎，或退出时未清理的引擎的共享内存段占满了它。反复崩溃重启的服务每次都会遗留更多。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={"en": "See what is there and who has it open", "zh": "查看其中的内容以及被谁打开"},
            commands=("ls -lhS /dev/shm | head -20", "sudo fuser -v /dev/shm/*"),
            safety="safe",
            verify="df -h /dev/shm",
            source="https://github.com/llm-d/llm-d/issues/352",
        ),
        Remedy(
            key="remove",
            title={
                "en": "Where no engine runs: delete the segments that were left (their content is lost)",
                "zh": "确认没有引擎运行后，删除遗留的共享内存段（内容将丢失）",
            },
            commands=("rm /dev/shm/nccl-* /dev/shm/psm_* /dev/shm/torch_*",),
            safety="disruptive",
            verify="df -h /dev/shm",
            source="https://github.com/llm-d/llm-d/pull/364",
        ),
    ),
    sources=("https://github.com/llm-d/llm-d/issues/352", "https://github.com/vllm-project/vllm/pull/51317"),
    explains=("collectives/rank-died", "collectives/call-failed"),
    fires=(DF_FULL,),
    silent=(DF_FREE,),
)
def shared_memory_full(facts: Facts) -> Iterator[Answer]:
    """Look at what is free; the largest segments are shown with it."""
    mounts = [
        one for one in facts.all(Mount) if one.path == "/dev/shm" and one.size_bytes and one.free_bytes is not None
    ]
    if not mounts:
        yield Undecided(reason="what is free in /dev/shm is not told")
        return
    size, free = mounts[-1].size_bytes or 0, mounts[-1].free_bytes or 0
    if size > DEFAULT and free < min(size / 10, LITTLE):
        largest = sorted(facts.all(SharedSegment), key=lambda one: -(one.size_bytes or 0))[:3]
        evidence = (Evidence.of(mounts[-1]), *map(Evidence.of, largest))
        yield Finding(values={"free": free // 2**20, "size": size // 2**20}, evidence=evidence)
