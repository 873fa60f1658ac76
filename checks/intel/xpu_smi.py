"""Intel's `xpu-smi` (and `xpumcli`, its forerunner): devices it discovers, and samples of how they are used.

Kunlunxin's tool has the same name; this one is known by its columns "Device ID | Device Information" and its keys. The
driver version it prints is a packed number that no other tool shows, so it is not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Accelerator, Capture, Fact, Line, Reading, Recognise, expression, probe

TABLE = r"\|\s{0,9}Device I[Dd]\s{0,9}\|\s{0,9}Device Information\b"
CELL = expression(r"\|\s{0,20}([0-9]{0,4})\s{0,20}\|\s{0,9}([A-Z][\w ]{1,60}):\s{0,9}([^|]{0,120})")
PLAIN = expression(r'^\W*"([a-z_]{1,60})":\s{0,9}"?([^"]{0,120})')
BUS = expression(r"([0-9A-Fa-f]{4}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{1,2})\.([0-9A-Fa-f])")
NUMBER = expression(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
KEYS = {
    "device_id": "Device ID",
    "device_name": "Device Name",
    "vendor_name": "Vendor Name",
    "pci_bdf_address": "PCI BDF Address",
}
SIZE = "Memory Physical Size"
READ = {"PCIe Generation": "pcie.generation.max", "PCIe Max Link Width": "pcie.width.max"}
SAMPLED = {
    "GPU Utilization (%)": ("utilization", "%"),
    "GPU Power (W)": ("power", "W"),
    "GPU Frequency (MHz)": ("clock.sm", "MHz"),
    "GPU Core Temperature (Celsius Degree)": ("temperature", "C"),
    "GPU Memory Used (MiB)": ("memory.used", "MiB"),
}

Told = dict[str, tuple[Line, str]]


@probe(
    "intel/xpu-smi",
    tells=(Accelerator, Reading),
    command=("xpu-smi", "discovery"),
    timeout=20.0,
    recognise=Recognise(literals=("Device Information", '"device_list"'), pattern=f'{TABLE}|"device_list"'),
)
def xpu_smi(capture: Capture) -> Iterator[Fact]:
    """What `discovery` prints, as a table or, with `-j`, as a document: a field a line, devices one after the other."""
    told: Told = {}
    for line in capture.lines():
        if found := CELL.search(line.text):
            number, key, value = found[1], found[2], found[3].strip()
        elif found := PLAIN.match(line.text):
            number, key, value = "", KEYS.get(found[1], found[1]), found[2].strip(" ,")
        else:
            continue
        if (number and told) or key in told:
            yield from _device(capture, told)
            told = {}
        if number:
            told["Device ID"] = (line, number)
        told[key] = (line, value)
    yield from _device(capture, told)


def _device(capture: Capture, told: Told) -> Iterator[Fact]:
    """The device of some fields, where they name it and its maker."""
    line, name = told.get("Device Name", (None, ""))
    number, maker, size = (told.get(key, (None, ""))[1] for key in ("Device ID", "Vendor Name", SIZE))
    if not name or "Intel" not in name + maker:
        return
    bus = BUS.fullmatch(told.get("PCI BDF Address", (None, ""))[1])
    address = f"{bus[1]}:{bus[2]}:{bus[3]:0>2}.{bus[4]}".lower() if bus else ""
    memory = NUMBER.match(size)
    index = int(number) if re.fullmatch(r"[0-9]{1,4}", number) else None
    yield Accelerator(
        origin=capture.origin(line),
        vendor="intel",
        name=name,
        index=index,
        address=address,
        memory_mib=float(memory[0]) if memory and size.endswith("MiB") else None,
        seen_by="tool",
    )
    for key, what in READ.items():
        at, value = told.get(key, (None, ""))
        if NUMBER.fullmatch(value):
            origin = capture.origin(at)
            yield Reading(origin=origin, name=what, value=value, vendor="intel", index=index, address=address)


@probe(
    "intel/xpu-smi/dump",
    tells=(Reading,),
    recognise=Recognise(literals=("Timestamp, DeviceId,",), pattern=r"^\W*Timestamp, DeviceId, ", lines=20_000),
)
def xpu_smi_dump(capture: Capture) -> Iterator[Fact]:
    """What `xpu-smi dump` samples: of each device the last sample."""
    columns: list[str] = []
    last: dict[str, tuple[Line, dict[str, str]]] = {}
    for line in capture.lines():
        cells = [cell.strip() for cell in line.text.split(",")]
        if "DeviceId" in cells:
            columns = cells
        elif columns and len(cells) == len(columns):
            sample = dict(zip(columns, cells, strict=True))
            last[sample["DeviceId"]] = (line, sample)
    for number, (line, sample) in last.items():
        index = int(number) if re.fullmatch(r"[0-9]{1,4}", number) else None
        for column, (name, unit) in SAMPLED.items():
            if index is not None and NUMBER.fullmatch(value := sample.get(column, "")):
                origin = capture.origin(line)
                yield Reading(origin=origin, name=name, value=value, unit=unit, vendor="intel", index=index)
