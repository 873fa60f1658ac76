"""What is on the PCI bus as the kernel lists it: `_pci.py` prints `diag/pci/1`.

Accelerators and displays, switches between accelerators, and adapters for RDMA; `functions` counts all there are.
"""

from __future__ import annotations

import json
import os
import re
import sys

BUS = "/sys/bus/pci/devices"
ACCELERATED = ("03", "12", "0b40")
OTHERS = (("0680", "10de"), ("0780", "1d22"), ("0200", "15b3"), ("0280", "15b3"))


def main() -> None:
    """Read and print the document."""
    addresses = sorted(os.listdir(BUS)) if os.path.isdir(BUS) else []
    devices = [told(address) for address in addresses if matters(address)]
    json.dump({"schema": "diag/pci/1", "functions": len(addresses), "devices": devices}, sys.stdout)


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
    }
    return {name: value for name, value in known.items() if value is not None}


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
