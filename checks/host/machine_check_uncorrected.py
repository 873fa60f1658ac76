"""A processor reported an error that it could not correct.

## What it finds
Machine checks in the kernel's log whose status word has the bit for an uncorrected error set.

## Why it matters
The processor, its caches, its memory or a bus of its lost something; the machine stops, or starts again by itself.

## What it cannot know
Which part: that is decoded by `rasdaemon` or the maker. Those of the first seconds after a start were left from before
it, and some processors leave one at each start that means nothing: they have less confidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, expression

STATUS = expression(r"CPU ([0-9]{1,5}): Machine Check: \S{1,20} Bank ([0-9]{1,3}): (?:0x)?([0-9a-f]{16})\b")
VALID, UNCORRECTED = 1 << 63, 1 << 61
START = 10.0
"""Seconds after a start."""

INTEL_BANK_4 = """\
Sep 16 19:51:15 kernel: [    0.043437] mce: CPU supports 7 MCE banks
Sep 16 19:51:15 kernel: [    0.064261] mce: [Hardware Error]: Machine check events logged
Sep 16 19:51:15 kernel: [    0.064265] mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 4: a600000000020408
Sep 16 19:51:15 kernel: [    0.064270] mce: [Hardware Error]: TSC 0 ADDR fef4c9e0
"""
AMD_BANK_17_CORRECTED = """\
[    0.644337] mce: [Hardware Error]: Machine check events logged
[    0.644338] mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 17: dc2040000000011b
[    0.644342] mce: [Hardware Error]: TSC 0 ADDR a8eb3fc80 MISC d01202dd01000000 SYND 88e00040a800200 IPID 9600050f00
"""


@check(
    "host/machine-check-uncorrected",
    severity="warning",
    about="host",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "A processor reported an error it could not correct",
            "summary": "CPU {cpu}, bank {bank}: status {status}, an uncorrected error{at.en}",
            "cause": "The processor, the memory or a bus failed, or firmware left a report behind.",
        },
        "zh": {
            "title": "处理器报告了不可纠正的错误",
            "summary": "CPU {cpu}，bank {bank}：状态 {status}，为不可纠正错误{at.zh}",
            "cause": "处理器、内存或总线出现故障，或固件遗留了报告。",
        },
    },
    remedies=(
        Remedy(
            key="decode",
            title={
                "en": "Have it decoded, and look whether it comes again; then ask the maker of the machine",
                "zh": "对其解码并观察是否再次出现，然后联系机器厂商",
            },
            commands=("sudo ras-mc-ctl --errors", "sudo ipmitool sel elist | tail"),
            safety="safe",
            verify="sudo dmesg | grep -i 'machine check'",
        ),
    ),
    sources=("https://github.com/torvalds/linux/blob/master/arch/x86/include/asm/mce.h",),
    fires=(INTEL_BANK_4,),
    silent=(AMD_BANK_17_CORRECTED,),
)
def machine_check_uncorrected(facts: Facts) -> Iterator[Answer]:
    """Decode the status word; one finding for each bank of each processor."""
    told: set[tuple[str, str]] = set()
    for event in facts.all(HardwareEvent):
        found = STATUS.search(event.message) if event.kind == "mce" else None
        if found and int(found[3], 16) & VALID and int(found[3], 16) & UNCORRECTED and (found[1], found[2]) not in told:
            told.add((found[1], found[2]))
            yield Finding(
                values={"cpu": found[1], "bank": found[2], "status": found[3], **_at(event)},
                subject=f"CPU {found[1]} bank {found[2]}",
                confidence="low" if _at_start(event) else "medium",
                evidence=(Evidence.of(event),),
            )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _at_start(event: HardwareEvent) -> bool:
    """Whether the line bears a time since the start that is short; a date tells nothing of that."""
    stamp = expression(r"\[\s*([0-9]{1,9}\.[0-9]{6})\]").search(event.origin.quote)
    return bool(stamp and float(stamp[1]) < START)


def _at(event: HardwareEvent) -> dict[str, str]:
    """When it was, in words; empty where the line does not tell."""
    return {"at.en": event.at and f", at {event.at}", "at.zh": event.at and f"，时间 {event.at}"}
