"""Functions on the PCI bus, which need no driver to be seen: as `lspci` prints them and as the kernel lists them.

Told are displays and accelerators, the switches between accelerators, adapters made for RDMA, and bridges of which the
text tells the link or the access control (ACS). `lspci` prints names of classes and makers out of its list `pci.ids`,
and their numbers only when asked (`-nn`); a name that is in no table here leaves its number untold. What this cannot
know: ACS without root (`<access denied>`), and whose a detail is when `grep` dropped the line that names its function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diag.api import (
    Capture,
    Fact,
    PciDevice,
    Recognise,
    Setting,
    Unavailable,
    expression,
    pci_address,
    probe,
    replace,
)

CLASSES = {
    "VGA compatible controller": "0300",
    "XGA compatible controller": "0301",
    "3D controller": "0302",
    "Display controller": "0380",
    "Processing accelerators": "1200",
    "Co-processor": "0b40",
    "Infiniband controller": "0207",
    "InfiniBand": "0c06",
    "Ethernet controller": "0200",
    "Network controller": "0280",
    "Communication controller": "0780",
    "PCI bridge": "0604",
    "Bridge": "0680",
}
"""Names of classes in `pci.ids`."""
MAKERS = {
    "NVIDIA Corporation": "10de",
    "nVidia Corporation": "10de",
    "Advanced Micro Devices, Inc. [AMD/ATI]": "1002",
    "Advanced Micro Devices [AMD] nee ATI": "1002",
    "ATI Technologies Inc": "1002",
    "Intel Corporation": "8086",
    "Huawei Technologies Co., Ltd.": "19e5",
    "Mellanox Technologies": "15b3",
    "Baidu Technology": "1d22",
    "Chengdu Haiguang IC Design Co., Ltd.": "1d94",
    "Chengdu C-3000 IC Design Co., Ltd.": "1d94",
    "Moore Threads Technology Co.,Ltd": "1ed5",
    "MetaX Integrated Circuits (Shanghai) Co., Ltd.": "9999",
    "Cambricon Technologies Corporation Limited": "cabc",
    "Shanghai Iluvatar CoreX Semiconductor Co., Ltd.": "1e3e",
    "Shanghai Enflame Technology Co. Ltd": "1e36",
    "Habana Labs Ltd.": "1da3",
    "Tenstorrent Inc": "1e52",
    "Graphcore Ltd": "1d95",
    "Amazon.com, Inc.": "1d0f",
    "Qualcomm Technologies, Inc": "17cb",
    "ASPEED Technology, Inc.": "1a03",
    "Matrox Electronics Systems Ltd.": "102b",
}
"""Names of makers in `pci.ids`, of this day and of older ones."""
ACCELERATED = ("03", "12", "0b40")
ADAPTERS = {"0207": "", "0c06": "15b3", "0200": "15b3", "0280": "15b3"}
"""Classes of adapters that can do RDMA, with the one maker of which that is true where not of all."""
BRIDGE = "0604"
ODD = {("0680", "10de"), ("0780", "1d22")}
"""Class and maker of switches between accelerators, and of an accelerator that says it is a modem."""
HEADER = expression(
    r"^\W*(?:[0-9a-f:.]{4,16}/){0,12}(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+"
    r"(?P<kind>[A-Z0-9][\w /\-]{1,60}?)(?: \[(?P<number>[0-9a-f]{4})\])?:\s+(?P<name>\S.*)$"
)
DETAIL = expression(r"^\s*(LnkCap|LnkSta|ACSCtl|NUMA node|Kernel driver in use):\s*(\S.*)$")
NUMBERS = expression(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]|^([0-9a-f]{4}):([0-9a-f]{4})\b")
UNNAMED = expression(r"\b[Dd]evice (?:([0-9a-f]{4}):)?([0-9a-f]{4})\b")
SPEED = expression(r"Speed (\d{1,3}(?:\.\d)?)\s?GT/s")
WIDTH = expression(r"Width x(\d{1,2})\b")
LANES = 32
"""Lanes of the widest link; more are what a function that does not answer reads as."""


@probe(
    "lspci",
    tells=(PciDevice,),
    command=("lspci", "-nn"),
    recognise=Recognise(
        literals=(
            *("VGA compatible controller", "3D controller", "Display controller", "Processing accelerators"),
            *("Co-processor", "Infiniband controller", "Ethernet controller", "Network controller", "PCI bridge"),
            *("Bridge: NVIDIA", "Bridge [0680]", " 0300: ", " 0302: ", " 0380: ", " 1200: ", " 0207: ", " 1d22:"),
            *("LnkCap:", "LnkSta:", "ACSCtl:", "NUMA node:", "Kernel driver in use:"),
        ),
        pattern=f"{HEADER.pattern}|{DETAIL.pattern}",
        each=True,
        lines=150,
    ),
)
def lspci(capture: Capture) -> Iterator[Fact]:
    """A line for each function, with `-v` its details below it."""
    found: dict[str, PciDevice] = {}
    address = ""
    for line in capture.lines():
        if match := HEADER.match(line.text):
            address = pci_address(match["address"])
            device = PciDevice(origin=capture.origin(line), address=address, **_header(match))
            found[address] = _filled(found[address], device.told()) if address in found else device
        elif address and (detail := DETAIL.match(line.text)):
            found[address] = _filled(found[address], DETAILS[detail[1]](detail[2]))
    yield from filter(_matters, found.values())


def _header(match: re.Match[str]) -> dict[str, Any]:
    """Class, maker, model and name of a function, as far as its line tells them."""
    name = match["name"].partition(" (rev ")[0].partition(" (prog-if ")[0].strip()
    numbers = next(reversed(list(NUMBERS.finditer(name))), None)
    vendor, device = (numbers[1] or numbers[3], numbers[2] or numbers[4]) if numbers else ("", "")
    if not numbers:
        maker = next((maker for maker in MAKERS if name.startswith(maker)), "")
        unnamed = UNNAMED.search(name)
        vendor = MAKERS.get(maker, unnamed[1] or "" if unnamed else "")
        device = unnamed[2] if unnamed else ""
    kind = match["kind"].removeprefix("Class ")
    class_id = match["number"] or CLASSES.get(kind) or (kind if re.fullmatch(r"[0-9a-f]{4}", kind) else "")
    return {"vendor_id": vendor, "device_id": device, "class_id": class_id, "name": NUMBERS.sub("", name).strip()}


def _filled(device: PciDevice, more: dict[str, Any]) -> PciDevice:
    """The function with what was not told of it before."""
    known = device.told()
    return replace(device, **{name: value for name, value in more.items() if name not in known})


def _matters(device: PciDevice) -> bool:
    if device.class_id == BRIDGE:
        return device.acs is not None or device.width is not None
    maker = ADAPTERS.get(device.class_id, device.vendor_id + "?")
    return (
        device.class_id.startswith(ACCELERATED)
        or (device.class_id, device.vendor_id) in ODD
        or maker in ("", device.vendor_id)
    )


def _link(text: str) -> tuple[float | None, int | None]:
    speed, width = SPEED.search(text), WIDTH.search(text)
    lanes = int(width[1]) if width else None
    return (float(speed[1]) if speed else None), (lanes if lanes is not None and lanes <= LANES else None)


def _running(text: str) -> dict[str, Any]:
    speed, width = _link(text)
    return {"speed": speed, "width": width}


def _possible(text: str) -> dict[str, Any]:
    speed, width = _link(text)
    return {"speed_max": speed, "width_max": width}


def _controls(text: str) -> dict[str, Any]:
    return {"acs": tuple(word[:-1] for word in text.split() if word.endswith("+"))}


def _node(text: str) -> dict[str, Any]:
    return {"numa_node": int(text)} if re.fullmatch(r"[0-9]{1,4}\s*", text) else {}


def _driver(text: str) -> dict[str, Any]:
    return {"driver": text.split()[0]}


DETAILS = {
    "LnkSta": _running,
    "LnkCap": _possible,
    "ACSCtl": _controls,
    "NUMA node": _node,
    "Kernel driver in use": _driver,
}


@probe(
    "pci",
    tells=(PciDevice, Setting),
    measure=str(Path(__file__).with_name("_pci.py")),
    recognise=Recognise(('"schema": "diag/pci/1"',), lines=0),
)
def pci(capture: Capture) -> Iterator[Fact]:
    """What the kernel lists under `/sys/bus/pci`: numbers and links, no names; the IOMMU's domains of accelerators."""
    measured = capture.document("diag/pci/1")
    if measured is None:
        return
    for one in measured["devices"]:
        yield PciDevice(origin=capture.said(json.dumps(one)), **{**one, "acs": _listed(one.get("acs"))})
    for name, kind in measured.get("groups", {}).items():
        said = capture.said(f'"{name}": "{kind}"')
        yield Setting(origin=said, name=f"iommu_groups/{name}/type", value=kind, kind="kernel")
    if not measured["devices"]:
        reason = f"none of the {measured['functions']} functions on the bus is an accelerator, a switch or for RDMA"
        yield Unavailable(origin=capture.said(reason), what="pci", reason=reason, how="silent", tells=("PciDevice",))


def _listed(controls: list[str] | None) -> tuple[str, ...] | None:
    return None if controls is None else tuple(controls)
