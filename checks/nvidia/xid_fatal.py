"""The kernel logged an Xid after which a GPU cannot be used until it is reset.

## What it finds
Xid events for which NVIDIA's catalogue names a reset, a restart or service as the immediate action: one finding for
each device and code, with how often. Those of NVLink, of the GSP, of memory that could not be repaired, of a device
that is lost, and the announcement 154 have checks of their own. A context switch that timed out (109) within a minute
after a program made that device fault, or after its GSP fell silent, follows from that and is not told.

## Why it matters
Jobs on that device fail or hang until the action was taken; one that comes back after it points at the hardware.

## What it cannot know
Whether the device was reset since: the log does not forget. Whether hardware, driver or program was at fault, where the
catalogue leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

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
BLAMED_EN = {"either": "hardware, driver or application"}
BLAMED_ZH = {
    "hardware": "硬件",
    "driver": "驱动",
    "application": "应用程序",
    "user": "用户",
    "either": "硬件、驱动或应用程序",
}
REBOOT = "(Node Reboot Required)"
OWN = {"64", "74", "79", "119", "120", *map(str, range(144, 151))}
"""Codes that have a check of their own."""
GSP = ("119", "120")
CONTEXT_SWITCH = "109"
FOLLOWS = 60.0
"""Seconds within which a context switch that times out follows from the fault before it."""
STAMPS = (
    ("{:.19}", "%Y-%m-%dT%H:%M:%S"),
    ("{}", "%a %b %d %H:%M:%S %Y"),
    ("{} 2000", "%b %d %H:%M:%S %Y"),
)
"""How much of a stamp is read, and its form; a year that is not told is any."""

SWITCH = """\
[Fri Aug 30 11:43:14 2024] NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, \
errorString CTX SWITCH TIMEOUT, Info 0x58005
"""
DOUBLE_BIT = """\
NVRM: Xid (PCI:0000:07:00): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error (DBE) has been \
detected on GPU in the framebuffer at physAddr 0x7fdf0de80 partition 5, subpartition 1
"""
PROGRAM = """\
[93297.027938] NVRM: Xid (PCI:0000:43:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR \
0x52e7b0=0x101000e 0x52e7b4=0x4 0x52e7a8=0xc81eb60 0x52e7ac=0x1174
"""
AFTER_PROGRAM = """\
[Fri Aug 30 11:43:09 2024] NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp \
Exception on (GPC 7, TPC 7, SM 0): Illegal Instruction Parameter
[Fri Aug 30 11:43:14 2024] NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, \
errorString CTX SWITCH TIMEOUT, Info 0x58005
"""
QUIET = """\
[   38.174242] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.195.03  Release Build  \
(dvs-builder@U22-I3-H04-03-1)  Sat Sep 20 00:47:16 UTC 2025
"""


@check(
    "nvidia/xid-fatal",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "A GPU reported a fault after which it must be reset",
            "summary": "{device}: Xid {code} ({name}), reported {count}x",
            "cause": "The driver logs this Xid when the GPU met a fault that it does not recover from by itself. "
            "NVIDIA's catalogue blames: {blames.en}. If it comes back after the reset, suspect the hardware.",
        },
        "zh": {
            "title": "GPU 报告了必须复位才能恢复的故障",
            "summary": "{device}：报告了 {count} 次 Xid {code}（{name}）",
            "cause": "GPU 遇到无法自行恢复的故障时，驱动会记录该 Xid。NVIDIA 目录给出的责任方：{blames.zh}。"
            "若复位后再次出现，应怀疑硬件。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={
                "en": "Stop everything that uses the GPU and reset it; where that is refused, reboot the machine",
                "zh": "停止所有使用该 GPU 的进程并复位；若被拒绝则重启机器",
            },
            commands=("sudo nvidia-smi --gpu-reset -i {address}",),
            safety="disruptive",
            verify="nvidia-smi -q -i {address} | grep -A 3 -i 'recovery action'; sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
        Remedy(
            key="reboot",
            title={"en": "Restart the machine (or the virtual machine)", "zh": "重启机器（或虚拟机）"},
            commands=("sudo reboot",),
            safety="disruptive",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
        Remedy(
            key="service",
            title={
                "en": "Check that the GPU is seated and its power cables are connected; then ask your vendor",
                "zh": "检查 GPU 是否插牢、供电线是否接好；随后联系厂商",
            },
            safety="manual",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
        Remedy(
            key="diagnose",
            title={
                "en": "If it comes back: run NVIDIA's diagnosis on the idle machine and give its result to your vendor",
                "zh": "若再次出现：在空闲机器上运行 NVIDIA 诊断，并将结果提供给厂商",
            },
            commands=("dcgmi diag -r 3",),
            safety="disruptive",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(
        CATALOGUE,
        "https://github.com/leptonai/gpud/pull/46",
        "https://github.com/NVIDIA/gpu-operator/issues/1146",
    ),
    explains=(
        "nvidia/recovery-action-pending",
        "collectives/rank-silent",
        "collectives/rank-died",
        "collectives/call-failed",
    ),
    fires=(SWITCH, DOUBLE_BIT),
    silent=(PROGRAM, AFTER_PROGRAM, QUIET),
)
def xid_fatal(facts: Facts) -> Iterator[Answer]:
    """Look up each code in the vendor's catalogue."""
    rows = {one.code: one for one in facts.all(EventCode) if one.kind == "xid" and one.fatal}
    rebooting = _rebooting(facts)
    told: dict[tuple[str, bool], list[HardwareEvent]] = {}
    for event in _causes(facts):
        if event.kind == "xid" and event.code in rows and event.code not in OWN:
            told.setdefault((event.code, event.address in rebooting), []).append(event)
    for (code, reboot), events in told.items():
        yield _finding(facts, rows[code], events, "reboot" if reboot else rows[code].action)
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _causes(facts: Facts) -> Iterator[HardwareEvent]:
    """The events, without the context switches that timed out for a fault before them."""
    programs = {one.code for one in facts.all(EventCode) if one.kind == "xid" and one.blames == "application"}
    moments: dict[str, float | None] = {}
    for event in sorted(facts.all(HardwareEvent), key=lambda one: (one.origin.capture, one.origin.line)):
        switch = (event.kind, event.code) == ("xid", CONTEXT_SWITCH)
        follows = switch and _follows(moments, event)
        if follows or event.kind == "gsp-timeout" or (event.kind == "xid" and event.code in (*programs, *GSP)):
            moments[event.address] = _moment(event.at)
        if not follows:
            yield event


def _follows(moments: dict[str, float | None], event: HardwareEvent) -> bool:
    """Whether a fault stands shortly before it, on its device or on one that was not named."""
    now = _moment(event.at)
    before = [moments[place] for place in (event.address, "") if place in moments]
    return any(then is None or now is None or 0 <= now - then <= FOLLOWS for then in before)


def _moment(at: str) -> float | None:
    """A stamp in seconds; two of one log are of one form."""
    with suppress(ValueError):
        return float(at)
    for read, form in STAMPS:
        with suppress(ValueError):
            return datetime.strptime(read.format(at), form).timestamp()
    return None


def _rebooting(facts: Facts) -> set[str]:
    """The devices for which the driver asked last for a reboot: a reset is then not enough."""
    asked = {one.address: one.message for one in facts.all(HardwareEvent) if (one.kind, one.code) == ("xid", "154")}
    return {address for address, message in asked.items() if message.endswith(REBOOT)}


def _finding(facts: Facts, row: EventCode, events: list[HardwareEvent], action: str) -> Finding:
    addresses = [*dict.fromkeys(one.address for one in events)]
    devices = device_names(facts, addresses, "nvidia")
    values: dict[str, str | int | float] = {
        "device": devices or "GPU",
        "address": ",".join(filter(None, addresses)) or "ID",
        "code": row.code,
        "name": row.name,
        "count": len(events),
        "blames.en": BLAMED_EN.get(row.blames, row.blames),
        "blames.zh": BLAMED_ZH.get(row.blames, row.blames),
    }
    return Finding(values=values, subject=devices, evidence=Evidence.of_events(events), remedies=(action, "diagnose"))
