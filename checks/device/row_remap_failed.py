"""A device could not replace memory that failed.

## What it finds
The vendor's tool says that a row could not be remapped, or the kernel does (Xid 64): one finding for each device.

## Why it matters
Spare rows are used up or bad. The memory that failed stays in use, and errors come again: the device is to be replaced.

## What it cannot know
How many spare rows are left elsewhere.
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

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
FLAGS = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html"

NO_SPARE = """\
NVRM: Xid (PCI:0000:0f:00): 64, pid=57530, Row Remapper Error: (0x00000005d28c03a0) - All reserved rows for bank are \
remapped
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
    "device/row-remap-failed",
    severity="error",
    about="device",
    needs=(),
    uses=(HardwareEvent, Reading, Text),
    words={
        "en": {
            "title": "A device could not replace memory that failed",
            "summary": "{device}: replacing a failed row or page of its memory failed",
            "cause": "The spare rows of that part of the memory are used up, or the spare is bad as well.",
        },
        "zh": {
            "title": "设备无法替换损坏的显存",
            "summary": "{device}：替换损坏的显存行或页失败",
            "cause": "该区域的备用行已用尽，或备用行本身也已损坏。",
        },
    },
    remedies=(
        Remedy(
            key="replace",
            title={
                "en": "Take the device out of service and ask the vendor for a replacement, with these reports",
                "zh": "停用该设备并附上以下报告向厂商申请更换",
            },
            commands=("nvidia-smi -q -d ECC,ROW_REMAPPER", "dcgmi diag -r 3", "sudo nvidia-bug-report.sh"),
            safety="manual",
            verify="nvidia-smi -q -d ROW_REMAPPER",
            source=FLAGS,
        ),
        Remedy(
            key="reset",
            title={
                "en": "Until then, a reset of the GPU puts it back into service for a while",
                "zh": "在此之前，复位 GPU 可使其暂时恢复使用",
            },
            commands=("sudo nvidia-smi --gpu-reset -i {id}",),
            safety="disruptive",
            verify="nvidia-smi -q -i {id} -d ROW_REMAPPER",
            source=CATALOGUE,
        ),
    ),
    sources=(CATALOGUE, FLAGS, "https://github.com/awslabs/awsome-distributed-ai/pull/1190"),
    explains=("device/memory-repair-pending", "nvidia/diagnosis-failed", "nvidia/recovery-action-pending"),
    fires=(NO_SPARE,),
    silent=(NONE,),
)
def row_remap_failed(facts: Facts) -> Iterator[Answer]:
    """Take the word of the tool or of the kernel."""
    readings = [one for one in facts.all(Reading) if one.name == "remapped.failure"]
    told: dict[str, tuple[str, Fact]] = {}
    for event in facts.all(HardwareEvent):
        if (event.kind, event.code) == ("xid", "64"):
            told[device_name(facts, address=event.address, vendor="nvidia")] = (event.address, event)
    for one in readings:
        if one.value == "Yes":
            device = device_name(facts, index=one.index, address=one.address, vendor=one.vendor)
            told[device] = (one.address or str(one.index or 0), one)
    for device, (number, fact) in told.items():
        yield Finding(values={"device": device or "GPU", "id": number}, subject=device, evidence=(Evidence.of(fact),))
    if not readings and not told and not facts.read("kernel-log"):
        yield Undecided(reason="neither the tool nor the kernel's log told of remapped rows")
