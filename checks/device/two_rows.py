"""Tables with two rows for each device, laid out like NVIDIA's: Gaudi's `hl-smi` and MetaX's `mx-smi`.

The first row names the device and its address, the second tells its memory and what it reads. Moffett's tool is called
`mx-smi`, too, and has another table. MetaX's second row gained a limit of power and a state of the device.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from diag.api import Accelerator, Capture, Driver, Fact, Line, Reading, Recognise, Runtime, expression, probe, replace

ADDRESS = r"(?P<address>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])"


class Table(NamedTuple):
    """One vendor's table: its first row, what else that reads, and each reading of the second with its unit.

    `total` finds the memory of a device, as its last group; `runtime` and its name are of the head, where it has one.
    """

    vendor: str
    driver: re.Pattern[str]
    device: re.Pattern[str]
    beside: tuple[str, str]
    second: Mapping[str, tuple[re.Pattern[str], str]]
    total: re.Pattern[str]
    runtime: re.Pattern[str] | None = None


GAUDI_HEAD = r"\| HL-SMI Version:|\| AIP  Name\s{1,20}Persistence-M"
GAUDI = Table(
    vendor="intel",
    driver=expression(r"\| Driver Version:\s{1,60}([0-9][\w.-]{1,40})"),
    device=expression(
        r"\|\s{1,9}(?P<index>[0-9]{1,4})\s{1,9}(?P<name>HL-\w{1,20})\s[^|]{0,40}\|\s{1,9}"
        + ADDRESS
        + r"[^|]{0,40}\|\s{1,40}(?P<beside>[0-9]{0,9})"
    ),
    beside=("ecc.uncorrected", ""),
    second={
        "temperature": (expression(r"\s([0-9]{1,4})C\s"), "C"),
        "power": (expression(r"\s([0-9]{1,6})W /"), "W"),
        "power.limit": (expression(r"W /\s{0,9}([0-9]{1,6})W"), "W"),
        "memory.used": (expression(r"\s([0-9]{1,9})Mi[Bb] /"), "MiB"),
        "utilization": (expression(r"\s([0-9]{1,3})%"), "%"),
    },
    total=expression(r"Mi[Bb] /\s{0,9}([0-9]{1,9})Mi[Bb]"),
)
METAX_MEMORY = r"\|\s{1,9}([0-9]{1,9})/([0-9]{1,9}) MiB"
METAX = Table(
    vendor="metax",
    driver=expression(r"MX-SMI \S{1,40}\s{1,60}Kernel Mode Driver Version:\s{0,9}([0-9][\w.]{1,40})"),
    device=expression(
        r"\|\s{1,9}(?P<index>[0-9]{1,4})\s{1,20}(?P<name>M[^|]{1,40}?)(?:\s{1,20}(?:On|Off))?\s{1,40}\|\s{1,9}"
        + ADDRESS
        + r"\s{0,20}(?:\|\s{1,9}(?P<beside>[0-9]{1,3})%)?"
    ),
    beside=("utilization", "%"),
    second={
        "temperature": (expression(r"\|\s{1,9}([0-9]{1,4})C\s"), "C"),
        "power": (expression(r"\s([0-9]{1,6})W\s"), "W"),
        "power.limit": (expression(r"W /\s{0,9}([0-9]{1,6})W"), "W"),
        "memory.used": (expression(METAX_MEMORY), "MiB"),
        "health": (expression(r" MiB\s{1,20}\|\s{1,9}([A-Za-z][A-Za-z ]{1,30}?)\s{0,30}\|"), ""),
    },
    total=expression(METAX_MEMORY),
    runtime=expression(r"\| MACA Version:\s{0,9}([0-9][\w.]{1,40})"),
)


@probe(
    "hl-smi",
    tells=(Driver, Accelerator, Reading),
    command=("hl-smi",),
    timeout=20.0,
    recognise=Recognise(literals=("HL-SMI Version:", "| AIP  Name "), pattern=GAUDI_HEAD),
)
def hl_smi(capture: Capture) -> Iterator[Fact]:
    """The table of Intel's Gaudi: driver and devices."""
    yield from _read(capture, GAUDI)


@probe(
    "mx-smi",
    tells=(Driver, Runtime, Accelerator, Reading),
    command=("mx-smi",),
    timeout=20.0,
    recognise=Recognise(literals=("MX-SMI ",), pattern=METAX.driver.pattern),
)
def mx_smi(capture: Capture) -> Iterator[Fact]:
    """The table of MetaX: driver, runtime (MACA) and devices."""
    yield from _read(capture, METAX)


def _read(capture: Capture, table: Table) -> Iterator[Fact]:
    waiting: Accelerator | None = None
    for line in capture.lines():
        if waiting:
            yield from _second(capture, line, waiting, table)
            waiting = None
        elif found := table.driver.search(line.text):
            yield Driver(origin=capture.origin(line), vendor=table.vendor, version=found[1])
        elif table.runtime and (found := table.runtime.search(line.text)):
            yield Runtime(origin=capture.origin(line), name="maca", version=found[1], kind="library")
        elif found := table.device.search(line.text):
            waiting = Accelerator(
                origin=capture.origin(line),
                vendor=table.vendor,
                name=found["name"],
                index=int(found["index"]),
                address=found["address"].lower(),
                seen_by="tool",
            )
            if found["beside"]:
                name, unit = table.beside
                yield _reading(capture, line, waiting, name, (found["beside"], unit))
    if waiting:
        yield waiting


def _second(capture: Capture, line: Line, device: Accelerator, table: Table) -> Iterator[Fact]:
    """The device with the memory of its second row, and what that row reads."""
    memory = table.total.search(line.text)
    yield replace(device, memory_mib=float(memory[memory.re.groups])) if memory else device
    for name, (shown, unit) in table.second.items():
        if found := shown.search(line.text):
            yield _reading(capture, line, device, name, (found[1], unit))


def _reading(capture: Capture, line: Line, device: Accelerator, name: str, told: tuple[str, str]) -> Reading:
    value, unit = told
    origin, vendor, index, address = capture.origin(line), device.vendor, device.index, device.address
    return Reading(origin=origin, name=name, value=value, unit=unit, vendor=vendor, index=index, address=address)
