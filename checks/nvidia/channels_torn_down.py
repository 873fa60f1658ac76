"""The driver removed what a process had running on a GPU.

## What it finds
Xid 45 in the kernel's log: one finding for each device, with the processes, and the earlier Xid that the line names.

## Why it matters
The process was ended: by an error of the GPU or its links that stands before it in the log, by the kernel for want of
memory, or by somebody. An engine that died without a word in its own log is explained by it.

## What it cannot know
Which of these it was, where the line names no earlier Xid. Ending an engine by hand leaves the same line.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
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
    expression,
)

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
EARLIER = expression(r"caused by previous (Xid [0-9]{1,4})")

AFTER_149 = """\
kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149
kernel: NVRM: Xid (PCI:0000:ed:00): 45, pid=1818992, name=python3, Ch 0000000c caused by previous Xid 145
"""
ALONE = """\
[Sat Oct 12 18:35:32 2024] NVRM: Xid (PCI:0000:61:00): 45, pid=1496200, name=distprovers-gpu, Ch 0000000a
[Sat Oct 12 18:35:32 2024] NVRM: Xid (PCI:0000:61:00): 45, pid=1496200, name=distprovers-gpu, Ch 0000000b
"""
PROGRAM = """\
[Wed Jul 31 23:14:18 2024] NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008
"""


@check(
    "nvidia/channels-torn-down",
    severity="info",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The driver removed a process's work from a GPU",
            "summary": "{device}: Xid 45 (reported {count}x){process.en}{earlier.en}",
            "cause": "The process was ended while it used the GPU: an earlier error, the kernel for want of memory, "
            "a supervisor, or a person.",
        },
        "zh": {
            "title": "驱动清除了某进程在 GPU 上的任务",
            "summary": "{device}：Xid 45（报告了 {count} 次）{process.zh}{earlier.zh}",
            "cause": "进程在使用 GPU 时被终止：先前的错误、内核因内存不足、守护程序，或人为操作。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "Read what stands before it in the log: other Xids, the OOM killer",
                "zh": "查看日志中它之前的记录：其他 Xid、OOM killer",
            },
            commands=("sudo dmesg -T | grep -iE 'xid|oom|killed process'",),
            safety="safe",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(CATALOGUE, "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1150"),
    fires=(AFTER_149, ALONE),
    silent=(PROGRAM,),
)
def channels_torn_down(facts: Facts) -> Iterator[Answer]:
    """Gather the events, device by device."""
    told: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if (event.kind, event.code) == ("xid", "45"):
            told.setdefault(event.address, []).append(event)
    for address, events in told.items():
        device = device_name(facts, address=address, vendor="nvidia")
        processes = ", ".join([*dict.fromkeys(one.process for one in events if one.process)][:3])
        earlier = ", ".join(dict.fromkeys(word for one in events for word in EARLIER.findall(one.message)))
        values = {
            "process.en": processes and f"; process {processes}",
            "process.zh": processes and f"，进程 {processes}",
            "earlier.en": earlier and f"; the line names {earlier} before it",
            "earlier.zh": earlier and f"；行中指明先前错误为 {earlier}",
        }
        yield Finding(
            values={"device": device or "GPU", "count": len(events), **values},
            subject=device,
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
