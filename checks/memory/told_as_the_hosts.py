"""A device's memory is told as that of the host, of which it is none.

## What it finds
A device whose total, by torch's own call, is within two per cent of the host's memory, although its memory is not the
host's, nor as much as its model is known to have.

## Why it matters
Engines take a part of that total as their budget: a launch then asks for several times what there is. An engine's
plug-in that asks the host although the driver answers rightly is another fault: `memory/platform-takes-the-hosts`.

## What it cannot know
Whether a device of a model that is not known happens to have as much memory as its host.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    DeviceModel,
    Evidence,
    Facts,
    Finding,
    MemoryRead,
    Remedy,
    Vendor,
    check,
    model_of,
    near_host,
)

GB, GIB = 1e9, 2**30
ROOM = 0.15
"""The part by which a total differs from what the maker states, at most."""
ALIKE = (
    '{"schema": "diag/memory/1", "devices": [{"device": "cuda:0", "name": "P800", "free": 1070000000000, '
    '"total": 1081936920576, "integrated": false, "host_total": 1081936920576}], "unseen": ""}\n'
)
OWN = ALIKE.replace('"total": 1081936920576', '"total": 102886000000').replace("1070000000000", "102000000000")
SHARED = ALIKE.replace('"integrated": false', '"integrated": true')
GB10 = ALIKE.replace('"integrated": false, ', "").replace('"P800"', '"NVIDIA GB10"')
H200 = (
    '{"schema": "diag/memory/1", "devices": [{"device": "cuda:0", "name": "NVIDIA H200", "free": 149000000000, '
    '"total": 150109093888, "integrated": false, "host_total": 151000000000}], "unseen": ""}\n'
)


@check(
    "memory/told-as-the-hosts",
    severity="error",
    about="device",
    needs=(MemoryRead,),
    uses=(DeviceModel, Vendor),
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
    silent=(OWN, SHARED, GB10, H200),
)
def told_as_the_hosts(facts: Facts) -> Iterator[Answer]:
    """Each device that tells what the host has."""
    unified = tuple(word for maker in facts.all(Vendor) for word in maker.unified)
    for one in facts.all(MemoryRead):
        shared = one.device == "cpu" or one.integrated or any(word in one.name for word in unified)
        if not shared and near_host(one.total, one.host_total) and not _known(facts, one):
            yield Finding(
                subject=one.device,
                values={"device": f"{one.device} {one.name}".strip(), "total": f"{one.total / GIB:.1f}"},
                evidence=(Evidence.of(one),),
            )


def _known(facts: Facts, one: MemoryRead) -> bool:
    """Whether the device's model has that much memory."""
    model = model_of(facts, Accelerator(origin=one.origin, name=one.name), tells="memory_gb")
    return bool(model) and abs(one.total / ((getattr(model, "memory_gb", None) or 1) * GB) - 1) <= ROOM
