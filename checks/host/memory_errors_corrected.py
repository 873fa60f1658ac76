"""The host's memory had errors that were corrected.

## What it finds
Lines of the kernel's memory controllers (EDAC) that count corrected errors (`CE`), one finding for each module of
memory they name.

## Why it matters
Nothing was lost. A module that has many of them is likelier to have one that cannot be corrected.

## What it cannot know
How many a maker accepts: ask the maker of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, expression

COUNTED = expression(r"EDAC (MC[0-9]{1,3}): ([0-9]{1,9}) CE .{0,80}? on (\S{1,80})")
UNNAMED = ("unknown", "any")

CE_262 = """\
[Mon Oct  3 13:52:42 2022] EDAC sbridge MC1: HANDLING MCE MEMORY ERROR
[Mon Oct  3 13:52:42 2022] EDAC sbridge MC1: CPU 0: Machine Check Event: 0 Bank 7: cc00418000010091
[Mon Oct  3 13:52:42 2022] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 \
page:0x2031c14 offset:0x940 grain:32 syndrome:0x0 -  OVERFLOW area:DRAM err_code:0001:0091 socket:0 ha:0 \
channel_mask:2 rank:1)
"""
UE_UNKNOWN = """\
[   10.029515] EDAC MC0: 1 UE unknown on unknown memory ( page:0x116c60 offset:0x0 grain:1 - APEI location: )
[   10.033647] [Firmware Warn]: GHES: Invalid address in generic error data: 0x116c60000
"""


@check(
    "host/memory-errors-corrected",
    severity="info",
    about="host",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The host's memory had errors that were corrected",
            "summary": "{module}: corrected memory errors: {count}{at.en}",
            "cause": "Single bits flip now and then; many on one module say that it wears out.",
        },
        "zh": {
            "title": "主机内存出现已纠正的错误",
            "summary": "{module}：{count} 个已纠正内存错误{at.zh}",
            "cause": "偶发的单比特翻转属正常；若集中在同一内存条，则表明其正在老化。",
        },
    },
    remedies=(
        Remedy(
            key="watch",
            title={
                "en": "Watch the counters; where they grow, have the module replaced",
                "zh": "观察计数；若持续增长，更换该内存条",
            },
            commands=("sudo edac-util -v",),
            safety="safe",
            verify="sudo edac-util --report=ce",
            source="https://manpages.ubuntu.com/manpages/noble/man1/edac-util.1.html",
        ),
    ),
    sources=("https://manpages.ubuntu.com/manpages/noble/man1/edac-util.1.html",),
    fires=(CE_262,),
    silent=(UE_UNKNOWN,),
)
def memory_errors_corrected(facts: Facts) -> Iterator[Answer]:
    """Sum up the errors of each module."""
    modules: dict[str, list[tuple[int, HardwareEvent]]] = {}
    for event in facts.all(HardwareEvent):
        if (event.kind, event.code) == ("edac", "CE"):
            found = COUNTED.search(event.message)
            named = found and (found[3] if found[3] not in UNNAMED else found[1])
            modules.setdefault(named or "RAM", []).append((int(found[2]) if found else 1, event))
    for module, counted in modules.items():
        events = [event for _, event in counted]
        yield Finding(
            values={
                "module": module,
                "count": sum(count for count, _ in counted),
                "at.en": events[-1].at and f", last at {events[-1].at}",
                "at.zh": events[-1].at and f"，最近一次在 {events[-1].at}",
            },
            subject=module,
            evidence=tuple(map(Evidence.of, events[-3:])),
        )
    if not modules and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
