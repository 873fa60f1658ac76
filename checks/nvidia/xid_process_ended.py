"""The kernel logged an Xid by which a GPU ended a process, and went on.

## What it finds
Xid events for which NVIDIA's catalogue asks only to start the program again, and does not blame it: contained memory
errors (94), copy and video engines, the command stream (32).

## Why it matters
The engine that used the GPU is gone. A contained memory error means that its memory failed: the row is replaced at the
next reset, and errors that come again and again announce a dying card.

## What it cannot know
Whether program, driver or hardware was at fault, where the catalogue leaves it open.
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

CONTAINED = """\
[Fri Aug  9 13:32:56 2024] NVRM: GPU at PCI:0000:00:08: GPU-00000000-0000-0000-0000-000000000000
[Fri Aug  9 13:32:56 2024] NVRM: Xid (PCI:0000:00:08): 94, pid='<unknown>', name=<unknown>, Contained: SM (0x1). \
RST: No, D-RST: No
"""
CONTAINED_BARE = "NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error\n"
PROGRAM = """\
[Wed Jul 31 23:14:18 2024] NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008
"""


@check(
    "nvidia/xid-process-ended",
    severity="warning",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "A GPU ended a process after an error of its own",
            "summary": "{device}: Xid {code} ({name}), reported {count}x{process.en}",
            "cause": "The error was contained to the process that met it; others on this GPU go on. NVIDIA's "
            "catalogue blames: {blames.en}.",
        },
        "zh": {
            "title": "GPU 因自身错误终止了进程",
            "summary": "{device}：报告了 {count} 次 Xid {code}（{name}）{process.zh}",
            "cause": "错误被限制在遇到它的进程内，该 GPU 上的其他进程可继续运行。"
            "NVIDIA 目录给出的责任方：{blames.zh}。",
        },
    },
    remedies=(
        Remedy(
            key="restart",
            title={
                "en": "Start the engine again; reset the GPU when nothing runs on it",
                "zh": "重新启动推理引擎；在 GPU 空闲时将其复位",
            },
            commands=("sudo nvidia-smi --gpu-reset -i {address}",),
            safety="disruptive",
            verify="nvidia-smi -q -i {address} -d ECC,ROW_REMAPPER",
            source=CATALOGUE,
        ),
        Remedy(
            key="diagnose",
            title={
                "en": "If it comes back on this GPU: diagnose it on the idle machine and ask your vendor",
                "zh": "若在该 GPU 上再次出现：在空闲机器上诊断并联系厂商",
            },
            commands=("dcgmi diag -r 3",),
            safety="disruptive",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(CATALOGUE, "https://github.com/akash-network/support/issues/244"),
    explains=("nvidia/recovery-action-pending",),
    fires=(CONTAINED, CONTAINED_BARE),
    silent=(PROGRAM,),
)
def xid_process_ended(facts: Facts) -> Iterator[Answer]:
    """Look up each code in the vendor's catalogue."""
    rows = {one.code: one for one in facts.all(EventCode) if one.kind == "xid" and _ends_process(one)}
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and event.code in rows:
            told.setdefault((event.address, event.code), []).append(event)
    for (address, code), events in told.items():
        yield _finding(facts, address, rows[code], events)
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _ends_process(row: EventCode) -> bool:
    return row.action == "restart-application" and row.blames != "application"


def _finding(facts: Facts, address: str, row: EventCode, events: list[HardwareEvent]) -> Finding:
    device = device_name(facts, address=address, vendor="nvidia")
    processes = ", ".join([*dict.fromkeys(one.process for one in events if one.process)][:3])
    values: dict[str, str | int | float] = {
        "code": row.code,
        "name": row.name,
        "count": len(events),
        "blames.en": BLAMED_EN.get(row.blames, row.blames),
        "blames.zh": BLAMED_ZH.get(row.blames, row.blames),
        "process.en": processes and f"; process {processes}",
        "process.zh": processes and f"，进程 {processes}",
    }
    return Finding(
        values={"device": device or "GPU", "address": address or "ID", **values},
        subject=device,
        evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
    )
