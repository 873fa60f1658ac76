"""The kernel logged a fatal error of an NVLink.

## What it finds
Xid 74, and Xid 144 to 150 whose line says `Fatal`: one finding for each code, with its devices and how often.

## Why it matters
Collectives over that link fail or hang, and the device must be reset before it can be used again.

## What it cannot know
At which end the fault is: a device that fails takes the link of its peer down, which reports it as well. What the
registers in the line say is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    EventCode,
    Evidence,
    Facts,
    Finding,
    HardwareEvent,
    Remedy,
    Text,
    Undecided,
    check,
    device_names,
)

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
SAYS_SO = {*map(str, range(144, 151))}
"""Codes whose line tells whether the error is fatal."""

HOPPER = (
    "kernel: NVRM: Xid (PCI:0000:c1:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 1\n"
)
BLACKWELL = """\
NVRM: Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000 0x00000000 \
0x00000000 0x00000000)
"""
NOT_FATAL = """\
kernel: NVRM: Xid (PCI:0000:01:00): 144, SAW_MVB Nonfatal XC0 i0 Link 0 (0x00000001 0x00000008 0x00000000 0x00000000 \
0x00000000 0x00000000)
"""


@check(
    "nvidia/nvlink-error",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "An NVLink of a GPU failed",
            "summary": "{device}: Xid {code} ({name}), reported {count}x",
            "cause": "The link itself, its signal, or the device at its other end (a GPU or an NVSwitch) failed. A "
            "peer that was reset or lost takes the link down, too.",
        },
        "zh": {
            "title": "GPU 的 NVLink 发生故障",
            "summary": "{device}：报告了 {count} 次 Xid {code}（{name}）",
            "cause": "链路本身、其信号，或对端设备（GPU 或 NVSwitch）发生故障。对端被复位或掉线也会使链路断开。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={
                "en": "Stop everything that uses the GPUs and reset them; where that is refused, reboot the machine",
                "zh": "停止所有使用 GPU 的进程并复位 GPU；若被拒绝则重启机器",
            },
            commands=("sudo nvidia-smi --gpu-reset",),
            safety="disruptive",
            verify="nvidia-smi nvlink --status",
            source=CATALOGUE,
        ),
        Remedy(
            key="other-end",
            title={
                "en": "See which links are down and what the peers and the switches reported at the same time",
                "zh": "查看哪些链路断开，以及同一时刻对端与交换机报告了什么",
            },
            commands=("nvidia-smi nvlink --status", "sudo dmesg | grep -iE 'xid|nvswitch'"),
            safety="safe",
            verify="nvidia-smi nvlink --errorcounters",
            source=CATALOGUE,
        ),
    ),
    sources=(CATALOGUE, "https://github.com/leptonai/gpud/pull/1160", "https://github.com/leptonai/gpud/pull/1174"),
    explains=(
        "nvidia/recovery-action-pending",
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/rank-silent",
    ),
    fires=(HOPPER, BLACKWELL),
    silent=(NOT_FATAL,),
)
def nvlink_error(facts: Facts) -> Iterator[Answer]:
    """Take the code's word, or the line's."""
    rows = {one.code: one for one in facts.all(EventCode) if one.kind == "xid"}
    told: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and (event.code == "74" or (event.code in SAYS_SO and " Fatal " in event.message)):
            told.setdefault(event.code, []).append(event)
    for code, events in told.items():
        devices = device_names(facts, (one.address for one in events), "nvidia")
        name = rows[code].name if code in rows else "NVLink"
        yield Finding(
            values={"device": devices or "GPU", "code": code, "name": name, "count": len(events)},
            subject=devices,
            confidence="medium" if code == "74" else "high",
            evidence=Evidence.of_events(events),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
