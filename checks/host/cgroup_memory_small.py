"""The control group may take less memory than one of its accelerators holds.

## What it finds
A limit of memory of the group (`memory.max`, `memory.limit_in_bytes`) below the memory of the largest accelerator.

## Why it matters
Weights pass through the memory of the host on their way to the device, and each worker holds some of its own. Where a
loader keeps whole shards, or weights are offloaded, the kernel kills a worker without a word in the engine's log.

## What it cannot know
How large the model is and how it is loaded: pages of files that are only mapped can be given back, and small models
need little. Devices that share the memory of the host are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, Platform, Remedy, Setting, Undecided, check, devices

LIMITS = ("memory.max", "memory.limit_in_bytes")
NONE = 2**62
"""From here on a number of version 1 is no limit."""

SMI_A100 = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+
"""
MAX_128_MIB = """\
# cat /sys/fs/cgroup/memory.max
134217728
"""
V1_NONE = """\
$ cat /sys/fs/cgroup/memory/memory.limit_in_bytes
9223372036854771712
"""


@check(
    "host/cgroup-memory-small",
    severity="warning",
    about="host",
    needs=(Setting,),
    uses=(Accelerator, Platform),
    words={
        "en": {
            "title": "The container may take less memory than one accelerator holds",
            "summary": "{name} allows {gib} GiB; {device} holds {device_gib} GiB",
            "cause": "The container or the job was started with a limit of memory. Weights that fill the device pass "
            "through this memory, and whatever exceeds it is killed by the kernel (exit code 137).",
        },
        "zh": {
            "title": "容器的内存上限小于单个加速器的显存",
            "summary": "{name} 仅允许 {gib} GiB，而 {device} 的显存为 {device_gib} GiB",
            "cause": "容器或作业启动时设置了内存上限。填满设备的权重需要经过主机内存，"
            "超出上限的进程会被内核杀死（退出码 137）。",
        },
    },
    remedies=(
        Remedy(
            key="more",
            title={
                "en": "Start the container with more memory (in Kubernetes: resources.limits.memory)",
                "zh": "以更大的内存上限启动容器（Kubernetes 中为 resources.limits.memory）",
            },
            commands=("docker run --memory=<size> …",),
            safety="disruptive",
            verify="cat /sys/fs/cgroup/memory.max",
            source="https://github.com/vllm-project/vllm/issues/57469",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/57469",
        "https://github.com/vllm-project/vllm/issues/759",
        "https://github.com/vectorch-ai/ScaleLLM/issues/38",
    ),
    fires=(SMI_A100 + MAX_128_MIB,),
    silent=(SMI_A100 + V1_NONE,),
)
def cgroup_memory_small(facts: Facts) -> Iterator[Answer]:
    """Compare the limit with the largest device."""
    limits = [(size, one) for one in facts.all(Setting) if (size := _bytes(one)) is not None]
    sized = [one for one in devices(facts) if one.memory_mib]
    if not limits or not sized or any("unified-memory" in one.traits for one in facts.all(Platform)):
        yield Undecided(reason="the limit of the group and the memory of a device of its own are not both told")
        return
    (size, limit), device = min(limits, key=lambda one: one[0]), max(sized, key=lambda one: one.memory_mib or 0)
    held = (device.memory_mib or 0) * 2**20
    if size < held:
        yield Finding(
            values={
                "name": limit.name,
                "gib": f"{size / 2**30:.4g}",
                "device": device.name or device.vendor or "the device",
                "device_gib": f"{held / 2**30:.4g}",
            },
            confidence="medium" if size < held / 4 else "low",
            evidence=(Evidence.of(limit), Evidence.of(device)),
        )


def _bytes(setting: Setting) -> float | None:
    """What a setting lets the group take, None where it is about something else."""
    if setting.kind != "cgroup" or setting.name not in LIMITS:
        return None
    if setting.value.isdecimal():
        return float("inf") if int(setting.value) >= NONE else int(setting.value)
    return float("inf") if setting.value == "max" else None
