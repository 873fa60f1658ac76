"""The driver says that a GPU waits for a reset or a reboot.

## What it finds
The last Xid 154 of each device in the kernel's log, which names the recovery action, and the state that `nvidia-smi`
prints for it (`GPU Recovery Action`, `Reset Required`, `GPU requires reset`).

## Why it matters
Until then no new job can use the GPU, or it fails there.

## What it cannot know
The fault itself: the events before it say what happened. From the log alone, whether it was done since.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    HardwareEvent,
    Reading,
    Remedy,
    Text,
    Undecided,
    check,
    device_name,
    expression,
)

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
FLAGS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html"
ACTION = expression(r"recovery action changed from .{1,60} to 0x[0-9a-fA-F]{1,4} \(([^()]{1,40})\)")
KEYS = {
    "GPU Reset Required": "reset",
    "Drain and Reset": "reset",
    "Reset": "reset",
    "Reset Required": "reset",
    "GPU requires reset": "reset",
    "Node Reboot Required": "reboot",
    "Reboot": "reboot",
    "Drain P2P": "drain",
}
"""The driver's words, and the remedy they ask for."""

RESET = """\
kern: warning: [2026-04-22T21:30:51.870495804Z]: NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from \
0x0 (None) to 0x1 (GPU Reset Required)
"""
QUIET = """\
[   38.174242] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.195.03  Release Build  \
(dvs-builder@U22-I3-H04-03-1)  Sat Sep 20 00:47:16 UTC 2025
"""


@check(
    "nvidia/recovery-action-pending",
    severity="error",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, Reading, Text),
    words={
        "en": {
            "title": "A GPU waits for a reset or a reboot",
            "summary": "{device}: the driver asks for: {action}",
            "cause": "An earlier fault left the GPU in a state that the driver does not repair by itself; the Xid "
            "before this one names the fault.",
        },
        "zh": {
            "title": "GPU 等待复位或重启",
            "summary": "{device}：驱动要求执行：{action}",
            "cause": "先前的故障使 GPU 处于驱动无法自行修复的状态；在此之前的 Xid 指明了故障。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={"en": "Stop everything that uses the GPU and reset it", "zh": "停止所有使用该 GPU 的进程并复位"},
            commands=("sudo nvidia-smi --gpu-reset -i {id}",),
            safety="disruptive",
            verify="nvidia-smi -q -i {id} | grep -i -A 2 recovery",
            source=FLAGS,
        ),
        Remedy(
            key="reboot",
            title={"en": "Reboot the machine", "zh": "重启机器"},
            commands=("sudo reboot",),
            safety="disruptive",
            verify="nvidia-smi -q | grep -i -A 2 recovery",
            source=FLAGS,
        ),
        Remedy(
            key="drain",
            title={
                "en": "End the jobs that use peer-to-peer transfers with this GPU before new ones start",
                "zh": "在启动新任务之前，结束与该 GPU 进行点对点传输的任务",
            },
            safety="disruptive",
            verify="nvidia-smi -q | grep -i -A 2 recovery",
            source=FLAGS,
        ),
    ),
    sources=(CATALOGUE, FLAGS, "https://github.com/NVIDIA/open-gpu-kernel-modules/issues/446"),
    fires=(RESET,),
    silent=(QUIET,),
)
def recovery_action_pending(facts: Facts) -> Iterator[Answer]:
    """Take the last word of the driver, device by device."""
    told: dict[str, tuple[str, str, Fact]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and event.code == "154" and (found := ACTION.search(event.message)):
            device = device_name(facts, address=event.address, vendor="nvidia")
            told[device] = (found[1], event.address, event)
    for reading in facts.all(Reading):
        if reading.vendor == "nvidia" and reading.name == "health" and reading.value in KEYS:
            device = device_name(facts, index=reading.index, address=reading.address, vendor="nvidia")
            told[device] = (reading.value, reading.address or str(reading.index or 0), reading)
    for device, (action, number, fact) in told.items():
        if action in KEYS:
            yield Finding(
                values={"device": device or "GPU", "action": action, "id": number},
                subject=device,
                confidence="high" if isinstance(fact, Reading) else "medium",
                evidence=(Evidence.of(fact),),
                remedies=(KEYS[action],),
            )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="neither the kernel's log nor the tool told of a recovery action")
