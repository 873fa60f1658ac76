"""The driver could not start a device.

## What it finds
The kernel's words that the driver's start on a device failed: NVIDIA's `RmInitAdapter failed!` and `probe routine
failed`, amdgpu's `Fatal error during GPU init`. One finding for each device that the vendor's tool does not list.

## Why it matters
The device is on the bus and nobody can use it; tools show fewer devices, or none.

## What it cannot know
Why: a device that does not answer, firmware that does not start, a driver too old or of the wrong kind for it, too
small an address window, a device passed on to a virtual machine in a bad state.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    HardwareEvent,
    Remedy,
    Text,
    Undecided,
    check,
    device_name,
)

THREAD = "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1151"
NO_DEVICE = "No NVIDIA"
"""Begins the words of a driver that found no device at all, which is another matter."""

RTX_5080 = """\
May 27 16:50:10 host kernel: NVRM: GPU 0000:09:00.0: rm_init_adapter failed, device minor number 0
May 27 16:50:10 host kernel: NVRM: osInitNvMapping: *** Cannot attach gpu
May 27 16:50:10 host kernel: NVRM: RmInitAdapter: osInitNvMapping failed, bailing out of RmInitAdapter
May 27 16:50:10 host kernel: NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x22:0x56:894)
"""
TWO = """\
[ 1097.650222] NVRM: GPU 0000:04:01.0: RmInitAdapter failed! (0x11:0x45:2525)
[ 1097.650377] NVRM: GPU 0000:04:01.0: rm_init_adapter failed, device minor number 0
[ 1102.469870] NVRM: GPU 0000:04:02.0: RmInitAdapter failed! (0x11:0x45:2525)
[ 1102.470052] NVRM: GPU 0000:04:02.0: rm_init_adapter failed, device minor number 1
"""
LOADED = """\
[   38.174242] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.195.03  Release Build  \
(dvs-builder@U22-I3-H04-03-1)  Sat Sep 20 00:47:16 UTC 2025
"""


@check(
    "device/driver-does-not-attach",
    severity="error",
    about="device",
    needs=(),
    uses=(HardwareEvent, Accelerator, Text),
    words={
        "en": {
            "title": "The driver could not start a device",
            "summary": "{device}: {says} ({count}x in the kernel log)",
            "cause": "The device does not answer the driver as it starts: it hangs since an earlier fault, its "
            "firmware does not start, or the driver or the machine's settings do not fit it.",
        },
        "zh": {
            "title": "驱动无法启动设备",
            "summary": "{device}：{says}（内核日志中出现 {count} 次）",
            "cause": "设备在驱动启动时没有应答：因先前故障处于挂起状态、其固件无法启动，或驱动、机器设置与该设备不匹"
            "配。",
        },
    },
    remedies=(
        Remedy(
            key="power-cycle",
            title={
                "en": "Power the machine off and on (a warm reboot leaves the device in its state)",
                "zh": "将机器断电后再开机（热重启会保留设备的状态）",
            },
            commands=("sudo poweroff",),
            safety="disruptive",
            verify="sudo dmesg | grep -iE 'nvrm|amdgpu'",
            source=THREAD,
        ),
        Remedy(
            key="nvidia-settings",
            title={
                "en": "If it fails from every boot on: use the open kernel modules (Blackwell needs them), a driver "
                "that knows this GPU, and enable Above 4G Decoding and Resizable BAR in the BIOS",
                "zh": "若每次启动都失败：使用开源内核模块（Blackwell 必须）与支持该 GPU 的驱动，"
                "并在 BIOS 中启用 Above 4G Decoding 和 Resizable BAR",
            },
            commands=("modinfo nvidia | grep -E '^(version|license)'",),
            safety="manual",
            verify="nvidia-smi",
            source=THREAD,
        ),
        Remedy(
            key="hardware",
            title={
                "en": "If it stays with the card in another slot or machine: have the card replaced",
                "zh": "若更换插槽或机器后问题仍随该卡：更换该卡",
            },
            safety="manual",
            verify="sudo dmesg | grep -iE 'nvrm|amdgpu'",
        ),
    ),
    sources=(THREAD, "https://github.com/NVIDIA/NVSentinel/issues/155"),
    explains=("nvidia/driver-silent", "nvidia/no-device-came-up", "torch/device-unavailable"),
    fires=(RTX_5080, TWO),
    silent=(LOADED,),
)
def driver_does_not_attach(facts: Facts) -> Iterator[Answer]:
    """Gather the failures, device by device."""
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "driver-init" and NO_DEVICE not in event.message:
            told.setdefault((event.vendor, event.address), []).append(event)
    told = {key: events for key, events in told.items() if key[1] or not any(one[1] for one in told)}
    for (vendor, address), events in told.items():
        if _started(facts, vendor, address):
            continue
        device = device_name(facts, address=address, vendor=vendor)
        yield Finding(
            values={"device": device or vendor, "says": events[-1].message, "count": len(events)},
            subject=device,
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
            remedies=() if vendor == "nvidia" else ("power-cycle", "hardware"),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _started(facts: Facts, vendor: str, address: str) -> bool:
    """Whether the vendor's tool lists the device, which it cannot of one that the driver did not start."""
    tool = (one for one in facts.all(Accelerator) if one.seen_by == "tool" and one.vendor == vendor and one.name)
    return bool(address) and any(one.address == address for one in tool)
