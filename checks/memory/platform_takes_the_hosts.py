"""An engine's platform takes the host's memory for that of its device.

## What it finds
A platform that tells, within two per cent, what the host has, beside a device of which torch tells another total.

## Why it matters
vLLM chooses the largest step and the number of requests at once by that figure: from 70 GiB on a step of 8192 tokens
or more and 1024 requests. Its plug-in for Kunlun asks the host, so each device passes for a large one.

## What it cannot know
Whether the launch states both and so does not care.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    MemoryRead,
    PlatformMemory,
    Remedy,
    Undecided,
    Vendor,
    check,
    near_host,
)

GIB = 2**30
READ = (
    '{"schema": "diag/memory/1", "devices": [{"device": "cuda:0", "name": "P800", "free": 102000000000, '
    '"total": 102886000000, "integrated": false, "host_total": 1081936920576}], "unseen": ""}\n'
)
HOST = (
    '{"schema": "diag/memory-platform/1", "engine": "vllm", "host_total": 1081936920576, "error": "", '
    '"version": "0.15.1", "platform": "vllm_kunlun.platforms.kunlun.KunlunPlatform", "total": 1081936920576}\n'
)
OWN = HOST.replace('"total": 1081936920576}', '"total": 102886000000}')
SHARED = READ.replace('"total": 102886000000, "integrated": false', '"total": 1081936920576, "integrated": true')


@check(
    "memory/platform-takes-the-hosts",
    severity="warning",
    about="engine",
    needs=(PlatformMemory, MemoryRead),
    uses=(Vendor,),
    words={
        "en": {
            "title": "The engine's platform takes the host's memory for its device's",
            "summary": "{platform} tells {told} GiB, as the host has; {device} has {total} GiB",
            "cause": "The plug-in asks the host. The engine's defaults (tokens of a step, requests at once) are then "
            "those of a large device.",
        },
        "zh": {
            "title": "推理引擎的平台插件把主机内存当作设备显存",
            "summary": "{platform} 报告 {told} GiB，与主机内存相同；{device} 实际为 {total} GiB",
            "cause": "插件查询的是主机内存，引擎的默认值（单步 token 数、并发请求数）因此按大显存设备选取。",
        },
    },
    remedies=(
        Remedy(
            key="state",
            title={
                "en": "State the tokens of a step and the requests at once, as they fit this device",
                "zh": "按本设备显存显式指定单步 token 数与并发请求数",
            },
            commands=("vllm serve MODEL --max-num-batched-tokens 2048 --max-num-seqs 256",),
            safety="manual",
            source="https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py",
        ),
    ),
    sources=(
        "https://github.com/baidu/vLLM-Kunlun/blob/main/vllm_kunlun/platforms/kunlun.py",
        "https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py",
    ),
    fires=(HOST + READ,),
    silent=(OWN + READ, HOST + SHARED),
)
def platform_takes_the_hosts(facts: Facts) -> Iterator[Answer]:
    """Compare what the platform tells with the host and with the first device."""
    device = next((one for one in facts.all(MemoryRead) if one.device != "cpu"), None)
    for one in facts.all(PlatformMemory):
        if device is None:
            yield Undecided(reason="no device told its memory")
        elif near_host(one.total, one.host_total) and not near_host(device.total, one.host_total):
            yield Finding(
                subject=one.platform,
                values={
                    "platform": one.platform,
                    "told": f"{one.total / GIB:.1f}",
                    "device": device.device,
                    "total": f"{device.total / GIB:.1f}",
                },
                evidence=(Evidence.of(one), Evidence.of(device)),
            )
