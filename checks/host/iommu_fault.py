"""The IOMMU refused an access of an accelerator or network adapter.

## What it finds
Lines of the kernel's log in which the IOMMU names such a device: an AMD-Vi event, a DMAR fault.

## Why it matters
What the device wanted to read or write did not happen: a peer transfer hangs or leaves wrong data, or the device stops.

## What it cannot know
Whether a program that crashed left the device with addresses that are no longer good. A device that neither the line
nor the machine's list makes an accelerator or adapter is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    HardwareEvent,
    PciDevice,
    Remedy,
    Text,
    Undecided,
    check,
    device_name,
)

ACCELERATORS = {"nvidia", "amdgpu", "habanalabs", "xe"}
ADAPTERS = {"mlx5_core", "mlx4_core", "bnxt_en"}
"""Drivers, as the kernel names them before an address."""
FABRIC = ("0207", "0c06")
MAKER = "15b3"
UNTOLD = ("pcieport ", "pci ", "0000:", "AER", "DMAR", "AMD-Vi")
"""How a line begins that does not tell what the device is."""

PEER = """\
Sep 21 09:59:59 host-1 kernel: nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 \
address=0x80000040 flags=0x0020]
Sep 21 09:59:59 host-1 kernel: nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 \
address=0x9e139068 flags=0x0020]
"""
ENABLED = """\
[    0.810331] pci 0000:00:00.2: AMD-Vi: IOMMU performance counters supported
[    0.810507] pci 0000:00:01.0: Adding to iommu group 0
[   10.643316] mlx5_core 0004:01:00.0: firmware version: 16.27.2048
"""


@check(
    "host/iommu-fault",
    severity="warning",
    about="host",
    needs=(),
    uses=(Accelerator, HardwareEvent, PciDevice, Text),
    words={
        "en": {
            "title": "The IOMMU refused accesses of a device",
            "summary": "{device}: access refused{code.en}, {times}x in the kernel log",
            "cause": "The IOMMU translates and does not know the address: peer transfers over PCI Express are not "
            "mapped for it, or a driver took the memory back too early.",
        },
        "zh": {
            "title": "IOMMU 拒绝了设备的访问",
            "summary": "{device}：{times} 次访问被拒绝{code.zh}",
            "cause": "IOMMU 处于转换模式且没有该地址的映射：未为 PCIe P2P 传输建立映射，或驱动过早释放了内存。",
        },
    },
    remedies=(
        Remedy(
            key="passthrough",
            title={
                "en": "Start the kernel with iommu=pt, or switch the IOMMU off if no virtual machine needs it",
                "zh": "以 iommu=pt 启动内核；若无虚拟机需要，也可关闭 IOMMU",
            },
            commands=("cat /proc/cmdline", "sudoedit /etc/default/grub   # add iommu=pt to GRUB_CMDLINE_LINUX"),
            safety="disruptive",
            verify="sudo dmesg | grep -E 'IO_PAGE_FAULT|DMAR: .*fault'",
            source="https://github.com/NVIDIA/nccl/issues/257",
        ),
        Remedy(
            key="no-peer",
            title={
                "en": "Until then, keep the collective library off peer transfers",
                "zh": "在此之前，让集合通信库不使用 P2P 传输",
            },
            commands=("export NCCL_P2P_DISABLE=1",),
            safety="manual",
            verify="NCCL_DEBUG=INFO prints `via SHM` for the channels",
            source="https://github.com/NVIDIA/nccl/issues/257",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/cuda-samples/issues/48",
        "https://github.com/NVIDIA/nccl/issues/257",
        "https://github.com/stas00/toolbox/issues/1",
    ),
    explains=("collectives/rank-silent", "collectives/wrong-result"),
    fires=(PEER,),
    silent=(ENABLED,),
)
def iommu_fault(facts: Facts) -> Iterator[Answer]:
    """One finding for each device, with the number of lines."""
    faults = [one for one in facts.all(HardwareEvent) if one.kind == "iommu-fault"]
    if not faults and not facts.read("kernel-log"):
        yield Undecided(reason="no kernel log was read")
    found: dict[str, list[HardwareEvent]] = {}
    for event in faults:
        if subject := _named(facts, event):
            found.setdefault(subject, []).append(event)
    if not found and not facts.first(Accelerator) and any(one.message.startswith(UNTOLD) for one in faults):
        yield Undecided(reason=f"what device {faults[0].address} is is not told")
    for subject, events in found.items():
        codes = ", ".join(dict.fromkeys(one.code for one in events if one.code))
        values: dict[str, str | int] = {"device": subject, "times": len(events)}
        values |= {"code.en": codes and f" ({codes})", "code.zh": codes and f"（{codes}）"}
        yield Finding(subject=subject, values={**values}, evidence=tuple(map(Evidence.of, events[:3])))


def _named(facts: Facts, event: HardwareEvent) -> str:
    """What the line or the machine's list says the device is; empty where it is neither accelerator nor adapter."""
    driver = event.message.partition(" ")[0]
    known = any(one.address == event.address for one in facts.all(Accelerator))
    if event.vendor or known or driver in ACCELERATORS:
        return device_name(facts, address=event.address, vendor=event.vendor)
    listed = (one for one in facts.all(PciDevice) if one.address == event.address)
    adapter = any(one.class_id in FABRIC or one.vendor_id == MAKER for one in listed)
    if driver in ADAPTERS or adapter:
        return f"{driver if driver in ADAPTERS else 'adapter'} {event.address}".strip()
    return ""
