"""Segments in `/dev/shm` were left behind by engines that are gone.

## What it finds
Files under the names of engines and collective libraries whose process has ended, or that no process has mapped,
untouched for ten minutes.

## Why it matters
They take memory of the host, and of the room that the next launch needs. Each crash adds to them.

## What it cannot know
Who uses them where not all processes can be seen: in a container, or without the rights to look. A listing of the
folder alone decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Remedy, SharedSegment, Undecided, check

OLD = 600.0
"""Seconds."""

LEFT = """\
{"schema": "diag/shared-memory/1", "segments": [{"path": "/dev/shm/torch_3433612_1804289383_0", \
"size_bytes": 16777216, "age_seconds": 7200.5, "pid": 3433612, "alive": false, "open": false}, \
{"path": "/dev/shm/psm_04a1e52f", "size_bytes": 105906176, "age_seconds": 7200.1, "pid": null, "open": false}]}
"""
IN_USE = """\
{"schema": "diag/shared-memory/1", "segments": [{"path": "/dev/shm/torch_3433612_1804289383_0", \
"size_bytes": 16777216, "age_seconds": 7200.5, "pid": 3433612, "alive": true, "open": true}, \
{"path": "/dev/shm/psm_04a1e52f", "size_bytes": 105906176, "age_seconds": 7200.1, "pid": null, "open": true}]}
"""


@check(
    "host/shared-memory-stale",
    severity="info",
    about="host",
    needs=(SharedSegment,),
    words={
        "en": {
            "title": "Segments of ended engines were left in /dev/shm",
            "summary": "{count} file(s) of {mib} MiB that nobody uses, the largest {largest}",
            "cause": "An engine that is killed or crashes does not remove its segments; names differ at each start, so "
            "that they add up.",
        },
        "zh": {
            "title": "/dev/shm 中遗留了已结束引擎的共享内存段",
            "summary": "共 {count} 个文件、{mib} MiB 无人使用，最大的是 {largest}",
            "cause": "被杀死或崩溃的引擎不会清理其共享内存段；每次启动名称都不同，因此会不断累积。",
        },
    },
    remedies=(
        Remedy(
            key="remove",
            title={
                "en": "Check that nobody has it open, then delete it (its content is lost); the same for the others",
                "zh": "确认无人打开后删除（内容将丢失），其余文件同样处理",
            },
            commands=("sudo fuser -v {largest}", "sudo rm {largest}"),
            safety="manual",
            verify="df -h /dev/shm",
            source="https://github.com/llm-d/llm-d/pull/364",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/pull/51317",
        "https://github.com/vllm-project/vllm/issues/51579",
        "https://github.com/sgl-project/sglang/pull/28089",
        "https://github.com/sgl-project/sglang/pull/30591",
    ),
    explains=("host/shared-memory-full",),
    fires=(LEFT,),
    silent=(IN_USE,),
)
def shared_memory_stale(facts: Facts) -> Iterator[Answer]:
    """Sum up the files whose process is gone, or that nobody has mapped."""
    told = [one for one in facts.all(SharedSegment) if one.alive is not None or one.open is not None]
    left = [one for one in told if _unused(one) and (one.age_seconds or 0) >= OLD]
    if not told:
        yield Undecided(reason="who uses the segments in /dev/shm is not told")
    elif left and (total := sum(one.size_bytes or 0 for one in left)) >= 2**20:
        left.sort(key=lambda one: -(one.size_bytes or 0))
        yield Finding(
            values={"count": len(left), "mib": total // 2**20, "largest": left[0].path},
            confidence="medium" if all(one.open is False for one in left) else "low",
            evidence=tuple(map(Evidence.of, left[:5])),
        )


def _unused(segment: SharedSegment) -> bool:
    """Whether nobody has it mapped, or, where that is not told, the process it is named after has ended."""
    return segment.alive is not True if segment.open is False else segment.open is None and segment.alive is False
