"""The processors of the host were too hot and lowered their clock.

## What it finds
Lines of the kernel's log that say so, of cores or of a whole package.

## Why it matters
The engine's scheduler and tokenizers become slow under load, and the devices wait for them. In a server it means that
the cooling does not suffice.

## What it cannot know
Whether it is still so, and how much was lost: the kernel logs it at most every few minutes. In notebooks it is common.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, expression

CPU = expression(r"CPU([0-9]{1,5}): ")
TOTAL = expression(r"\(total events = ([0-9]{1,12})\)")

CORES = """\
[76747.169397] mce: CPU2: Core temperature above threshold, cpu clock throttled (total events = 2675)
[76747.169398] mce: CPU6: Core temperature above threshold, cpu clock throttled (total events = 2675)
[76747.169399] mce: CPU6: Package temperature above threshold, cpu clock throttled (total events = 3654)
[76747.348387] mce: CPU6: Core temperature/speed normal
"""
NORMAL = """\
[76747.348387] mce: CPU6: Core temperature/speed normal
[76747.348388] mce: CPU2: Core temperature/speed normal
[76747.348389] mce: CPU6: Package temperature/speed normal
"""


@check(
    "host/cpu-throttled",
    severity="warning",
    about="host",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The host's processors were too hot and slowed down",
            "summary": "clock lowered for heat on {cpus} CPU(s), {total}x by the kernel's count{at.en}",
            "cause": "Cooling does not keep up: fans, dust, the temperature of the room, or a power profile.",
        },
        "zh": {
            "title": "主机处理器过热降频",
            "summary": "{cpus} 个 CPU 因过热降频，内核累计 {total} 次{at.zh}",
            "cause": "散热不足：风扇、积尘、机房温度或电源策略。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={"en": "Look at temperatures and fans under load", "zh": "在负载下查看温度与风扇"},
            commands=("sudo ipmitool sdr type Temperature", "sudo ipmitool sdr type Fan"),
            safety="safe",
            verify="sudo dmesg | grep 'clock throttled' | tail",
            source="https://github.com/konkor/cpufreq/issues/50",
        ),
    ),
    sources=("https://github.com/erpalma/throttled/issues/239", "https://github.com/konkor/cpufreq/issues/50"),
    explains=(
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/ranks-uneven",
        "collectives/noisy",
    ),
    fires=(CORES,),
    silent=(NORMAL,),
)
def cpu_throttled(facts: Facts) -> Iterator[Answer]:
    """One finding for all processors."""
    events = [one for one in facts.all(HardwareEvent) if one.kind == "cpu-throttled"]
    if events:
        cpus = {found[1] for one in events if (found := CPU.search(one.message))}
        totals = [int(found[1]) for one in events if (found := TOTAL.search(one.message))]
        yield Finding(
            values={
                "cpus": len(cpus),
                "total": max(totals, default=len(events)),
                "at.en": events[-1].at and f", last at {events[-1].at}",
                "at.zh": events[-1].at and f"，最近一次在 {events[-1].at}",
            },
            confidence="medium",
            evidence=tuple(map(Evidence.of, events[-3:])),
        )
    elif not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
