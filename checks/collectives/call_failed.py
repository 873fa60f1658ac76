"""An operation between ranks raised an error.

## What it finds
A measurement that ended because a call of torch or of the collective library failed.

## Why it matters
An engine fails at the same call.

## What it cannot know
More than the error says: what it means is told by the rules on the library's own words, before which this one stands
back.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveTrouble, CollectiveWorld, Evidence, Facts, Finding, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "diag", '
    '"size": 2, '
)
FAILED = HEAD + (
    '"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "a"}], "results": [], "trouble": {"kind": "failed", '
    '"reason": '
    '"RuntimeError: Distributed package doesn\'t have XCCL built in", "suspects": [0], "released": true}}\n'
)
DONE = HEAD + '"ranks": [{"rank": 0, "host": "a"}, {"rank": 1, "host": "a"}], "results": []}\n'


@check(
    "collectives/call-failed",
    severity="error",
    about="device",
    needs=(CollectiveWorld,),
    uses=(CollectiveTrouble,),
    words={
        "en": {
            "title": "An operation between ranks failed",
            "summary": "{reason}",
            "cause": "The library or torch refused or broke off the call; its own words say why.",
        },
        "zh": {
            "title": "rank 间的操作失败",
            "summary": "操作失败：{reason}",
            "cause": "通信库或 torch 拒绝或中断了该调用，原因见其自身的报错。",
        },
    },
    remedies=(
        Remedy(
            key="louder",
            title={"en": "Let the library say more", "zh": "让通信库输出更多信息"},
            commands=("NCCL_DEBUG=INFO diag comm", "BKCL_DEBUG=INFO diag comm"),
            safety="safe",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        ),
    ),
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",),
    consequence=True,
    fires=(FAILED,),
    silent=(DONE,),
)
def call_failed(facts: Facts) -> Iterator[Answer]:
    """Each call that raised."""
    for trouble in (one for one in facts.all(CollectiveTrouble) if one.kind == "failed"):
        who = ", ".join(f"rank {rank}" for rank in trouble.suspects)
        yield Finding(subject=who, values={"reason": trouble.reason}, evidence=(Evidence.of(trouble),))
