"""What `nvidia-smi --query-gpu=… --format=csv` tells, whatever columns were asked for, and `--query-compute-apps`.

The head names the columns and their units; where it was left out (`noheader`) nobody can know what the numbers are.
The live command asks for columns that exist since driver 418 alone: one unknown name makes an older tool refuse them
all. From 535 on the throttle reasons are called event reasons; the old names still work in 610.

What it cannot know: which device a row is about, where neither its number nor its address was asked for. Rows then
count as devices in their order, unless they are samples over time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from diag.api import (
    Accelerator,
    Capture,
    DeviceProcess,
    Driver,
    Fact,
    Line,
    Reading,
    Recognise,
    Text,
    expression,
    pci_address,
    probe,
)

ASKED = (
    "index,pci.bus_id,name,driver_version,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,"
    "power.limit,power.default_limit,persistence_mode,compute_mode,ecc.mode.current,ecc.errors.uncorrected.volatile.total,"
    "ecc.errors.corrected.volatile.total,ecc.errors.uncorrected.aggregate.total,ecc.errors.corrected.aggregate.total,"
    "retired_pages.pending,clocks.sm,clocks.max.sm,clocks.mem,pcie.link.gen.current,pcie.link.gen.max,"
    "pcie.link.width.current,pcie.link.width.max,clocks_throttle_reasons.sw_power_cap,"
    "clocks_throttle_reasons.hw_slowdown,clocks_throttle_reasons.hw_thermal_slowdown,"
    "clocks_throttle_reasons.hw_power_brake_slowdown,clocks_throttle_reasons.sw_thermal_slowdown,"
    "clocks_throttle_reasons.sync_boost"
)
NUMBERS = {
    "memory.used": ("memory.used", "MiB"),
    "memory.free": ("memory.free", "MiB"),
    "utilization.gpu": ("utilization", "%"),
    "temperature.gpu": ("temperature", "C"),
    "power.draw": ("power", "W"),
    "power.limit": ("power.limit", "W"),
    "power.default_limit": ("power.limit.default", "W"),
    "clocks.current.sm": ("clock.sm", "MHz"),
    "clocks.max.sm": ("clock.sm.max", "MHz"),
    "clocks.current.memory": ("clock.memory", "MHz"),
    "ecc.errors.uncorrected.volatile.total": ("ecc.uncorrected", ""),
    "ecc.errors.corrected.volatile.total": ("ecc.corrected", ""),
    "ecc.errors.uncorrected.aggregate.total": ("ecc.uncorrected.total", ""),
    "ecc.errors.corrected.aggregate.total": ("ecc.corrected.total", ""),
    "pcie.link.gen.current": ("pcie.generation", ""),
    "pcie.link.gen.max": ("pcie.generation.max", ""),
    "pcie.link.width.current": ("pcie.width", ""),
    "pcie.link.width.max": ("pcie.width.max", ""),
}
"""Columns of numbers, by their name in the head: the reading they are, and its unit."""
WORDS = {
    "persistence_mode": ("persistence", {"Enabled": "On", "Disabled": "Off"}),
    "ecc.mode.current": ("ecc.mode", {"Enabled": "Enabled", "Disabled": "Disabled"}),
    "mig.mode.current": ("mig.mode", {"Enabled": "Enabled", "Disabled": "Disabled"}),
    "retired_pages.pending": ("retired.pending", {"Yes": "Yes", "No": "No"}),
    "remapped_rows.failure": ("remapped.failure", {"Yes": "Yes", "No": "No", "1": "Yes", "0": "No"}),
    "remapped_rows.pending": ("retired.pending", {"Yes": "Yes", "No": "No", "1": "Yes", "0": "No"}),
}
"""Columns of words, and what they are in the words of the readings."""
NAMED = {
    "compute_mode": "compute.mode",
    "fabric.state": "fabric.state",
    "vbios_version": "firmware",
    "gpu_recovery_action": "health",
}
REASON = expression(r"clocks_(?:throttle|event)_reasons\.([a-z_]{1,40})")
NO_CAUSE = {"gpu_idle", "applications_clocks_setting", "supported"}
NO_REASON = {*NO_CAUSE, "active"}
BITS = (
    *((0x4, "sw_power_cap"), (0x8, "hw_slowdown"), (0x10, "sync_boost"), (0x20, "sw_thermal_slowdown")),
    *((0x40, "hw_thermal_slowdown"), (0x80, "hw_power_brake_slowdown"), (0x100, "display_clock_setting")),
)
"""Of the bit mask `clocks_event_reasons.active`."""
FIELD = r"[a-z][A-Za-z0-9_.]{1,80}(?: \[[A-Za-z%/]{1,10}\])?"
LITERALS = (
    *("memory.total", "memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "power.draw", "pci.bus_id"),
    *("driver_version", "clocks.current.", "clocks.max.", "compute_cap", "ecc.mode", "ecc.errors.", "mig.mode"),
    *("pcie.link.", "clocks_throttle_reasons", "clocks_event_reasons", "used_gpu_memory", "used_memory ["),
    *("remapped_rows.", "retired_pages."),
)
HEAD = expression(rf"^\W*{FIELD}(?:, ?{FIELD})*\s*$")
NUMBER = expression(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?)(?: ?(?:MiB|C|W|%|MHz))?")
LOST = {"[GPU is lost]", "[GPU requires reset]", "[Unknown Error]"}
KNOWN = {*NUMBERS, *WORDS, *NAMED, "pci.bus_id", "gpu_bus_id", "driver_version", "memory.total", "compute_cap"} | {
    *("used_gpu_memory", "used_memory", "clocks_throttle_reasons.active", "clocks_event_reasons.active")
}
"""Columns of which a head names at least one."""
MOST = 400


@probe(
    "nvidia-smi/query",
    tells=(Driver, Accelerator, Reading, DeviceProcess, Text),
    command=("nvidia-smi", f"--query-gpu={ASKED}", "--format=csv"),
    timeout=20.0,
    recognise=Recognise(literals=LITERALS, pattern=HEAD.pattern, lines=64),
)
def nvidia_smi_query(capture: Capture) -> Iterator[Fact]:
    """A head of names, and below it a row for each device or process."""
    head: list[str] = []
    driver = ""
    rows = 0
    for line in capture.lines():
        cells = [cell.strip() for cell in line.text.split(",", MOST)]
        if _known(cells) and HEAD.match(line.text):
            head, rows = [cell.partition(" [")[0] for cell in cells], 0
            if any((found := REASON.fullmatch(column)) and found[1] not in NO_CAUSE for column in head):
                yield Text(origin=capture.origin(line), kinds=("clock-reasons",))
        elif row := _row(head, cells):
            if row.get("driver_version", driver) != driver:
                driver = row["driver_version"]
                yield from _driver(capture, line, driver)
            yield from _process(capture, line, row) if "pid" in row else _device(capture, line, row, rows)
            rows += 1
        elif rows and line.text.strip():
            head = []


def _known(cells: Sequence[str]) -> bool:
    """Whether the cells name columns: one of them names one that no value looks like."""
    return any(cell.partition(" [")[0] in KNOWN for cell in cells)


def _row(head: Sequence[str], cells: list[str]) -> Mapping[str, str]:
    """The cells by their columns; the name of a process may hold commas of its own. Empty where they do not fit."""
    more = len(cells) - len(head)
    if head and more > 0 and "process_name" in head:
        place = head.index("process_name")
        cells = [*cells[:place], ", ".join(cells[place : place + more + 1]), *cells[place + more + 1 :]]
    if not head or len(cells) != len(head):
        return {}
    row = dict(zip(head, cells, strict=True))
    return row if len(head) > 1 or NUMBER.fullmatch(cells[0]) or cells[0].startswith("[") else {}


def _driver(capture: Capture, line: Line, version: str) -> Iterator[Driver]:
    if re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})+", version):
        yield Driver(origin=capture.origin(line), vendor="nvidia", version=version)


def _process(capture: Capture, line: Line, row: Mapping[str, str]) -> Iterator[DeviceProcess]:
    memory = NUMBER.fullmatch(row.get("used_gpu_memory", row.get("used_memory", "")))
    if re.fullmatch(r"[0-9]{1,10}", row["pid"]):
        yield DeviceProcess(
            origin=capture.origin(line),
            pid=int(row["pid"]),
            name=_told(row.get("process_name", row.get("name", ""))),
            memory_mib=float(memory[1]) if memory else None,
            vendor="nvidia",
        )


def _device(capture: Capture, line: Line, row: Mapping[str, str], place: int) -> Iterator[Fact]:
    """A device: what it is, and each column of it that is a reading."""
    index = int(row["index"]) if re.fullmatch(r"[0-9]{1,4}", row.get("index", "")) else None
    address = pci_address(row.get("pci.bus_id", row.get("gpu_bus_id", "")))
    if index is None and not address and "index" not in row and "timestamp" not in row:
        index = place
    memory = NUMBER.fullmatch(row.get("memory.total", ""))
    name, capability = _told(row.get("name", row.get("gpu_name", ""))), row.get("compute_cap", "")
    if name or address or memory:
        yield Accelerator(
            origin=capture.origin(line),
            vendor="nvidia",
            name=name,
            index=index,
            address=address,
            memory_mib=float(memory[1]) if memory else None,
            architecture=f"sm_{capability.replace('.', '')}" if re.fullmatch(r"\d{1,2}\.\d", capability) else "",
            seen_by="tool",
        )
    for told, value, unit in _readings(row):
        yield Reading(
            origin=capture.origin(line),
            name=told,
            value=value,
            unit=unit,
            vendor="nvidia",
            index=index,
            address=address,
        )


def _readings(row: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Each reading of a row: its name, value and unit."""
    if health := next((cell for name, cell in row.items() if cell in LOST and _matters(name, cell)), ""):
        yield "health", health.strip("[]"), ""
    for column, cell in row.items():
        if column in NUMBERS and (found := NUMBER.fullmatch(cell)):
            name, unit = NUMBERS[column]
            yield name, found[1], unit
        elif column in WORDS and cell in WORDS[column][1]:
            yield WORDS[column][0], WORDS[column][1][cell], ""
        elif column in NAMED and _told(cell):
            yield NAMED[column], cell, ""
    for reason in dict.fromkeys(_reasons(row)):
        yield "throttle", reason, ""


def _matters(column: str, cell: str) -> bool:
    """Whether the words are about the device: an unknown error of fan or power is often gone a second later."""
    return cell != "[Unknown Error]" or column in ("memory.used", "temperature.gpu", "utilization.gpu")


def _reasons(row: Mapping[str, str]) -> Iterator[str]:
    for column, cell in row.items():
        found = REASON.fullmatch(column)
        if found and found[1] not in NO_REASON and cell == "Active":
            yield found[1]
        elif found and found[1] == "active" and re.fullmatch(r"0x[0-9A-Fa-f]{1,16}", cell):
            yield from (name for bit, name in BITS if int(cell, 16) & bit)


def _told(cell: str) -> str:
    """A word that the tool told, empty where it told that it had none."""
    return "" if cell.startswith("[") or cell in ("N/A", "None", "ERR!") or len(cell) > 200 else cell
