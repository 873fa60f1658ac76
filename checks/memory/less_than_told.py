"""Less of a device's memory can be allocated than it says is free, or only in pieces.

## What it finds
Trials that came to their end below what was allowed, in all or in one piece: the largest block is below nine tenths of
what could be had together.

## Why it matters
An engine that asks for what is free fails on it, and a KV cache is a few large blocks.

## What it cannot know
What another process took between the question and the trial. The last 2 GiB or 5 % were not tried.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryAllocation, Remedy, Undecided, check

PIECES, GIB = 0.9, 2**30
WHOLE = (
    '{"schema": "diag/memory/1", "devices": [{"device": "cuda:0", "name": "X", "free": 84825604096, '
    '"total": 85029158912, "host_total": 540000000000, "allocation": {"largest": 80530636800, "total": 80530636800, '
    '"blocks": 1, "trials": 1, "cap": 80574146150, "step": 33554432, "seconds": 0.2}}]}\n'
)
LESS = WHOLE.replace('"largest": 80530636800, "total": 80530636800', '"largest": 60129542144, "total": 60129542144')
PARTS = WHOLE.replace('"largest": 80530636800', '"largest": 40265318400').replace('"blocks": 1', '"blocks": 2')


@check(
    "memory/less-than-told",
    severity="warning",
    about="device",
    needs=(MemoryAllocation,),
    words={
        "en": {
            "title": "Less memory can be allocated than a device says is free",
            "summary": "{device}: {total} GiB could be had, {largest} GiB in one piece, of {cap} GiB that were tried",
            "cause": "A limit that the free memory does not tell of (a quota, a driver's own reserve), or pieces that "
            "others hold between.",
        },
        "zh": {
            "title": "可分配的显存少于设备报告的空闲显存",
            "summary": "{device}：尝试 {cap} GiB，实际可得 {total} GiB，单块最大 {largest} GiB",
            "cause": "存在空闲显存未体现的限制（配额、驱动保留），或被其他占用分割成碎片。",
        },
    },
    remedies=(
        Remedy(
            key="bytes",
            title={
                "en": "Ask for what can be had: a smaller part of the device; free what others hold",
                "zh": "按实际可得申请：降低占用比例，或释放他人占用的显存",
            },
            commands=("diag mem probe --allocate",),
            safety="safe",
        ),
    ),
    sources=("https://docs.pytorch.org/docs/stable/notes/cuda.html",),
    fires=(LESS, PARTS),
    silent=(WHOLE,),
)
def less_than_told(facts: Facts) -> Iterator[Answer]:
    """Each device whose trials ended below what was allowed, or in pieces."""
    for one in facts.all(MemoryAllocation):
        if one.refused:
            yield Undecided(reason=f"{one.device}: nothing was allocated: {one.refused}")
        elif one.limited or (one.blocks > 1 and one.largest < PIECES * one.total):
            figures = {name: f"{getattr(one, name) / GIB:.1f}" for name in ("total", "largest", "cap")}
            yield Finding(subject=one.device, values={"device": one.device, **figures}, evidence=(Evidence.of(one),))
