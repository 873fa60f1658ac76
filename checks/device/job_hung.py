"""A device hung on a job, and the kernel reset it.

## What it finds
The kernel's words that a ring of the device timed out, that the device hangs, or that it is reset: one finding for each
device.

## Why it matters
The job is lost; a reset of the whole device takes the memory of all processes on it along.

## What it cannot know
Whether a program's kernel, the driver or the hardware is at fault. Long kernels are ended the same way where a limit of
time is set.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, device_name

KINDS = ("ring-timeout", "gpu-hang", "gpu-reset")

LLAMA = """\
maj 08 19:27:35 host-1 kernel: amdgpu 0000:c2:00.0: ring gfx_0.0.0 timeout, signaled seq=166926, emitted seq=166928
maj 08 19:27:35 host-1 kernel: amdgpu 0000:c2:00.0:  Process llama-server pid 12519 thread llama-server pid 12519
maj 08 19:27:35 host-1 kernel: amdgpu 0000:c2:00.0: Starting gfx_0.0.0 ring reset
maj 08 19:27:35 host-1 kernel: amdgpu 0000:c2:00.0: Ring gfx_0.0.0 reset succeeded
"""
I915 = """\
22:39:31 kernel: i915 0000:00:02.0: [drm] Resetting chip for GuC failed to reset engine mask=0x1
22:39:31 kernel: i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:0020fffe, in xdg-desktop-por [1676]
"""
FENCE = "maj 08 19:28:59 host-1 kernel: amdgpu 0000:c2:00.0: Fence fallback timer expired on ring gfx_0.0.0\n"


@check(
    "device/job-hung",
    severity="warning",
    about="device",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "A device hung on a job and was reset",
            "summary": "{device}: {says} ({count} events in the kernel log; process {process})",
            "cause": "A kernel of the job did not end in time: a fault in it or in the driver, a device that is "
            "undervolted, overclocked or too hot, or failing hardware.",
        },
        "zh": {
            "title": "设备在任务上挂起并被复位",
            "summary": "{device}：{says}（内核日志中有 {count} 条事件，进程 {process}）",
            "cause": "任务的某个 kernel 未能按时结束：其自身或驱动有缺陷，设备降压、超频或过热，或硬件正在损坏。",
        },
    },
    remedies=(
        Remedy(
            key="restart",
            title={
                "en": "Start the engine again, and see whether it hangs at the same place",
                "zh": "重新启动推理引擎，观察是否在同一位置挂起",
            },
            commands=("sudo dmesg --follow",),
            safety="safe",
            verify="sudo dmesg | grep -iE 'timeout|hang|reset'",
        ),
        Remedy(
            key="newer",
            title={
                "en": "If it does: install the newest driver, firmware and engine for this device",
                "zh": "若会：为该设备安装最新的驱动、固件和推理引擎",
            },
            safety="disruptive",
            verify="sudo dmesg | grep -iE 'timeout|hang|reset'",
        ),
    ),
    sources=(
        "https://github.com/ggml-org/llama.cpp/issues/21724",
        "https://github.com/ValveSoftware/SteamOS/issues/2802",
        "https://github.com/clearlinux/distribution/issues/2907",
    ),
    fires=(LLAMA, I915),
    silent=(FENCE,),
)
def job_hung(facts: Facts) -> Iterator[Answer]:
    """Gather hangs and resets, device by device."""
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind in KINDS:
            told.setdefault((event.vendor, event.address), []).append(event)
    told = {key: events for key, events in told.items() if key[1] or not any(one[1] for one in told)}
    for (vendor, address), events in told.items():
        device = device_name(facts, address=address, vendor=vendor)
        processes = ", ".join([*dict.fromkeys(one.process for one in events if one.process)][:3])
        told_by, count = events[0].message, len(events)
        yield Finding(
            values={"device": device or vendor, "says": told_by, "count": count, "process": processes or "?"},
            subject=device,
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
