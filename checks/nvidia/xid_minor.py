"""The kernel logged an Xid that asks for nothing at once.

## What it finds
Xid events for which NVIDIA's catalogue names no immediate action and blames no program: a high rate of corrected memory
errors (92), corrected errors of the link to the processor (121), violations by the driver (66, 67), and the like.

## Why it matters
Nothing fails today; many of one kind are worth a word to the vendor, who wants to know of those that persist.

## What it cannot know
Whether their number grows.
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
BLAMED_EN = {"either": "hardware, driver or application"}
BLAMED_ZH = {
    "hardware": "硬件",
    "driver": "驱动",
    "application": "应用程序",
    "user": "用户",
    "either": "硬件、驱动或应用程序",
}
OWN = {"63", "154"}
"""Codes that other checks read."""

FIRMWARE = "Feb 01 14:25:31 host kernel: NVRM: Xid (PCI:0000:01:00): 38, pid=1659,\n"
PROGRAM = """\
[Wed Jul 31 23:14:18 2024] NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008
"""


@check(
    "nvidia/xid-minor",
    severity="info",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "A GPU reported events that need no action at once",
            "summary": "{device}: Xid {code} ({name}), reported {count}x",
            "cause": "NVIDIA's catalogue names no immediate action for this code; it blames: {blames.en}.",
        },
        "zh": {
            "title": "GPU 报告了无需立即处理的事件",
            "summary": "{device}：报告了 {count} 次 Xid {code}（{name}）",
            "cause": "NVIDIA 目录未给出该代码的立即处理措施；其给出的责任方：{blames.zh}。",
        },
    },
    remedies=(
        Remedy(
            key="watch",
            title={
                "en": "Watch whether it comes again, and tell your vendor if it does",
                "zh": "观察是否再次出现；若再次出现请联系厂商",
            },
            commands=("sudo dmesg --follow | grep -i xid",),
            safety="safe",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(CATALOGUE,),
    fires=(FIRMWARE,),
    silent=(PROGRAM,),
)
def xid_minor(facts: Facts) -> Iterator[Answer]:
    """Look up each code in the vendor's catalogue."""
    rows = {one.code: one for one in facts.all(EventCode) if one.kind == "xid" and _minor(one)}
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and event.code in rows:
            told.setdefault((event.address, event.code), []).append(event)
    for (address, code), events in told.items():
        device = device_name(facts, address=address, vendor="nvidia")
        values: dict[str, str | int | float] = {
            "code": code,
            "name": rows[code].name,
            "count": len(events),
            "blames.en": BLAMED_EN.get(rows[code].blames, rows[code].blames),
            "blames.zh": BLAMED_ZH.get(rows[code].blames, rows[code].blames),
        }
        shown = events[:1] if len(events) == 1 else [events[0], events[-1]]
        yield Finding(
            values={"device": device or "GPU", **values}, subject=device, evidence=tuple(map(Evidence.of, shown))
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _minor(row: EventCode) -> bool:
    """Not what ends a process or a device, nor what a user or a test did."""
    quiet = row.action in ("none", "service") and not row.fatal
    return quiet and row.blames not in ("application", "user") and row.code not in OWN
