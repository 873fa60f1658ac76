"""The PCI Express link of a device has fewer lanes than that of its equals on the same machine.

## What it finds
An accelerator or RDMA adapter whose link is narrower than it could be and than that of another device of the same make.

## Why it matters
Loading the weights, and whatever does not go over a fast link of its own, takes twice or four times as long.

## What it cannot know
Whether the slot has fewer lanes by design, as the second slot of a desktop board has: one among four or more equals is
nearly always a fault, one of two often is not. Where all are narrow alike nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    PciDevice,
    Reading,
    Remedy,
    Undecided,
    check,
    device_name,
    devices,
)

CLASSES = ("03", "12", "0b40", "0207", "0c06", "0200", "0280")
MANY = 3

TWO_OF_FOUR = """\
nvidia-smi --query-gpu=index,name,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max \
--format=csv
index, name, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max
0, NVIDIA GeForce RTX 5060 Ti, 4, 4, 4, 8
1, NVIDIA GeForce RTX 5060 Ti, 4, 4, 4, 8
2, NVIDIA GeForce RTX 5060 Ti, 4, 4, 8, 8
3, NVIDIA GeForce RTX 5060 Ti, 4, 4, 8, 8
"""
ALL_NARROW = """\
$ nvidia-smi --query-gpu=name,driver_version,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,\
pcie.link.width.max --format=csv
name, driver_version, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max
NVIDIA GeForce RTX 5060 Ti, 595.71.05, 1, 3, 4, 16
NVIDIA GeForce RTX 5060 Ti, 595.71.05, 1, 3, 4, 16
"""


class Slot(NamedTuple):
    """A device's link: what makes devices equal, lanes now and at most, and the fact that tells it."""

    make: str
    width: int
    most: int | None
    fact: Fact
    number: int | None
    address: str
    vendor: str


@check(
    "host/pcie-width-below",
    severity="warning",
    about="host",
    needs=(),
    uses=(PciDevice, Reading),
    words={
        "en": {
            "title": "A device's PCI Express link has too few lanes",
            "summary": "{device} runs with x{width}; {peers} of its make with x{best}",
            "cause": "The card is not seated well, a riser or cable or contact is bad, or its slot has fewer lanes.",
        },
        "zh": {
            "title": "设备的 PCIe 链路通道数不足",
            "summary": "{device} 以 x{width} 运行，同型号设备中有 {peers} 个以 x{best} 运行",
            "cause": "板卡未插好、转接卡/线缆/金手指接触不良，或者所在插槽本身通道数较少。",
        },
    },
    remedies=(
        Remedy(
            key="seat",
            title={
                "en": "Look at the link from both sides, then seat the card anew or move it to another slot",
                "zh": "从链路两端检查，重新插拔板卡或更换插槽",
            },
            commands=("sudo lspci -vv | grep -E '^[0-9a-f].*(NVIDIA|AMD|Mellanox)|LnkCap:|LnkSta:'",),
            safety="disruptive",
            verify="nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv",
            source="https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/plugins/pcie.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/plugins/pcie.html",
        "https://nvidia.github.io/cuda-python/cuda-core/latest/generated/cuda.core.system.PciInfo.html",
        "https://github.com/geerlingguy/raspberry-pi-pcie-devices/issues/143",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(TWO_OF_FOUR,),
    silent=(ALL_NARROW,),
)
def pcie_width_below(facts: Facts) -> Iterator[Answer]:
    """Compare each link with those of the same make."""
    slots = [*_of_readings(facts), *_of_bus(facts)]
    if not any(slot.make for slot in slots):
        yield Undecided(reason="no width of the link of a device whose make is known is told")
    told = set[str]()
    for slot in slots:
        best = max(one.width for one in slots if one.make == slot.make)
        peers = sum(one.width == best for one in slots if one.make == slot.make)
        narrow = sum(one.width < best for one in slots if one.make == slot.make)
        device = device_name(facts, index=slot.number, address=slot.address, vendor=slot.vendor)
        if slot.make and slot.width < min(best, slot.most or best) and device and device not in told:
            told.add(device)
            values: dict[str, str | int] = {"device": device, "width": slot.width, "best": best, "peers": peers}
            yield Finding(
                subject=device,
                values={**values},
                confidence="high" if peers >= MANY * narrow else "medium",
                evidence=(Evidence.of(slot.fact),),
            )


def _of_readings(facts: Facts) -> Iterator[Slot]:
    """What the tools read, with the name of each device for its make."""
    places = {(one.index, one.address) for one in facts.all(Reading) if one.name == "pcie.width"}
    for index, address in sorted(places, key=str):
        mine = [one for one in facts.all(Reading) if (one.index, one.address) == (index, address)]
        widths = {
            one.name: one for one in mine if one.name in ("pcie.width", "pcie.width.max") and one.value.isdecimal()
        }
        known = (one for one in devices(facts) if _is(index, address, (one.index, one.address)))
        device = next(known, None)
        if now := widths.get("pcie.width"):
            most = widths.get("pcie.width.max")
            yield Slot(
                device.name if device else "",
                int(now.value),
                int(most.value) if most else None,
                now,
                index,
                address,
                now.vendor,
            )


def _is(index: int | None, address: str, other: tuple[int | None, str]) -> bool:
    return bool(address and address == other[1]) or (index is not None and index == other[0])


def _of_bus(facts: Facts) -> Iterator[Slot]:
    """What the bus tells of accelerators and adapters."""
    for one in facts.all(PciDevice):
        make = f"{one.vendor_id}:{one.device_id}" if one.vendor_id and one.device_id else one.name
        if one.width and one.width_max and one.class_id.startswith(CLASSES):
            yield Slot(make, one.width, one.width_max, one, None, one.address, "")
