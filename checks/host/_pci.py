"""What is on the PCI bus as the kernel lists it: `_pci.py` prints `diag/pci/1`.

Accelerators and displays, switches between accelerators, adapters for RDMA, and of PCIe switches the ports on the way
to an accelerator; `functions` counts all there are. `groups` are the IOMMU groups of accelerators, each with the type
of its domain. Access control (ACS) stands where only root may read.
"""

from __future__ import annotations

import json
import os
import re
import sys

BUS = "/sys/bus/pci/devices"
ACCELERATED = ("03", "12", "0b40")
OTHERS = (("0680", "10de"), ("0780", "1d22"), ("0200", "15b3"), ("0280", "15b3"))
DISPLAYS = ("1a03", "102b", "1234", "1b36", "1af4", "15ad", "1013")
"""Makers of displays of servers and virtual machines."""
GRAPHICS = "0000:00:02.0"
"""Where the graphics inside an Intel processor are."""
EXTENDED = 0x100
"""Where extended capabilities begin in the configuration of a function."""
ACS_ID = 0x000D
ACS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
"""The controls of access control services, by bit, as `lspci` names them."""


def main() -> None:
    """Read and print the document."""
    addresses = sorted(os.listdir(BUS)) if os.path.isdir(BUS) else []
    wanted = [address for address in addresses if matters(address)]
    accelerators = list(filter(accelerates, wanted))
    ports = sorted({port for address in accelerators for port in switch_ports(address)} - set(wanted))
    document = {
        "schema": "diag/pci/1",
        "functions": len(addresses),
        "devices": [told(address) for address in (*wanted, *ports)],
        "groups": dict(filter(None, map(group, accelerators))),
    }
    json.dump(document, sys.stdout)


def matters(address: str) -> bool:
    """Whether a function is one of those that are told."""
    kind = number(address, "class")[:4]
    return kind.startswith((*ACCELERATED, "0207")) or (kind, number(address, "vendor")) in OTHERS


def told(address: str) -> dict[str, object]:
    """What the kernel knows of a function, without what it does not know."""
    node = text(address, "numa_node")
    known = {
        "address": address,
        "vendor_id": number(address, "vendor"),
        "device_id": number(address, "device"),
        "class_id": number(address, "class")[:4],
        "driver": os.path.basename(os.path.realpath(f"{BUS}/{address}/driver")) if driven(address) else "",
        "numa_node": int(node) if node.isdigit() else None,
        "speed": speed(address, "current_link_speed"),
        "width": width(address, "current_link_width"),
        "speed_max": speed(address, "max_link_speed"),
        "width_max": width(address, "max_link_width"),
        "acs": acs(address) if number(address, "class").startswith("0604") else None,
    }
    return {name: value for name, value in known.items() if value is not None}


def accelerates(address: str) -> bool:
    """Whether a function is an accelerator, not a display."""
    display = address == GRAPHICS or number(address, "vendor") in DISPLAYS
    return number(address, "class").startswith(ACCELERATED) and not display


def switch_ports(address: str) -> list[str]:
    """The bridges between the root port of the function and the function itself."""
    above = re.findall(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", os.path.realpath(f"{BUS}/{address}"))
    return above[1:-1]


def group(address: str) -> tuple[str, str] | None:
    """The IOMMU group of the function, and the type of its domain."""
    if not os.path.exists(f"{BUS}/{address}/iommu_group"):
        return None
    return os.path.basename(os.path.realpath(f"{BUS}/{address}/iommu_group")), text(address, "iommu_group/type")


def acs(address: str) -> list[str] | None:
    """The access controls that are on; None where there are none or they may not be read."""
    try:
        with open(f"{BUS}/{address}/config", "rb") as file:
            space = file.read()
    except OSError:
        return None
    place, seen = EXTENDED, 0
    while EXTENDED <= place <= len(space) - 8 and seen < 64:
        head = int.from_bytes(space[place : place + 4], "little")
        if head & 0xFFFF == ACS_ID:
            control = int.from_bytes(space[place + 6 : place + 8], "little")
            return [name for bit, name in enumerate(ACS) if control >> bit & 1]
        place, seen = head >> 20, seen + 1
    return None


def driven(address: str) -> bool:
    """Whether a driver is bound to the function."""
    return os.path.exists(f"{BUS}/{address}/driver")


def text(address: str, name: str) -> str:
    """One attribute of a function, empty where it cannot be read."""
    try:
        with open(f"{BUS}/{address}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def number(address: str, name: str) -> str:
    """An attribute in hexadecimal, without `0x`."""
    return text(address, name).lower().removeprefix("0x")


def speed(address: str, name: str) -> float | None:
    """A speed in GT/s: `16.0 GT/s PCIe`, `8 GT/s`, `Unknown`."""
    found = re.match(r"[0-9]{1,3}(?:\.[0-9])?(?= GT/s)", text(address, name))
    return float(found[0]) if found else None


def width(address: str, name: str) -> int | None:
    """A number of lanes; a function that does not answer reads as more than there can be."""
    lanes = text(address, name)
    return int(lanes) if lanes.isdigit() and int(lanes) <= 32 else None


if __name__ == "__main__":
    main()
