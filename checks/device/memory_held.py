"""Memory of a device is taken although a launch is still to come.

## What it finds
Memory in use, beyond what a driver keeps for itself, on a device of a machine about whose next launch is asked: the
launch given with the question, or one whose command stands below the tool's table that shows no process.

## Why it matters
The launch finds less memory than it expects: it refuses to start, or starts with a small KV cache. What an engine that
crashed left behind looks like this.

## What it cannot know
Which of the devices the launch will use, and whether the holder is meant to stay beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    DeviceProcess,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Reading,
    Remedy,
    Undecided,
    check,
    device_name,
    devices,
)

ASKED = "launch"
"""The capture that holds the launch line given with the question."""
SMALL_MIB, SMALL_SHARE = 1024.0, 0.03
THREAD = "https://github.com/vllm-project/vllm-omni/issues/276"

TAKEN = """\
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
FREE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.65.06              Driver Version: 580.65.06      CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On |   00000000:18:00.0 Off |                    0 |
| N/A   30C    P0             62W /  400W |       0MiB /  81920MiB |      0%   E. Process |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
LAUNCH = "$ vllm serve Qwen/Qwen3-8B\n"


@check(
    "device/memory-held",
    severity="warning",
    about="device",
    needs=(LaunchArguments, Reading),
    uses=(Accelerator, DeviceProcess),
    words={
        "en": {
            "title": "Memory of a device is taken before the launch",
            "summary": "{device}: {used} of {total} MiB in use by {holders}",
            "cause": "Another program runs there, in another container perhaps, or an engine that crashed left "
            "workers behind.",
        },
        "zh": {
            "title": "启动前设备显存已被占用",
            "summary": "{device}：{total} MiB 中已有 {used} MiB 被占用，占用者：{holders}",
            "cause": "有其他程序在运行（可能在另一个容器中），或崩溃的推理引擎残留了工作进程。",
        },
    },
    remedies=(
        Remedy(
            key="who",
            title={
                "en": "See on the host who holds the device, and end what is left over",
                "zh": "在主机上查看占用该设备的进程，并结束残留进程",
            },
            commands=("sudo fuser -v /dev/nvidia* /dev/kfd /dev/davinci* 2>/dev/null",),
            safety="manual",
            verify="nvidia-smi",
            source=THREAD,
        ),
        Remedy(
            key="other-device",
            title={"en": "Or launch on devices that are free", "zh": "或在空闲的设备上启动"},
            commands=("CUDA_VISIBLE_DEVICES=… vllm serve …",),
            safety="safe",
            verify="nvidia-smi",
        ),
    ),
    sources=(THREAD, "https://github.com/vllm-project/vllm/issues/50135"),
    fires=(TAKEN + LAUNCH,),
    silent=(FREE + LAUNCH,),
)
def memory_held(facts: Facts) -> Iterator[Answer]:
    """Compare what is in use with what a driver keeps for itself."""
    used = {
        device_name(facts, index=one.index, address=one.address, vendor=one.vendor): one
        for one in facts.all(Reading)
        if one.name == "memory.used" and _before_launch(facts, one)
    }
    if not used:
        yield Undecided(reason="no tool told the memory in use before a launch")
    for device, one in used.items():
        total = next((had.memory_mib for had in devices(facts) if _is(had, one)), None)
        if total and float(one.value) > max(SMALL_MIB, SMALL_SHARE * total):
            held = [process for process in facts.all(DeviceProcess) if process.index == one.index]
            holders = ", ".join(f"{process.name}[{process.pid}]" for process in held[:4])
            yield Finding(
                values={
                    "device": device or one.vendor,
                    "used": f"{float(one.value):g}",
                    "total": f"{total:g}",
                    "holders": holders or "?",
                },
                subject=device,
                confidence="high" if any(_asked(launch) for launch in facts.all(LaunchArguments)) else "medium",
                evidence=tuple(map(Evidence.of, (one, *held[:3]))),
            )


def _asked(launch: LaunchArguments) -> bool:
    return launch.origin.capture == ASKED


def _before_launch(facts: Facts, used: Reading) -> bool:
    """Whether the launch is asked about, or its command stands below the tool's table, which shows no process."""
    launches = facts.all(LaunchArguments)
    below = any(
        one.origin.capture == used.origin.capture and 0 < used.origin.line < one.origin.line for one in launches
    )
    return any(map(_asked, launches)) or (below and not facts.all(DeviceProcess))


def _is(device: Accelerator, reading: Reading) -> bool:
    if device.vendor != reading.vendor:
        return False
    if device.address and reading.address:
        return device.address == reading.address
    return device.index is not None and device.index == reading.index
