"""PCI Express corrected errors on the link of an accelerator or network adapter.

## What it finds
Lines of advanced error reporting (AER) in the kernel's log with the severity corrected, of such a device: how many.

## Why it matters
Nothing is lost, but each is sent again. Many of them on one device tell of a bad contact, and come before worse.

## What it cannot know
How many the kernel left out: it limits how many it prints. Errors of a port are not judged: what is below it the line
does not tell.
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

ADAPTER = """\
[  448.455107] pcieport 0000:00:00.0: AER: Corrected error received: 0000:01:00.0
[  448.469914] mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Transaction Layer, (Receiver ID)
[  448.479792] mlx5_core 0000:01:00.0:   device [15b3:1019] error status/mask=00002000/00000000
[  448.488196] mlx5_core 0000:01:00.0:    [13] NonFatalErr
"""
NONE = """\
[   10.642917] mlx5_core 0004:01:00.0: Adding to iommu group 29
[   10.643316] mlx5_core 0004:01:00.0: firmware version: 16.27.2048
[   10.643346] mlx5_core 0004:01:00.0: 63.008 Gb/s available PCIe bandwidth (8.0 GT/s PCIe x8 link)
"""


@check(
    "host/pcie-errors-corrected",
    severity="info",
    about="host",
    needs=(),
    uses=(Accelerator, HardwareEvent, PciDevice, Text),
    words={
        "en": {
            "title": "PCI Express errors were corrected",
            "summary": "{device}: corrected error, {times}x in the kernel log",
            "cause": "The link is noisy: a riser, a cable, dust in the slot, a card that is not seated well.",
        },
        "zh": {
            "title": "存在已纠正的 PCIe 错误",
            "summary": "{device}：内核日志中有 {times} 次已纠正错误",
            "cause": "链路存在干扰：转接卡、线缆、插槽积灰或板卡未插好。",
        },
    },
    remedies=(
        Remedy(
            key="watch",
            title={
                "en": "See whether the counters rise under load; if so, seat the card anew",
                "zh": "观察负载下计数是否增长；若增长则重新插拔板卡",
            },
            commands=("cat /sys/bus/pci/devices/{address}/aer_dev_correctable",),
            safety="safe",
            verify="cat /sys/bus/pci/devices/{address}/aer_dev_correctable",
            source="https://docs.kernel.org/PCI/pcieaer-howto.html",
        ),
    ),
    sources=("https://docs.kernel.org/PCI/pcieaer-howto.html",),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(ADAPTER,),
    silent=(NONE,),
)
def pcie_errors_corrected(facts: Facts) -> Iterator[Answer]:
    """One finding for each device."""
    events = facts.all(HardwareEvent)
    errors = [one for one in events if one.kind == "aer" and one.code == "corrected"]
    if not errors and not facts.read("kernel-log") and not events:
        yield Undecided(reason="no kernel log was read")
    found: dict[str, list[HardwareEvent]] = {}
    for event in errors:
        if subject := _named(facts, event):
            found.setdefault(subject, []).append(event)
    if not found and any(one.message.startswith(UNTOLD) for one in errors):
        yield Undecided(reason=f"what device {errors[0].address} is is not told")
    for subject, told in found.items():
        values: dict[str, str | int] = {"device": subject, "address": told[0].address, "times": len(told)}
        yield Finding(subject=subject, values={**values}, evidence=tuple(map(Evidence.of, told[:2])))


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
