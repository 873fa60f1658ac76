"""`hl-smi`, the tool of Intel's Gaudi: its driver, and two rows for each device in a table like NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Capture, Driver, Fact, Line, Reading, Recognise, expression, probe, replace

HEADER = r"\| HL-SMI Version:|\| AIP  Name\s{1,20}Persistence-M"
DRIVER = expression(r"\| Driver Version:\s{1,60}([0-9][\w.-]{1,40})")
DEVICE = expression(
    r"\|\s{1,9}(?P<index>[0-9]{1,4})\s{1,9}(?P<name>HL-\w{1,20})\s[^|]{0,40}\|\s{1,9}"
    r"(?P<address>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])[^|]{0,40}\|\s{1,40}(?P<errors>[0-9]{0,9})"
)
SECOND = {
    "temperature": (expression(r"\s([0-9]{1,4})C\s"), "C"),
    "power": (expression(r"\s([0-9]{1,6})W /"), "W"),
    "power.limit": (expression(r"W /\s{0,9}([0-9]{1,6})W"), "W"),
    "memory.used": (expression(r"\s([0-9]{1,9})Mi[Bb] /"), "MiB"),
    "utilization": (expression(r"\s([0-9]{1,3})%"), "%"),
}
TOTAL = expression(r"Mi[Bb] /\s{0,9}([0-9]{1,9})Mi[Bb]")


@probe(
    "hl-smi",
    tells=(Driver, Accelerator, Reading),
    command=("hl-smi",),
    timeout=20.0,
    recognise=Recognise(literals=("HL-SMI Version:", "| AIP  Name "), pattern=HEADER),
)
def hl_smi(capture: Capture) -> Iterator[Fact]:
    """The table: driver and devices."""
    waiting: Accelerator | None = None
    for line in capture.lines():
        if waiting:
            yield from _second(capture, line, waiting)
            waiting = None
        elif found := DRIVER.search(line.text):
            yield Driver(origin=capture.origin(line), vendor="intel", version=found[1])
        elif found := DEVICE.search(line.text):
            waiting = Accelerator(
                origin=capture.origin(line),
                vendor="intel",
                name=found["name"],
                index=int(found["index"]),
                address=found["address"].lower(),
                seen_by="tool",
            )
            if found["errors"]:
                yield _reading(capture, line, waiting, "ecc.uncorrected", (found["errors"], ""))
    if waiting:
        yield waiting


def _second(capture: Capture, line: Line, device: Accelerator) -> Iterator[Fact]:
    """The device with the memory of its second row, and what that row reads."""
    total = TOTAL.search(line.text)
    yield replace(device, memory_mib=float(total[1])) if total else device
    for name, (pattern, unit) in SECOND.items():
        if found := pattern.search(line.text):
            yield _reading(capture, line, device, name, (found[1], unit))


def _reading(capture: Capture, line: Line, device: Accelerator, name: str, told: tuple[str, str]) -> Reading:
    value, unit = told
    origin, index, address = capture.origin(line), device.index, device.address
    return Reading(origin=origin, name=name, value=value, unit=unit, vendor="intel", index=index, address=address)
