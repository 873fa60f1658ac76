"""What `nvidia-smi -q` tells, whole or in part (`-d ECC`), and its XML (`-q -x`), which has names of its own.

Both are trees: the log by its indentation, the XML by its elements. Each leaf is looked up by its path below the
device. Generations differ in names (`Clocks Throttle Reasons`, from 535 on `Clocks Event Reasons`), in how they count
memory errors (single and double bit; from Turing on by SRAM and DRAM, whose parts are added up here), and in what they
divide (`Power Readings` of GPU and module).

What it cannot know: the number of a device, where not all attached ones are listed. The XML is read line by line and
nothing in it is expanded; a text that declares entities is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

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
    expression,
    pci_address,
    probe,
    replace,
)

VERSION = expression(r"\d{1,6}(?:\.\d{1,6})+")
NUMBER = expression(r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)\s?(?:MiB|MB|C|W|%|MHz|x)?")
TAG = expression(r"<(/?)([A-Za-z_][A-Za-z0-9_]{0,80})(?![A-Za-z0-9_])([^<>]{0,200})>([^<>]*)")
DEEPEST = 16
MODE = {"Enabled": "Enabled", "Disabled": "Disabled"}
ON = {"Enabled": "On", "Disabled": "Off"}
SURE = {"Yes": "Yes", "No": "No"}
UNITS = {
    "memory.used": "MiB",
    "memory.free": "MiB",
    "utilization": "%",
    "temperature": "C",
    "power": "W",
    "power.limit": "W",
    "power.limit.default": "W",
    "clock.sm": "MHz",
    "clock.sm.max": "MHz",
    "clock.memory": "MHz",
    "pcie.generation": "",
    "pcie.generation.max": "",
    "pcie.width": "",
    "pcie.width.max": "",
}
"""Readings that are numbers, and their units."""
WORDS = {
    "persistence": ON,
    "mig.mode": MODE,
    "ecc.mode": MODE,
    "retired.pending": SURE,
    "remapped.failure": SURE,
}
"""Readings that are one of a few words."""
LEAVES = {
    "memory.used": "fb_memory_usage/used",
    "memory.free": "fb_memory_usage/free",
    "utilization": "utilization/gpu utilization/gpu_util",
    "temperature": "temperature/gpu_current_temp temperature/gpu_temp",
    "power": "power_readings/power_draw gpu_power_readings/power_draw gpu_power_readings/average_power_draw "
    "gpu_power_readings/instantaneous_power_draw gpu_power_readings/instant_power_draw",
    "power.limit": "power_readings/power_limit gpu_power_readings/current_power_limit "
    "gpu_power_readings/gpu_ceiling_power_limit/current_power_limit",
    "power.limit.default": "power_readings/default_power_limit gpu_power_readings/default_power_limit "
    "gpu_power_readings/gpu_ceiling_power_limit/default_power_limit",
    "clock.sm": "clocks/sm clocks/sm_clock",
    "clock.sm.max": "max_clocks/sm max_clocks/sm_clock",
    "clock.memory": "clocks/memory clocks/mem_clock",
    "persistence": "persistence_mode",
    "compute.mode": "compute_mode",
    "mig.mode": "mig_mode/current mig_mode/current_mig",
    "ecc.mode": "ecc_mode/current ecc_mode/current_ecc",
    "retired.pending": "retired_pages/pending retired_pages/pending_page_blacklist retired_pages/pending_blacklist "
    "retired_pages/pending_retirement remapped_rows/pending remapped_rows/remapped_row_pending",
    "remapped.failure": "remapped_rows/remapping_failure_occurred remapped_rows/remapped_row_failure",
    "pcie.generation": "pci/gpu_link_info/pcie_generation/current pci/pci_gpu_link_info/pcie_gen/current_link_gen",
    "pcie.generation.max": "pci/gpu_link_info/pcie_generation/max pci/pci_gpu_link_info/pcie_gen/max_link_gen",
    "pcie.width": "pci/gpu_link_info/link_width/current pci/pci_gpu_link_info/link_widths/current_link_width",
    "pcie.width.max": "pci/gpu_link_info/link_width/max pci/pci_gpu_link_info/link_widths/max_link_width",
    "fabric.state": "fabric/state",
    "firmware": "vbios_version",
    "health": "gpu_recovery_action",
}
NAMES = {path: name for name, paths in LEAVES.items() for path in paths.split()}
"""The reading at each path of a device, in the log's words and in the XML's."""
ABSENT = ("N/A", "None", "Not Supported", "Not Available", "Unknown", "")
LOST = ("GPU is lost", "GPU requires reset", "ERR!")
NO_REASON = {"idle", "gpu_idle", "applications_clocks_setting"}
ERRORS = {"volatile": "", "aggregate": ".total"}
PARTS = {"fb_memory_usage", "shared_fb_memory_usage"}
MARKS = {
    "clocks_throttle_reasons": "clock-reasons",
    "clocks_event_reasons": "clock-reasons",
    "processes": "device-processes",
}
"""Parts that tell nothing where all is well: that they were there is told by a mark."""


class Leaf(NamedTuple):
    """A value of the tree, where it stands in it, and its line."""

    path: tuple[str, ...]
    value: str
    line: Line


@dataclass
class Device:
    """What was read of one device: its readings in order, its memory errors summed up, its parts and processes."""

    told: Accelerator
    readings: dict[str, tuple[str, Line]] = field(default_factory=dict)
    reasons: dict[str, Line] = field(default_factory=dict)
    errors: dict[str, tuple[int, Line]] = field(default_factory=dict)
    below: list[Partition | DeviceProcess] = field(default_factory=list)

    def take(self, capture: Capture, leaf: Leaf) -> None:
        """Learn one leaf."""
        path = "/".join(leaf.path)
        if path == "product_name":
            self.told = replace(self.told, name="" if leaf.value in (*ABSENT, *LOST) else leaf.value)
        elif path == "fb_memory_usage/total" and (found := NUMBER.fullmatch(leaf.value)):
            self.told = replace(self.told, memory_mib=float(found[1]))
        elif leaf.path[0] in ("mig_device", "mig_devices", "processes"):
            self._below(capture, leaf)
        elif leaf.path[0].endswith("_reasons"):
            self._reason(leaf)
        elif leaf.path[0] == "ecc_errors":
            self._error(leaf)
        self._state(path, leaf)

    def _state(self, path: str, leaf: Leaf) -> None:
        name = NAMES.get(path, "")
        if leaf.value in LOST or (leaf.value == "Unknown Error" and name and not name.startswith("power")):
            self.readings.setdefault("health", (leaf.value, leaf.line))
        elif path == "gpu_reset_status/reset_required" and leaf.value == "Yes":
            self.readings.setdefault("health", ("Reset Required", leaf.line))
        elif name and (value := _value(name, leaf.value)) and (value == "Yes" or name not in self.readings):
            self.readings[name] = (value, leaf.line)

    def _reason(self, leaf: Leaf) -> None:
        reason = re.sub(r"^clocks_(?:throttle|event)_reason_", "", leaf.path[-1])
        if leaf.value == "Active" and reason not in NO_REASON:
            self.reasons.setdefault(reason, leaf.line)

    def _error(self, leaf: Leaf) -> None:
        """Add a count of memory errors: a total by bits, or each part by kind of memory."""
        if len(leaf.path) < 3 or leaf.path[1] not in ERRORS or not re.fullmatch(r"[0-9]{1,19}", leaf.value):
            return
        kind = leaf.path[-2] if leaf.path[-1] == "total" else leaf.path[-1] if len(leaf.path) == 3 else ""
        if kind.endswith("_bit") or re.match(r"[sd]ram_(?:un)?correctable", kind):
            word = "uncorrected" if "uncorrect" in kind or kind == "double_bit" else "corrected"
            name = f"ecc.{word}{ERRORS[leaf.path[1]]}"
            count, line = self.errors.get(name, (0, leaf.line))
            self.errors[name] = (count + int(leaf.value), leaf.line if int(leaf.value) else line)

    def _below(self, capture: Capture, leaf: Leaf) -> None:
        """A part of the device, or a process: each begins with its first leaf."""
        number = NUMBER.fullmatch(leaf.value)
        key, origin, index = leaf.path[-1], capture.origin(leaf.line), self.told.index
        last = self.below[-1] if self.below else None
        if leaf.path[0].startswith("mig_device"):
            if key == "total" and leaf.path[-2] in PARTS and number:
                part = Partition(origin=origin, index=index, memory_mib=float(number[1]), vendor="nvidia")
                self.below.append(part)
        elif key in ("process_id", "pid") and re.fullmatch(r"[0-9]{1,10}", leaf.value):
            self.below.append(DeviceProcess(origin=origin, index=index, pid=int(leaf.value), vendor="nvidia"))
        elif isinstance(last, DeviceProcess) and key in ("name", "process_name"):
            self.below[-1] = replace(last, name="" if leaf.value in ABSENT else leaf.value)
        elif isinstance(last, DeviceProcess) and key in ("used_gpu_memory", "used_memory") and number:
            self.below[-1] = replace(last, memory_mib=float(number[1]))

    def facts(self, capture: Capture, index: int | None) -> Iterator[Fact]:
        """All that was told of it, under its number."""
        told = [(name, *found) for name, found in self.readings.items()]
        told += [(name, str(count), line) for name, (count, line) in self.errors.items()]
        told += [("throttle", reason, line) for reason, line in self.reasons.items()]
        yield replace(self.told, index=index)
        for name, value, line in told:
            yield Reading(
                origin=capture.origin(line),
                name=name,
                value=value,
                unit=UNITS.get(name, ""),
                vendor="nvidia",
                index=index,
                address=self.told.address,
            )
        yield from (replace(one, index=index) for one in self.below)


def _value(name: str, value: str) -> str:
    """The value of a reading, without its unit and in its words; empty where there is none."""
    if name in UNITS:
        found = NUMBER.fullmatch(value)
        return found[1] if found else ""
    if name in WORDS:
        return WORDS[name].get(value, "")
    return "" if value in ABSENT or len(value) > 40 else value


@probe(
    "nvidia-smi/log",
    tells=(Driver, Accelerator, Reading, Partition, DeviceProcess, Text),
    recognise=Recognise(
        literals=("NVSMI LOG", "Attached GPUs"), pattern=r"=NVSMI LOG=|^\W*Attached GPUs\s+:\s", lines=6_000
    ),
)
def nvidia_smi_log(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi -q` prints, whole or a part of it: the driver, then each device under its address."""
    yield from _read(capture, _log(capture))


@probe(
    "nvidia-smi/xml",
    tells=(Driver, Accelerator, Reading, Partition, DeviceProcess, Text),
    recognise=Recognise(
        literals=("<nvidia_smi_log>", "DOCTYPE nvidia_smi_log"), pattern=r"<nvidia_smi_log>|<!DOCTYPE", lines=12_000
    ),
)
def nvidia_smi_xml(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi -q -x` prints, whether or not the end of it was cut."""
    if not any("<!ENTITY" in line.text for line in capture.lines()):
        yield from _read(capture, _xml(capture))


def _log(capture: Capture) -> Iterator[Leaf]:
    """The leaves of the log: a line's parents are the nearest lines before it that are indented less."""
    parents: list[tuple[int, str]] = []
    for line in capture.lines():
        text = line.text.rstrip()
        indent = len(text) - len(text.lstrip())
        key, colon, value = (part.strip() for part in (f"{text} ").partition(" : "))
        words = text.split(maxsplit=2)
        while parents and parents[-1][0] >= indent:
            parents.pop()
        if len(words) == 2 and words[0] == "GPU" and pci_address(words[1]):
            parents = [(indent, "gpu")]
            yield Leaf(("gpu",), words[1], line)
        elif text and len(key) <= 80:
            name = key.lower().replace(" ", "_")
            if colon:
                yield Leaf((*(parent for _, parent in parents), name), value, line)
            if len(parents) < DEEPEST:
                parents.append((indent, name))


def _xml(capture: Capture) -> Iterator[Leaf]:
    """The leaves of the XML below its root."""
    path: list[str] = []
    for line in capture.lines():
        for closes, name, attributes, text in TAG.findall(line.text):
            if name == "nvidia_smi_log":
                path = []
            elif closes:
                del path[path.index(name) if name in path else len(path) :]
            elif len(path) < DEEPEST:
                path.append(name)
                if name == "gpu":
                    path = ["gpu"]
                    yield Leaf(("gpu",), attributes.partition('"')[2].partition('"')[0], line)
                elif text.strip():
                    yield Leaf(tuple(path), unescape(text.strip()), line)


def _read(capture: Capture, leaves: Iterable[Leaf]) -> Iterator[Fact]:
    """The facts of a tree: what stands before the first device is about the machine."""
    devices: list[Device] = []
    machine: dict[str, tuple[str, Line]] = {}
    marks: dict[str, Line] = {}
    for leaf in leaves:
        if len(leaf.path) > 1 and leaf.path[1] in MARKS:
            marks.setdefault(MARKS[leaf.path[1]], leaf.line)
        if leaf.path == ("gpu",) and (address := pci_address(leaf.value)):
            origin = capture.origin(leaf.line)
            devices.append(Device(Accelerator(origin=origin, vendor="nvidia", address=address, seen_by="tool")))
        elif leaf.path[0] == "gpu" and leaf.path[1:] and devices:
            devices[-1].take(capture, leaf._replace(path=leaf.path[1:]))
        elif not devices:
            machine.setdefault(leaf.path[-1], (leaf.value.split(" [")[0], leaf.line))
    yield from _driver(capture, machine)
    for mark, line in marks.items():
        yield Text(origin=capture.origin(line), kinds=(mark,))
    whole = machine.get("attached_gpus", ("",))[0] == str(len(devices))
    for place, device in enumerate(devices):
        yield from device.facts(capture, place if whole else None)


def _driver(capture: Capture, machine: dict[str, tuple[str, Line]]) -> Iterator[Driver]:
    """The driver: its version is the kernel module's, from 610 on under that name."""
    version, line = machine.get("kmd_version") or machine.get("driver_version") or ("", Line(0, ""))
    offers, _ = machine.get("cuda_umd_version") or machine.get("cuda_version") or ("", line)
    if VERSION.fullmatch(version):
        told = offers if VERSION.fullmatch(offers) else ""
        yield Driver(origin=capture.origin(line), vendor="nvidia", version=version, offers=told)
