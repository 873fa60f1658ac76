"""A device's memory is told as that of the host, of which it is none.

## What it finds
A device whose total, by torch's own call, is within two per cent of the host's memory, although its memory is not the
host's.

## Why it matters
Engines take a part of that total as their budget and choose the size of their steps by it: vLLM's plug-in for Kunlun
asks the host in place of the device. A launch then asks for several times what there is.

## What it cannot know
Whether a device happens to have as much memory as its host; that is rare, and the table of devices is asked first.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, MemoryRead, Remedy, check

NEAR = 0.02
GIB = 2**30
ALIKE = (
    '{"schema": "diag/memory/1", "devices": [{"device": "cuda:0", "name": "P800", "free": 1070000000000, '
    '"total": 1081936920576, "integrated": false, "host_total": 1081936920576}], "unseen": ""}\n'
)
OWN = ALIKE.replace('"total": 1081936920576', '"total": 102886000000').replace("1070000000000", "102000000000")
SHARED = ALIKE.replace('"integrated": false', '"integrated": true')


@check(
    "memory/told-as-the-hosts",
    severity="error",
    about="device",
    needs=(MemoryRead,),
    words={
        "en": {
            "title": "A device's memory is told as the host's",
            "summary": "{device} tells {total} GiB, as the host has: that is not its own memory",
            "cause": "The plug-in or driver answers with the host's memory, and engines size their budget by it.",
        },
        "zh": {
            "title": "设备显存被报告为主机内存",
            "summary": "{device} 报告 {total} GiB，与主机内存相同：这不是设备自己的显存",
            "cause": "插件或驱动返回了主机内存，推理引擎会据此分配预算。",
        },
    },
    remedies=(
        Remedy(
            key="state",
            title={
                "en": "Tell the engine bytes in place of a part: --kv-cache-memory-bytes, and the largest step",
                "zh": "改为向引擎指定字节数（--kv-cache-memory-bytes）以及单步规模",
            },
            commands=("vllm serve MODEL --kv-cache-memory-bytes BYTES --max-num-seqs 256",),
            safety="manual",
            source="https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py",
        ),
    ),
    sources=("https://github.com/baidu/vLLM-Kunlun/blob/main/vllm_kunlun/platforms/kunlun.py",),
    fires=(ALIKE,),
    silent=(OWN, SHARED),
)
def told_as_the_hosts(facts: Facts) -> Iterator[Answer]:
    """Each device that tells what the host has."""
    for one in facts.all(MemoryRead):
        own = one.integrated or one.device == "cpu" or not one.host_total
        if not own and abs(one.total / (one.host_total or 1) - 1) <= NEAR:
            yield Finding(
                subject=one.device,
                values={"device": f"{one.device} {one.name}".strip(), "total": f"{one.total / GIB:.1f}"},
                evidence=(Evidence.of(one),),
            )
