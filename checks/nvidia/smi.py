"""What `nvidia-smi` prints without arguments, in every width it has had.

The table has had three widths, two names for its driver ("Driver Version", from 610 on "KMD Version") and, on Windows,
a driver model where Linux prints persistence; names longer than the column end in `...`. Its rows are therefore read
cell by cell. Parts of a device (MIG) are no devices of their own, and the table does not tell their profiles.

What it cannot know: whether an `ERR!` in power or fan alone will last (it is often gone a second later), so that only
an `ERR!` elsewhere is told as the device's health; and the memory of a process that another user or WDDM hides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from diag.api import (
    Accelerator,
    Capture,
    DeviceProcess,
    Driver,
    Fact,
    Line,
    Partition,
    Reading,
    Recognise,
    Text,
    Unavailable,
    expression,
    pci_address,
    probe,
)

HEADER = expression(
    r"NVIDIA-SMI\s+\S+\s+(?:Driver|KMD) Version:\s*(\S+)(?:\s+CUDA (?:UMD )?Version:\s*(\d{1,3}\.\d{1,3})?)?"
)
HEAD = r"\| ?GPU\s{1,8}(?:Fan\s{1,8})?Name\s.{0,60}\| Bus-Id\s{1,16}Disp\.A"
"""Other vendors' tools print a table of the same columns, but not of devices that are called GPU."""
VERSION = expression(r"\d{1,6}(?:\.\d{1,6})+")
MODES = {"On", "Off", "N/A", "ERR!", "WDDM", "TCC", "MCDM", "WDM"}
INDEX = expression(r"[0-9]{1,4}")
USED = expression(r"([0-9]{1,9})\s?Mi?B\s{0,8}/\s{0,8}([0-9]{1,9})\s?Mi?B")
PROCESS_MEMORY = expression(r"([0-9]{1,9})Mi?B")
NUMBERS = (
    ("temperature", expression(r"(?<!\S)([0-9]{1,3})C(?!\S)"), "C"),
    ("power", expression(r"(?<!\S)([0-9]{1,5}(?:\.[0-9]{1,3})?)W ?/"), "W"),
    ("power.limit", expression(r"/ {0,4}([0-9]{1,5}(?:\.[0-9]{1,3})?)W(?!\S)"), "W"),
)
COMPUTE = {
    "Default": "Default",
    "E. Process": "Exclusive_Process",
    "E. Thread": "Exclusive_Thread",
    "Prohibited": "Prohibited",
}
SWITCH = {"On": "Enabled", "Off": "Disabled"}
TYPES = {"C", "G", "C+G", "M", "M+C", "M+G", "M+C+G", "?"}
ERROR = "ERR!"
REFUSALS = (
    "NVIDIA-SMI has failed because",
    "NVIDIA-SMI couldn't find",
    "Failed to initialize NVML",
    "Unable to determine the device handle",
    "No devices were found",
    "No devices found.",
)
PROCESSES = expression(r"\|\s{1,4}(?:Compute processes|Processes):\s")
LOST = expression(r"GPU ?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]): ([A-Z][A-Za-z ]{1,60})")
ALONE = r"^\W*No devices (?:were )?found\W*$"
"""Other tools print these words, too, but not alone on a line."""


@dataclass
class Row:
    """A device of the table: where its lines stand, what was read so far, and how many of them have gone by."""

    line: Line
    place: int
    index: int
    name: str
    address: str
    readings: list[tuple[str, str, str, Line]] = field(default_factory=list)
    memory_mib: float | None = None
    broken: bool = False
    lines: int = 1

    def add(self, name: str, value: str, line: Line, unit: str = "") -> None:
        """Keep a reading that was told."""
        if value:
            self.readings.append((name, value, unit, line))

    def cell(self, cells: list[str], column: int) -> str:
        """The text of a column, empty where the line ends before the column does."""
        return cells[self.place + column].strip() if len(cells) > self.place + column + 1 else ""


@probe(
    "nvidia-smi",
    tells=(Driver, Accelerator, Reading, Partition, DeviceProcess, Text),
    command=("nvidia-smi",),
    timeout=20.0,
    recognise=Recognise(
        literals=("NVIDIA-SMI", "Bus-Id", "| MIG devices:", *REFUSALS[2:]),
        pattern="|".join((HEADER.pattern, HEAD, r"\| MIG devices:\s", *REFUSALS[:4], ALONE)),
    ),
)
def nvidia_smi(capture: Capture) -> Iterator[Fact]:
    """The table: driver, the CUDA version it offers, each device, its parts and processes; or the tool's refusal.

    That the table of processes was there is told by a mark.
    """
    row: Row | None = None
    for line in capture.lines():
        if PROCESSES.search(line.text):
            yield Text(origin=capture.origin(line), kinds=("device-processes",))
        cells = line.text.split("|")
        if begun := _row(cells, line):
            yield from _told(capture, row)
            row = begun
        elif row and row.lines < 3 and len(cells) > 1:
            (_usage if row.lines == 1 else _divided)(row, cells, line)
            row.lines += 1
        elif len(cells) > 1:
            yield from _below(capture, cells, line)
        if begun is None:
            yield from _said(capture, line)
        if row and not line.text.strip("+-| \t"):
            yield from _told(capture, row)
            row = None
    yield from _told(capture, row)


def _said(capture: Capture, line: Line) -> Iterator[Fact]:
    """The driver of the table's head, or a refusal."""
    if reason := _refusal(line.text):
        yield Unavailable(origin=capture.origin(line), what="nvidia-smi", reason=reason, tells=("Driver",))
        if (lost := LOST.search(reason)) and (address := pci_address(lost[1])):
            yield _reading(capture, line, ("health", lost[2].strip(), ""), None, address)
    elif found := HEADER.search(line.text):
        version = found[1] if VERSION.fullmatch(found[1]) else ""
        if version or found[2]:
            yield Driver(origin=capture.origin(line), vendor="nvidia", version=version, offers=found[2] or "")


def _refusal(text: str) -> str:
    words = next((words for words in REFUSALS if words in text), "")
    if not words or (words.startswith("No devices") and not re.match(ALONE, text)):
        return ""
    return text[text.index(words) :].strip()


def _row(cells: list[str], line: Line) -> Row | None:
    """The first line of a device: number, name and mode in one cell, its address in the next, errors in the third."""
    for place, (left, right) in enumerate(pairwise(cells)):
        words, told = left.split(), (right.split() or [""])[0]
        if len(words) < 3 or words[-1] not in MODES or not INDEX.fullmatch(words[0]):
            continue
        address = pci_address(told)
        if not address and told not in ("N/A", ERROR):
            continue
        name = " ".join(words[1:-1])
        row = Row(line, place, int(words[0]), "" if name == ERROR else name, address)
        errors = row.cell(cells, 2)
        row.add("persistence", words[-1] if words[-1] in SWITCH else "", line)
        row.add("ecc.mode", SWITCH.get(errors, ""), line)
        row.add("ecc.uncorrected", errors if re.fullmatch(r"[0-9]{1,19}", errors) else "", line)
        row.broken = ERROR in (name, told, errors)
        return row
    return None


def _usage(row: Row, cells: list[str], line: Line) -> None:
    """The second line of a device: fan, temperature, state and power; memory; utilization and compute mode."""
    sensors, memory, rest = (row.cell(cells, column) for column in range(3))
    for name, pattern, unit in NUMBERS:
        found = pattern.search(sensors)
        row.add(name, found[1] if found else "", line, unit)
    if used := USED.fullmatch(memory):
        row.memory_mib = float(used[2])
        row.add("memory.used", used[1], line, "MiB")
    busy, _, mode = rest.partition(" ")
    row.add("utilization", busy[:-1] if re.fullmatch(r"[0-9]{1,3}%", busy) else "", line, "%")
    row.add("compute.mode", COMPUTE.get(mode.strip(), ""), line)
    row.broken = row.broken or ERROR in (*sensors.split()[1:3], busy, memory)


def _divided(row: Row, cells: list[str], line: Line) -> None:
    """The third line of a device, from 450 on: its MIG mode, with a star where it waits for a reset."""
    mode = row.cell(cells, 2)
    row.add("mig.mode", mode if mode.rstrip("*") in SWITCH.values() else "", line)


def _told(capture: Capture, row: Row | None) -> Iterator[Fact]:
    if row is None:
        return
    yield Accelerator(
        origin=capture.origin(row.line),
        vendor="nvidia",
        name=row.name,
        index=row.index,
        address=row.address,
        memory_mib=row.memory_mib,
        seen_by="tool",
    )
    if row.broken:
        yield _reading(capture, row.line, ("health", ERROR, ""), row.index, row.address)
    for name, value, unit, line in row.readings:
        yield _reading(capture, line, (name, value, unit), row.index, row.address)


def _reading(capture: Capture, line: Line, told: tuple[str, str, str], index: int | None, address: str) -> Reading:
    name, value, unit = told
    return Reading(
        origin=capture.origin(line),
        name=name,
        value=value,
        unit=unit,
        vendor="nvidia",
        index=index,
        address=address,
    )


def _below(capture: Capture, cells: list[str], line: Line) -> Iterator[Fact]:
    """A line of the tables below: a part of a device (`0  2  0  0 | 26MiB / 40448MiB`), or a process."""
    for left, right in pairwise(cells):
        words = left.split()
        numbers = len(words) == 4 and all(INDEX.fullmatch(word) for word in words)
        if numbers and (memory := USED.search(right)):
            yield Partition(
                origin=capture.origin(line), index=int(words[0]), memory_mib=float(memory[2]), vendor="nvidia"
            )
        elif told := _process(words):
            index, pid, name, mib = told
            yield DeviceProcess(
                origin=capture.origin(line), index=index, pid=pid, name=name, memory_mib=mib, vendor="nvidia"
            )


def _process(words: list[str]) -> tuple[int, int, str, float | None] | None:
    """Device, number, name and memory of a process; from 450 on two ids of a part stand before the number."""
    start = 1 if len(words) > 3 and words[2] in TYPES else 3
    if len(words) <= start + 1 or words[start + 1] not in TYPES or not INDEX.fullmatch(words[0]):
        return None
    if not re.fullmatch(r"[0-9]{1,10}", words[start]):
        return None
    rest = words[start + 2 :]
    memory = PROCESS_MEMORY.fullmatch(rest[-1]) if rest else None
    name = rest[:-1] if memory or rest[-1:] == ["N/A"] else rest
    return int(words[0]), int(words[start]), " ".join(name), float(memory[1]) if memory else None
