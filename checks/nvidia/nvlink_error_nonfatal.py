"""The kernel logged an error of an NVLink that its own line calls not fatal.

## What it finds
Xid 144 to 150 whose line does not say `Fatal`: one finding for each device and code, with how often.

## Why it matters
Some of them end the process that used the link; collectives then hang on the other ranks. NVIDIA's catalogue asks to
look for an Xid 154 beside them and else to start the program again.

## What it cannot know
What the registers in the line say: they are not decoded.
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
    device_name,
)

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
SAYS_SO = {*map(str, range(144, 151))}
"""Codes whose line tells whether the error is fatal."""

B200 = "NVRM: Xid (PCI:0000:5f:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 02\n"
GB200 = """\
NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x00000000 \
0x00100000 0x00000004)
"""
FATAL = """\
kernel: NVRM: Xid (PCI:0000:00:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6 0x00000000 0x00000000 \
0x00000000 0x00000000 0x00000000)
"""


@check(
    "nvidia/nvlink-error-nonfatal",
    severity="warning",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "An NVLink of a GPU reported an error that is not fatal",
            "summary": "{device}: Xid {code} ({name}), reported {count}x",
            "cause": "A transfer over the link failed; the process that made it may have been ended for it.",
        },
        "zh": {
            "title": "GPU 的 NVLink 报告了非致命错误",
            "summary": "{device}：报告了 {count} 次 Xid {code}（{name}）",
            "cause": "链路上的一次传输失败，发起传输的进程可能因此被终止。",
        },
    },
    remedies=(
        Remedy(
            key="restart",
            title={
                "en": "Start the engine again; if collectives hang still, reset the GPUs or reboot the machine",
                "zh": "重新启动推理引擎；若集合通信仍然挂起，复位 GPU 或重启机器",
            },
            commands=("sudo nvidia-smi --gpu-reset",),
            safety="disruptive",
            verify="nvidia-smi nvlink --status",
            source=CATALOGUE,
        ),
        Remedy(
            key="look",
            title={
                "en": "Read what the kernel said at the same time, an Xid 154 above all",
                "zh": "查看内核同一时刻的其他记录，尤其是 Xid 154",
            },
            commands=("sudo dmesg | grep -i xid",),
            safety="safe",
            verify="nvidia-smi nvlink --errorcounters",
            source=CATALOGUE,
        ),
    ),
    sources=(
        CATALOGUE,
        "https://github.com/leptonai/gpud/pull/1174",
        "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1355",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(B200, GB200),
    silent=(FATAL,),
)
def nvlink_error_nonfatal(facts: Facts) -> Iterator[Answer]:
    """Take the line's word."""
    rows = {one.code: one for one in facts.all(EventCode) if one.kind == "xid"}
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and event.code in SAYS_SO and " Nonfatal " in event.message:
            told.setdefault((event.address, event.code), []).append(event)
    for (address, code), events in told.items():
        device = device_name(facts, address=address, vendor="nvidia")
        name = rows[code].name if code in rows else "NVLink"
        yield Finding(
            values={"device": device or "GPU", "code": code, "name": name, "count": len(events)},
            subject=device,
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
