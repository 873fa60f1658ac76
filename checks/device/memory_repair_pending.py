"""A device waits for a reset to replace memory that failed.

## What it finds
Rows that wait to be remapped or pages that wait to be retired, as the vendor's tool shows them, and the kernel's line
(Xid 63) that says so: one finding for each device.

## Why it matters
Until the reset the memory that failed is still there. Data-center devices from A100 on keep new work away from it;
others may hit it again.

## What it cannot know
From the kernel's line alone, whether the device was reset since.
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
)

FLAGS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html"
RETIREMENT = "https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html"
WAITS = ("reset gpu to activate", "reload the driver to activate", "reboot to activate")

ROW = """\
May 19 07:08:57 host-1 kernel: [680111.646286] NVRM: Xid (PCI:0000:10:1c): 63, pid=1850, Row Remapper: New row marked for remapping, reset gpu to activate
"""  # noqa: E501
DIAGNOSIS = """\
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
|-----  Deployment  --------+------------------------------------------------|
| Error                     | GPU 3 has uncorrectable memory errors and row  |
|                           |  remappings are pending                        |
"""
NONE = """\
==============NVSMI LOG==============

Timestamp                                              : Fri Jul  3 22:11:09 2026
Driver Version                                         : 590.48.01

Attached GPUs                                          : 1
GPU 00000000:83:00.0
    Product Name                                       : NVIDIA H200
    Remapped Rows
        Correctable Error                              : 0
        Uncorrectable Error                            : 0
        Pending                                        : No
        Remapping Failure Occurred                     : No
"""


@check(
    "device/memory-repair-pending",
    severity="warning",
    about="device",
    needs=(),
    uses=(HardwareEvent, Reading, Text),
    words={
        "en": {
            "title": "A device waits for a reset to replace failed memory",
            "summary": "{device}: memory that failed is replaced at the next reset",
            "cause": "A memory error that could not be corrected, or many that could, marked a row or page as bad.",
        },
        "zh": {
            "title": "设备等待复位以替换损坏的显存",
            "summary": "{device}：损坏的显存将在下次复位时被替换",
            "cause": "发生了无法纠正的显存错误，或可纠正错误过多，某一行或页被标记为损坏。",
        },
    },
    remedies=(
        Remedy(
            key="reset",
            title={
                "en": "When nothing runs on it: reset the GPU (where that is refused, reboot the machine)",
                "zh": "在空闲时复位该 GPU（若被拒绝则重启机器）",
            },
            commands=("sudo nvidia-smi --gpu-reset -i {id}",),
            safety="disruptive",
            verify="nvidia-smi -q -i {id} -d PAGE_RETIREMENT,ROW_REMAPPER",
            source=FLAGS,
        ),
    ),
    sources=(
        FLAGS,
        RETIREMENT,
        "https://github.com/stas00/ml-engineering/blob/master/compute/accelerator/nvidia/debug.md",
        "https://github.com/leptonai/gpud/pull/80",
    ),
    explains=("nvidia/diagnosis-failed", "nvidia/recovery-action-pending"),
    fires=(ROW, DIAGNOSIS),
    silent=(NONE,),
)
def memory_repair_pending(facts: Facts) -> Iterator[Answer]:
    """Take the tool's word, and the kernel's where the tool tells nothing of the device."""
    readings = [one for one in facts.all(Reading) if one.name == "retired.pending"]
    told: dict[str, tuple[str, Fact | None]] = {}
    for event in facts.all(HardwareEvent):
        if (event.kind, event.code) == ("xid", "63") and any(words in event.message for words in WAITS):
            told[device_name(facts, address=event.address, vendor="nvidia")] = (event.address, event)
    for one in readings:
        device = device_name(facts, index=one.index, address=one.address, vendor=one.vendor)
        told[device] = (one.address or str(one.index or 0), one if one.value == "Yes" else None)
    for device, (number, fact) in told.items():
        if fact:
            yield Finding(
                values={"device": device or "GPU", "id": number},
                subject=device,
                confidence="high" if isinstance(fact, Reading) else "medium",
                evidence=(Evidence.of(fact),),
            )
    if not readings and not told and not facts.read("kernel-log"):
        yield Undecided(reason="neither the tool nor the kernel's log told of memory that waits for a reset")
