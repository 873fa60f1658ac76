"""`amd-smi`: its blocks (`list`, `static`, `metric`), its table, its monitor, its topology and its versions.

The table is that of ROCm 7, which cuts long values: a driver's version of eight characters may be cut and is not told,
and a name that begins with `...` was cut at its start. Sizes in "MB" are in truth MiB. Its JSON is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Fact,
    Line,
    Link,
    Reading,
    Recognise,
    Runtime,
    Unavailable,
    expression,
    pci_address,
    probe,
)

BLOCK = expression(r"^\W*GPU: ([0-9]{1,4})\s*$")
FIELD = expression(r"^\s*([A-Z][A-Z0-9_]{1,40}):(?:\s+(\S.*))?$")
ADDRESS = expression(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
RELEASE = expression(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,4}")
QUANTITY = expression(r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)(?: ?(?:%|°C|W|MHz|MB|GB))?")
VERSIONS = expression(r"\b(ROCm|amdgpu) version: (\S{1,40})")
TITLE = expression(r"^\W*AMD-SMI [0-9]")
DEVICE = expression(r"^\W*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\s{1,40}(\S.*)$")
METER = expression(r"^\W*GPU\s.*\b(?:POWER|VRAM_USED|VRAM_USAGE|GFX_UTIL)\b")
EDGE = expression(r"^\W*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\s+([A-Z].*)$")
METRIC = expression(r"^\W*GPU([0-9]{1,4})\s+([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\s+[0-9]")
WORDS = {
    ("ASIC", "MARKET_NAME"): "name",
    ("ASIC", "TARGET_GRAPHICS_VERSION"): "architecture",
    ("BUS", "BDF"): "address",
    ("GPU", "BDF"): "address",
    ("VRAM", "SIZE"): "memory_mib",
    ("MEM_USAGE", "TOTAL_VRAM"): "memory_mib",
}
READINGS = {
    ("USAGE", "GFX_ACTIVITY"): ("utilization", "percent"),
    ("POWER", "SOCKET_POWER"): ("power", "W"),
    ("LIMIT", "SOCKET_POWER"): ("power.limit", "W"),
    ("PPT0", "SOCKET_POWER_LIMIT"): ("power.limit", "W"),
    ("TEMPERATURE", "HOTSPOT"): ("temperature", "C"),
    ("MEM_USAGE", "USED_VRAM"): ("memory.used", "MiB"),
    ("MEM_USAGE", "FREE_VRAM"): ("memory.free", "MiB"),
    ("GFX_0", "CLK"): ("clock.sm", "MHz"),
    ("GFX_0", "MAX_CLK"): ("clock.sm.max", "MHz"),
    ("MEM_0", "CLK"): ("clock.memory", "MHz"),
    ("PCIE", "WIDTH"): ("pcie.width", ""),
    ("BUS", "MAX_PCIE_WIDTH"): ("pcie.width.max", ""),
    ("ECC", "TOTAL_CORRECTABLE_COUNT"): ("ecc.corrected", ""),
    ("ECC", "TOTAL_UNCORRECTABLE_COUNT"): ("ecc.uncorrected", ""),
}
METERS = {
    "POWER": ("power", "W"),
    "GPU_TEMP": ("temperature", "C"),
    "GPU_T": ("temperature", "C"),
    "GFX_UTIL": ("utilization", "percent"),
    "GFX%": ("utilization", "percent"),
    "GFX_CLOCK": ("clock.sm", "MHz"),
    "GFX_CLK": ("clock.sm", "MHz"),
    "MEM_CLOCK": ("clock.memory", "MHz"),
    "VRAM_USED": ("memory.used", "MiB"),
    "SINGLE_ECC": ("ecc.corrected", ""),
    "DOUBLE_ECC": ("ecc.uncorrected", ""),
}
KEYS = sorted({key for _, key in (*WORDS, *READINGS)} | {"VERSION"})
"""What is read of the blocks: each subcommand prints others of one machine, so that they are known line by line."""
REFUSAL = "Unable to get devices, driver not initialized"


@probe(
    "amd-smi",
    tells=(Accelerator, Driver, Reading),
    command=("amd-smi", "static", "--asic", "--bus", "--vram", "--driver", "--limit"),
    timeout=20.0,
    recognise=Recognise(
        literals=("GPU: ", REFUSAL, *(f"{key}: " for key in KEYS)),
        pattern=rf"^\W*GPU: [0-9]{{1,4}}\s*$|^\W*ERROR:root:{REFUSAL}|^\s+(?:{'|'.join(KEYS)}): ",
        each=True,
        lines=200,
    ),
)
def amd_smi(capture: Capture) -> Iterator[Fact]:
    """What `list`, `static` and `metric` print: a block for each device, told as long as it is indented."""
    held: list[Line] = []
    for line in capture.lines():
        if REFUSAL in line.text:
            reason = line.text[line.text.index(REFUSAL) :].strip()
            yield Unavailable(origin=capture.origin(line), what="amd-smi", reason=reason, tells=("Accelerator",))
        if BLOCK.match(line.text) or (held and line.text.strip() and _indent(line.text) <= _indent(held[0].text)):
            yield from _block(capture, held)
            held = [line] if BLOCK.match(line.text) else []
        elif held:
            held.append(line)
    yield from _block(capture, held)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _block(capture: Capture, held: list[Line]) -> Iterator[Fact]:
    """One device: each field under the name of its section."""
    if not held or not (opened := BLOCK.match(held[0].text)):
        return
    index, section = int(opened[1]), "GPU"
    known: dict[str, str] = {}
    readings: list[Fact] = []
    for line in held[1:]:
        if not (found := FIELD.match(line.text.rstrip())):
            continue
        key, value = found[1], (found[2] or "").strip()
        if not value:
            section = key
        elif word := WORDS.get((section, key)):
            known.setdefault(word, value)
        elif reading := READINGS.get((section, key)):
            readings += _reading(capture, line, reading, value, index)
        elif (section, key) == ("DRIVER", "VERSION") and value != "N/A":
            readings.append(_driver(capture, line, value))
    if known or readings:
        yield _device(capture, held[0], index, known)
    yield from readings


def _device(capture: Capture, line: Line, index: int, known: dict[str, str]) -> Accelerator:
    name, address = known.get("name", ""), known.get("address", "")
    return Accelerator(
        origin=capture.origin(line),
        vendor="amd",
        name="" if name.startswith(("0x", "N/A")) else name,
        index=index,
        address=pci_address(address),
        memory_mib=_mebibytes(known.get("memory_mib", "")),
        architecture=known.get("architecture", "").replace("N/A", ""),
        seen_by="tool",
    )


def _mebibytes(size: str) -> float | None:
    found = QUANTITY.fullmatch(size)
    return float(found[1]) * (1024 if size.endswith("GB") else 1) or None if found else None


def _reading(capture: Capture, line: Line, told: tuple[str, str], value: str, index: int | None) -> Iterator[Reading]:
    name, unit = told
    if (found := QUANTITY.fullmatch(value)) and (name, found[1]) != ("power.limit", "0"):
        yield Reading(origin=capture.origin(line), name=name, value=found[1], unit=unit, vendor="amd", index=index)


def _driver(capture: Capture, line: Line, version: str) -> Driver:
    """A release of the kernel in place of a version is that of the kernel's own driver, which has none."""
    known = RELEASE.fullmatch(version)
    return Driver(origin=capture.origin(line), vendor="amd", version=version if known else "")


@probe(
    "amd-smi/version",
    tells=(Driver, Runtime),
    recognise=Recognise(
        literals=("AMDSMI Tool: ", "AMD-SMI "), pattern=rf"^\W*AMDSMI Tool: |{TITLE.pattern}", each=True, lines=0
    ),
)
def amd_smi_version(capture: Capture) -> Iterator[Fact]:
    """The line of `amd-smi version`, and the same at the head of the table: ROCm and the loaded driver."""
    for line in capture.lines():
        for name, version in VERSIONS.findall(line.text):
            if not RELEASE.fullmatch(version):
                continue
            if name == "ROCm":
                yield Runtime(origin=capture.origin(line), name="rocm", version=version, kind="toolkit")
            else:
                yield _driver(capture, line, version)


@probe(
    "amd-smi/table",
    tells=(Accelerator, Reading),
    recognise=Recognise(
        literals=("AMD-SMI ", "GPU-Name", " W |", " MB |"),
        pattern=rf"{TITLE.pattern}|^\W*BDF\s+GPU-Name|{DEVICE.pattern}|^\W*[0-9]{{1,4}}\s.* MB \|",
        each=True,
        lines=8,
    ),
)
def amd_smi_table(capture: Capture) -> Iterator[Fact]:
    """The table that `amd-smi` prints from ROCm 7 on: two rows for each device, each of two cells."""
    for upper, lower in pairwise(capture.lines()):
        cells, below = (line.text.strip().strip("|").split("|") for line in (upper, lower))
        found = DEVICE.match(cells[0])
        numbers = below[0].split()
        if not found or not numbers or not re.fullmatch(r"[0-9]{1,4}", numbers[0]):
            continue
        index = int(numbers[0])
        right, under = (row[1].split() if len(row) > 1 else [] for row in (cells, below))
        used, _, total = "".join(under[-2:-1]).partition("/")
        known = {"name": found[2].strip(), "address": found[1], "memory_mib": total}
        yield _device(capture, upper, index, known)
        yield from _cells(capture, upper, right, index)
        yield from _reading(capture, lower, ("memory.used", "MiB"), used, index)
        yield from _reading(capture, lower, ("utilization", "percent"), " ".join(under[:2]), index)


def _cells(capture: Capture, line: Line, words: list[str], index: int) -> Iterator[Reading]:
    """The right cell of the upper row: activity of the memory, temperature, errors, power and its limit."""
    power, _, limit = "".join(words[-2:-1]).partition("/")
    temperature = words[words.index("°C") - 1] if "°C" in words[1:] else ""
    told = [("temperature", temperature, "C"), ("ecc.uncorrected", "".join(words[-3:-2]), "")]
    told += [("power", power, "W"), ("power.limit", limit if limit != "0" else "", "W")]
    for name, value, unit in told:
        yield from _reading(capture, line, (name, unit), value, index)


@probe(
    "amd-smi/monitor",
    tells=(Accelerator, Reading),
    recognise=Recognise(
        literals=("GPU  ", " W  ", " MB", " GB", " N/A  "),
        pattern=rf"{METER.pattern}|^\s*[0-9]{{1,4}}\s+(?:N/A|[0-9.]+ (?:W|°C|%|MHz|MB))\s",
        each=True,
        lines=4,
    ),
)
def amd_smi_monitor(capture: Capture) -> Iterator[Fact]:
    """The rows of `amd-smi monitor`; another table's header, or a line that is no row, ends them."""
    columns: list[str] = []
    listed: set[int] = set()
    for line in capture.lines():
        words = re.split(r"\s{2,}", line.text.strip().replace("/ ", "/").replace("/ ", "/"))
        if METER.match(line.text):
            columns = line.text.split()
        elif not columns or not re.fullmatch(r"[0-9]{1,4}", words[0]):
            columns = []
        else:
            row = dict(zip(columns, words, strict=False))
            yield from _metered(capture, line, int(words[0]), row, listed)


def _metered(capture: Capture, line: Line, index: int, row: dict[str, str], listed: set[int]) -> Iterator[Fact]:
    total = row.get("VRAM_TOTAL") or row.get("VRAM_USAGE", "").partition("/")[2].strip()
    if index not in listed:
        yield _device(capture, line, index, {"memory_mib": total})
    listed.add(index)
    for key, value in row.items():
        if told := METERS.get(key):
            yield from _reading(capture, line, told, value, index)


@probe(
    "amd-smi/topology",
    tells=(Link, Accelerator),
    recognise=Recognise(
        literals=("LINK TYPE TABLE:", "LINK METRIC TABLE:"), pattern=r"^\W*LINK (?:TYPE|METRIC) TABLE:", lines=300
    ),
)
def amd_smi_topology(capture: Capture) -> Iterator[Fact]:
    """The types of the links between the devices, which are named by their addresses; `xgmi` numbers them."""
    columns: list[str] | None = None
    for line in capture.lines():
        if "LINK TYPE TABLE:" in line.text:
            columns = []
        elif found := METRIC.match(line.text):
            yield _device(capture, line, int(found[1]), {"address": found[2]})
        elif columns == []:
            columns = ADDRESS.findall(line.text)[:256]
        elif columns and (found := EDGE.match(line.text)) and found[1] in columns:
            kinds = dict(zip(columns, found[2].split(), strict=False))
            for second in columns[columns.index(found[1]) + 1 :]:
                if kinds.get(second, "N/A") not in ("N/A", "SELF"):
                    yield Link(
                        origin=capture.origin(line), first=found[1], second=second, kind=kinds[second], vendor="amd"
                    )
        elif columns and not ADDRESS.search(line.text):
            columns = None
