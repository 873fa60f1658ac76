"""The host's memory had errors that could not be corrected.

## What it finds
Lines of the kernel's memory controllers (EDAC) that count uncorrected errors (`UE`), one finding for each module of
memory they name.

## Why it matters
What stood there is lost: a process is killed, the kernel stops, or, where nothing noticed, results are wrong.

## What it cannot know
Whether the module was replaced since, or the error was injected for a test.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, expression

COUNTED = expression(r"EDAC (MC[0-9]{1,3}): ([0-9]{1,9}) UE .{0,80}? on (\S{1,80})")
UNNAMED = ("unknown", "any")

UE_ICELAKE = """\
[   77.627894] EDAC skx MC3: HANDLING MCE MEMORY ERROR
[   77.633600] EDAC skx MC3: CPU 0: Machine Check Event: 0x0 Bank 25: 0xac00000200a00090
[   77.633601] EDAC skx MC3: TSC 0x18d57ce28f4f25
[   77.633608] EDAC MC3: 1 UE memory read error on CPU_SrcID#0_MC#3_Chan#0_DIMM#0 (channel:0 slot:0 page:0x7e025e \
offset:0x400 grain:32 -  err_code:0x00a0:0x0090  SystemAddress:0x7e025e400 ProcessorSocketId:0x0 \
MemoryControllerId:0x3 ChannelAddress:0xec04bc00 ChannelId:0x0 RankAddress:0x76025c00 PhysicalRankId:0x1 \
DimmSlotId:0x0 Row:0x3b01 Column:0x380 Bank:0x0 BankGroup:0x2 ChipSelect:0x1 ChipId:0x0)
"""
UE_UNKNOWN = """\
[   10.029515] EDAC MC0: 1 UE unknown on unknown memory ( page:0x116c60 offset:0x0 grain:1 - APEI location: )
[   10.033647] [Firmware Warn]: GHES: Invalid address in generic error data: 0x116c60000
"""
CE_262 = """\
[Mon Oct  3 13:52:42 2022] EDAC sbridge MC1: HANDLING MCE MEMORY ERROR
[Mon Oct  3 13:52:42 2022] EDAC sbridge MC1: CPU 0: Machine Check Event: 0 Bank 7: cc00418000010091
[Mon Oct  3 13:52:42 2022] EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 \
page:0x2031c14 offset:0x940 grain:32 syndrome:0x0 -  OVERFLOW area:DRAM err_code:0001:0091 socket:0 ha:0 \
channel_mask:2 rank:1)
"""


@check(
    "host/memory-errors-uncorrected",
    severity="error",
    about="host",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The host's memory had errors that could not be corrected",
            "summary": "{module}: uncorrected memory errors: {count}{at.en}",
            "cause": "A module of memory, its slot or the memory controller is failing.",
        },
        "zh": {
            "title": "主机内存出现不可纠正错误",
            "summary": "{module}：{count} 个不可纠正内存错误{at.zh}",
            "cause": "内存条、插槽或内存控制器出现故障。",
        },
    },
    remedies=(
        Remedy(
            key="replace",
            title={
                "en": "Take the machine out of service and replace the module; the firmware's event log names its slot",
                "zh": "将机器下线并更换该内存条；固件事件日志会给出插槽位置",
            },
            commands=("sudo ipmitool sel elist | grep -i -E 'memory|ecc'", "sudo edac-util -v"),
            safety="manual",
            verify="sudo edac-util --report=ue",
            source="https://manpages.ubuntu.com/manpages/noble/man1/edac-util.1.html",
        ),
    ),
    sources=(
        "https://manpages.ubuntu.com/manpages/noble/man1/edac-util.1.html",
        "https://android.googlesource.com/kernel/common/+/d729d4e99fb85/Documentation/ABI/testing/sysfs-devices-edac",
    ),
    fires=(UE_ICELAKE, UE_UNKNOWN),
    silent=(CE_262,),
)
def memory_errors_uncorrected(facts: Facts) -> Iterator[Answer]:
    """Sum up the errors of each module."""
    modules: dict[str, list[tuple[int, HardwareEvent]]] = {}
    for event in facts.all(HardwareEvent):
        if (event.kind, event.code) == ("edac", "UE"):
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
