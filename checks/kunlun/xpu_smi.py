"""Kunlunxin's `xpu_smi`, also called `xpu-smi`, a name that Intel's tool has as well: the text tells them apart.

Its table has had two shapes. That of P800 is like NVIDIA's; a device has three rows. That of K100 to R300 has a row a
device under named columns, and says "Runtime Version" where the newer says "XPU-RT Version". Inside a container
without the vendor's libraries the newer one prints the version of a driver it poses as (515.58).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diag.api import Accelerator, Capture, Driver, Fact, Line, Reading, Recognise, Runtime, expression, probe, replace

HEADER = expression(r"XPU-SMI\s+Driver Version:\s*(\S{1,40})(?:\s+XPU-RT Version:\s*(\S{1,40}))?")
NAMES = r"\| XPU  Name\s{1,20}Persistence-M"
PLAIN = expression(r"^\W*(Runtime|Driver) Version:\s*([0-9][\w.]{0,40})\s*$")
COLUMNS = expression(r"\|\s{0,9}PCI Addr\s{0,9}\|\s{0,9}Model\s{0,9}\|")
VERSION = expression(r"[0-9]{1,6}(?:\.[0-9]{1,6}){1,6}")
ROW = expression(
    r"^\W*([0-9]{1,4})\s{1,9}(\S[^|]{0,60}?)\s{1,40}(?:N/A|On|Off)\s{0,9}\|\s{0,9}([0-9A-Fa-f]{4,8}(?::[0-9A-Fa-f]{2}){2}\.[0-9])"
)
ERRORS = expression(r"\|\s{0,40}([0-9]{1,9})\s{0,9}\|\s*$")
USAGE = expression(
    r"(?P<temperature>[0-9]{1,4})C\s[^|]{0,40}\|\s{0,20}(?P<used>[0-9]{1,9})MiB /\s{0,9}(?P<total>[0-9]{1,9})MiB"
)
POWER = expression(r"([0-9]{1,6})W /\s{0,9}([0-9]{1,6})W")
UTILIZATION = expression(r"\|\s{0,20}([0-9]{1,3})%")
PAIR = expression(r"([0-9]{1,9})\s?/\s?([0-9]{1,9}) MB")
PCI = expression(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
NUMBER = expression(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s?(?:%|C|W|MiB|x)?")
STATES = {
    "State": ("health", ""),
    "UseRate": ("utilization", "%"),
    "Temp": ("temperature", "C"),
    "Power(W)": ("power", "W"),
}
LOG = {
    ("Memory Usage", "Used"): ("memory.used", "MiB"),
    ("Memory Usage", "Free"): ("memory.free", "MiB"),
    ("Utilization", "Xpu"): ("utilization", "%"),
    ("Temperature", "XPU Current Temp"): ("temperature", "C"),
    ("Power Readings", "Power Draw"): ("power", "W"),
    ("Power Readings", "Enforced Power Limit"): ("power.limit", "W"),
    ("Ecc Mode", "Current"): ("ecc.mode", ""),
    ("Volatile", "DRAM Uncorrectable"): ("ecc.uncorrected", ""),
    ("Volatile", "DRAM Correctable"): ("ecc.corrected", ""),
    ("Aggregate", "DRAM Uncorrectable"): ("ecc.uncorrected.total", ""),
    ("Aggregate", "DRAM Correctable"): ("ecc.corrected.total", ""),
    ("PCIe Generation", "Current"): ("pcie.generation", ""),
    ("PCIe Generation", "Max"): ("pcie.generation.max", ""),
    ("Link Width", "Current"): ("pcie.width", ""),
    ("Link Width", "Max"): ("pcie.width.max", ""),
    ("Firmware Version", "ALL Version"): ("firmware", ""),
}
UNITS = dict((*LOG.values(), *STATES.values()))


@probe(
    "kunlun/xpu-smi",
    tells=(Driver, Runtime, Accelerator, Reading),
    command=("xpu_smi",),
    timeout=20.0,
    recognise=Recognise(
        literals=("XPU-SMI ", "| XPU  Name ", "Runtime Version:", "PCI Addr "),
        pattern="|".join((HEADER.pattern, NAMES, PLAIN.pattern, COLUMNS.pattern)),
    ),
)
def xpu_smi(capture: Capture) -> Iterator[Fact]:
    """The table, of either shape."""
    waiting: Accelerator | None = None
    columns: list[str] = []
    plain: list[tuple[Line, str, str]] = []
    for line in capture.lines():
        if waiting:
            yield from _used(capture, line, waiting)
            waiting = None
        elif found := HEADER.search(line.text):
            yield from _versions(capture, line, found[1], found[2] or "")
        elif found := PLAIN.match(line.text):
            plain.append((line, found[1], found[2]))
        elif COLUMNS.search(line.text):
            columns = _cells(line.text)
            for at, what, version in plain:
                driver, runtime = (version, "") if what == "Driver" else ("", version)
                yield from _versions(capture, at, driver, runtime)
        elif columns:
            yield from _listed(capture, line, columns)
        elif found := ROW.match(line.text):
            waiting = _device(capture, line, found[2], found[3], int(found[1]))
            yield from _readings(capture, line, waiting, {"ecc.uncorrected": _first(ERRORS, line.text)})
    if waiting:
        yield waiting


def _versions(capture: Capture, line: Line, driver: str, runtime: str) -> Iterator[Fact]:
    if VERSION.fullmatch(driver):
        yield Driver(origin=capture.origin(line), vendor="kunlun", version=driver)
    if VERSION.fullmatch(runtime):
        yield Runtime(origin=capture.origin(line), name="xpu-rt", version=runtime, kind="library")


def _device(capture: Capture, line: Line, name: str, address: str, index: int | None) -> Accelerator:
    address = ":".join(("0000", *address.lower().split(":")))[-12:]
    return Accelerator(
        origin=capture.origin(line), vendor="kunlun", name=name, index=index, address=address, seen_by="tool"
    )


def _used(capture: Capture, line: Line, device: Accelerator) -> Iterator[Fact]:
    """The device with the memory of its second row, and the readings of that row."""
    found = USAGE.search(line.text)
    yield replace(device, memory_mib=float(found["total"])) if found else device
    power = POWER.search(line.text)
    told = {
        "temperature": found["temperature"] if found else "",
        "power": power[1] if power else "",
        "power.limit": power[2] if power else "",
        "utilization": _first(UTILIZATION, line.text),
        "memory.used": found["used"] if found else "",
    }
    yield from _readings(capture, line, device, told)


def _readings(capture: Capture, line: Line, device: Accelerator, told: dict[str, str]) -> Iterator[Fact]:
    for name, value in told.items():
        if value:
            yield Reading(
                origin=capture.origin(line),
                name=name,
                value=value,
                unit=UNITS[name],
                vendor="kunlun",
                index=device.index,
                address=device.address,
            )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _cells(text: str) -> list[str]:
    return [cell.strip() for cell in text.strip().strip("|").split("|")]


def _listed(capture: Capture, line: Line, columns: Sequence[str]) -> Iterator[Fact]:
    """The device of a row under named columns: numbered, or by its device file."""
    row = dict(zip(columns, _cells(line.text), strict=False))
    if not PCI.fullmatch(row.get("PCI Addr", "")):
        return
    number = row.get("DevID") or row.get("INODE", "").partition("/dev/xpu")[2]
    index = int(number) if re.fullmatch(r"[0-9]{1,4}", number) else None
    device = _device(capture, line, row["Model"], row["PCI Addr"], index)
    memory = PAIR.search(row.get("Memory", ""))
    yield replace(device, memory_mib=float(memory[2])) if memory else device
    values = {name: row.get(column, "").removesuffix("%").strip() for column, (name, _) in STATES.items()}
    yield from _readings(capture, line, device, {**values, "memory.used": memory[1] if memory else ""})


@probe(
    "kunlun/xpu-smi/log",
    tells=(Driver, Runtime, Accelerator, Reading),
    command=("xpu-smi", "-q"),
    cost="import",
    timeout=20.0,
    recognise=Recognise(literals=("XPUSMI LOG",), pattern=r"=XPUSMI LOG=", lines=2_000),
)
def xpu_smi_log(capture: Capture) -> Iterator[Fact]:
    """What `xpu-smi -q` prints: the driver, then each device under its address."""
    devices: list[Accelerator] = []
    readings: list[Fact] = []
    section = ""
    for line in capture.lines():
        key, colon, value = (part.strip() for part in line.text.partition(" : "))
        words = line.text.split()
        if words[:1] == ["XPU"] and len(words) == 2 and PCI.fullmatch(words[1]):
            devices.append(_device(capture, line, "", words[1], None))
        elif not colon:
            section = key or section
        elif not devices:
            driver, runtime = value if key == "Driver Version" else "", value if key == "XPU-RT Version" else ""
            yield from _versions(capture, line, driver, runtime)
        else:
            devices[-1] = _described(devices[-1], section, key, value)
            name, _ = LOG.get((section, key), ("", ""))
            plain = NUMBER.fullmatch(value)
            told = plain[1] if plain else value if name in ("ecc.mode", "firmware") else ""
            readings += _readings(capture, line, devices[-1], {name: told} if name else {})
    yield from devices
    yield from readings


def _described(device: Accelerator, section: str, key: str, value: str) -> Accelerator:
    """The device with what one more line tells of it."""
    if key == "Product Name":
        return replace(device, name=value)
    if key == "Minor Number" and re.fullmatch(r"[0-9]{1,4}", value):
        return replace(device, index=int(value))
    total = NUMBER.fullmatch(value) if (section, key) == ("Memory Usage", "Total") else None
    return replace(device, memory_mib=float(total[1])) if total else device
