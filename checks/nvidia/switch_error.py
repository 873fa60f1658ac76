"""An NVSwitch logged a fatal error.

## What it finds
SXid lines of the kernel's log that say `Fatal`: one finding for each switch and code, with how often.

## Why it matters
Traffic between GPUs over that switch, or over all of them, stops; collectives fail with Xid 74 or hang.

## What it cannot know
Whether the switch or a GPU is at fault: a link that goes down because a GPU was lost or reset is logged the same way
(20034). Whether all was reset since.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check

THREAD = (
    "https://github.com/leptonai/gpud/blob/4a8de33a3f02e207f39e9023d67125592d599731/components/accelerator/nvidia/"
    "sxid/README.md"
)
LINK_WENT_DOWN = "20034"

FATAL = "[6781753.400584] nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up\n"
NOT_FATAL = """\
[   38.178720] nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ interrupt
[   38.180708] nvidia-nvswitch3: SXid (PCI:0000:04:00.0): 22013, Severity 0 Engine instance 44 Sub-engine instance 00
"""


@check(
    "nvidia/switch-error",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "An NVSwitch reported a fatal error",
            "summary": "{switch}: SXid {code}, fatal ({count}x in the kernel log)",
            "cause": "The switch, a link to it, or the GPU at the other end of that link failed.",
        },
        "zh": {
            "title": "NVSwitch 报告了致命错误",
            "summary": "{switch}：内核日志中出现 {count} 次致命的 SXid {code}",
            "cause": "交换芯片、其链路，或该链路另一端的 GPU 发生故障。",
        },
    },
    remedies=(
        Remedy(
            key="restart",
            title={
                "en": "Stop all jobs and restart the machine, which resets GPUs and switches",
                "zh": "停止所有任务并重启机器，以复位 GPU 和交换芯片",
            },
            commands=("sudo reboot",),
            safety="disruptive",
            verify="sudo dmesg | grep -i sxid; nvidia-smi nvlink --status",
            source=THREAD,
        ),
        Remedy(
            key="look",
            title={
                "en": "See what the GPUs reported at the same time: a GPU that was lost takes its links down",
                "zh": "查看 GPU 在同一时刻的报告：掉卡会使其链路断开",
            },
            commands=("sudo dmesg | grep -iE 'xid|nvswitch'", "systemctl status nvidia-fabricmanager"),
            safety="safe",
            verify="nvidia-smi topo -m",
            source=THREAD,
        ),
    ),
    sources=(THREAD, "https://github.com/leptonai/gpud"),
    explains=("nvidia/recovery-action-pending",),
    fires=(FATAL,),
    silent=(NOT_FATAL,),
)
def switch_error(facts: Facts) -> Iterator[Answer]:
    """Take the line's word for what is fatal."""
    events = [one for one in facts.all(HardwareEvent) if one.kind == "sxid"]
    told: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in events:
        if ", Fatal," in event.message:
            told.setdefault((event.address, event.code), []).append(event)
    for (address, code), found in told.items():
        switch = f"nvswitch {address}".strip()
        yield Finding(
            values={"switch": switch, "code": code, "count": len(found)},
            subject=switch,
            confidence="medium" if code == LINK_WENT_DOWN else "high",
            evidence=tuple(map(Evidence.of, found[:1] if len(found) == 1 else [found[0], found[-1]])),
        )
    judged = any(", Non-fatal," in one.message for one in events)
    if not told and not judged and (events or not facts.read("kernel-log")):
        yield Undecided(reason="no line tells whether the switch's error was fatal")
