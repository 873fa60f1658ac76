"""The kernel logged an Xid that diag's table of codes does not have.

## What it finds
Xid events whose code stands in no row of the reference: codes newer than the table, those that NVIDIA's catalogue calls
unused, and those for which it names no action.

## Why it matters
An event that is left out of all other checks must not pass for none.

## What it cannot know
What it means.
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

OLD = "Nov 18 17:26:39 host kernel: NVRM: Xid (0000:00:05): 9, Channel 00000000 Instance 000091d8 status 0000001d\n"
KNOWN = "Dec 23 23:32:23 rescue kernel: [  266.469093] NVRM: Xid (PCI:0000:01:00): 69, Illegal Class Error: ChID 0007, \
Class 00000000, Offset 00001220, Data 3054a400\n"


@check(
    "nvidia/xid-unknown",
    severity="info",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "A GPU reported an event whose code is not in the table",
            "summary": "{device}: Xid {code} (reported {count}x)",
            "cause": "The code is newer than the table, or NVIDIA's catalogue has no use or no action for it.",
        },
        "zh": {
            "title": "GPU 报告了表中没有的事件代码",
            "summary": "{device}：报告了 {count} 次 Xid {code}",
            "cause": "该代码晚于本表，或 NVIDIA 目录未说明其用途或处理措施。",
        },
    },
    remedies=(
        Remedy(
            key="look-up",
            title={
                "en": "Look the code up in NVIDIA's catalogue and ask your vendor if it comes again",
                "zh": "在 NVIDIA 目录中查询该代码；若再次出现请联系厂商",
            },
            commands=("sudo dmesg | grep -i xid",),
            safety="safe",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(CATALOGUE, "https://pastebin.com/xkjT7KVW"),
    fires=(OLD,),
    silent=(KNOWN,),
)
def xid_unknown(facts: Facts) -> Iterator[Answer]:
    """Look for codes without a row."""
    known = {one.code for one in facts.all(EventCode) if one.kind == "xid"}
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and event.code not in known:
            told.setdefault((event.address, event.code), []).append(event)
    for (address, code), events in told.items():
        device = device_name(facts, address=address, vendor="nvidia")
        yield Finding(
            values={"device": device or "GPU", "code": code, "count": len(events)},
            subject=device,
            evidence=(Evidence.of(events[0]),),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
