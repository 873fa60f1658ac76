"""The kernel logged an error of an AMD device that it could not correct.

## What it finds
Lines of amdgpu that name uncorrectable hardware errors: one finding for each device.

## Why it matters
What was computed with that memory or logic is wrong or lost; the driver ends processes or resets the device for it.

## What it cannot know
Which part failed, where the line does not name it, and whether bad pages were retired since.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, device_name

RAS = "https://docs.kernel.org/gpu/amdgpu/ras.html"

MI300X = "[13850.912648] amdgpu 0000:1c:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n"
MI50 = """\
[Sat Jan  7 14:25:56 2023] amdgpu 0000:e3:00.0: amdgpu: MEM ECC is active.
[Sat Jan  7 14:25:56 2023] amdgpu 0000:e3:00.0: amdgpu: uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!
"""
ACTIVE = """\
[Sat Jan  7 14:25:56 2023] amdgpu 0000:e3:00.0: amdgpu: MEM ECC is active.
[Sat Jan  7 14:25:56 2023] amdgpu 0000:e3:00.0: amdgpu: SRAM ECC is active.
"""


@check(
    "amd/ras-uncorrectable",
    severity="error",
    about="amd",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "An AMD device reported errors that could not be corrected",
            "summary": "{device}: uncorrectable hardware error, {count}x in the kernel log",
            "cause": "Memory or logic of the device failed; many in a short time, or again after a reset, mean that "
            "it has to be replaced.",
        },
        "zh": {
            "title": "AMD 设备报告了无法纠正的硬件错误",
            "summary": "{device}：内核日志中有 {count} 次无法纠正的硬件错误",
            "cause": "设备的显存或逻辑发生故障；短时间内多次出现，或复位后再次出现，说明需要更换。",
        },
    },
    remedies=(
        Remedy(
            key="restart",
            title={
                "en": "Stop the jobs and reboot the machine, then look at the counters and the retired pages",
                "zh": "停止任务并重启机器，然后查看错误计数与已退役的页",
            },
            commands=("sudo reboot", "amd-smi metric --ecc", "amd-smi bad-pages"),
            safety="disruptive",
            verify="sudo dmesg | grep -i 'hardware error'",
            source=RAS,
        ),
        Remedy(
            key="replace",
            title={"en": "If it comes back: have the device replaced", "zh": "若再次出现：更换该设备"},
            safety="manual",
            verify="sudo dmesg | grep -i 'hardware error'",
        ),
    ),
    sources=(
        "https://docs.kernel.org/_sources/gpu/amdgpu/ras.rst.txt",
        "https://github.com/ROCm/legacy-rocm-build/issues/1886",
        "https://github.com/ROCm/legacy-rocm-build/issues/4021",
    ),
    explains=("device/job-hung",),
    fires=(MI300X, MI50),
    silent=(ACTIVE,),
)
def ras_uncorrectable(facts: Facts) -> Iterator[Answer]:
    """Gather the events, device by device."""
    told: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if (event.kind, event.code) == ("ras", "uncorrectable"):
            told.setdefault(event.address, []).append(event)
    for address, events in told.items():
        device = device_name(facts, address=address, vendor="amd")
        yield Finding(
            values={"device": device or "GPU", "count": len(events)},
            subject=device,
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
