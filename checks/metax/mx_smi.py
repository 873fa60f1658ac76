"""MetaX's `mx-smi`: its driver, its runtime (MACA), and two rows for each device.

Moffett's tool has the same name and another table. The second row gained a limit of power and a state of the device.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Capture, Driver, Fact, Line, Reading, Recognise, Runtime, expression, probe, replace

HEADER = expression(r"MX-SMI \S{1,40}\s{1,60}Kernel Mode Driver Version:\s{0,9}([0-9][\w.]{1,40})")
RUNTIME = expression(r"\| MACA Version:\s{0,9}([0-9][\w.]{1,40})")
DEVICE = expression(
    r"\|\s{1,9}(?P<index>[0-9]{1,4})\s{1,20}(?P<name>M[^|]{1,40}?)(?:\s{1,20}(?:On|Off))?\s{1,40}\|\s{1,9}"
    r"(?P<address>[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s{0,20}(?:\|\s{1,9}(?P<busy>[0-9]{1,3})%)?"
)
MEMORY = expression(r"\|\s{1,9}([0-9]{1,9})/([0-9]{1,9}) MiB")
SECOND = {
    "temperature": (expression(r"\|\s{1,9}([0-9]{1,4})C\s"), "C"),
    "power": (expression(r"\s([0-9]{1,6})W\s"), "W"),
    "power.limit": (expression(r"W /\s{0,9}([0-9]{1,6})W"), "W"),
    "memory.used": (MEMORY, "MiB"),
    "health": (expression(r" MiB\s{1,20}\|\s{1,9}([A-Za-z][A-Za-z ]{1,30}?)\s{0,30}\|"), ""),
}


@probe(
    "mx-smi",
    tells=(Driver, Runtime, Accelerator, Reading),
    command=("mx-smi",),
    timeout=20.0,
    recognise=Recognise(literals=("MX-SMI ",), pattern=HEADER.pattern),
)
def mx_smi(capture: Capture) -> Iterator[Fact]:
    """The table: driver, runtime and devices."""
    waiting: Accelerator | None = None
    for line in capture.lines():
        if waiting:
            yield from _second(capture, line, waiting)
            waiting = None
        elif found := HEADER.search(line.text):
            yield Driver(origin=capture.origin(line), vendor="metax", version=found[1])
        elif found := RUNTIME.search(line.text):
            yield Runtime(origin=capture.origin(line), name="maca", version=found[1], kind="library")
        elif found := DEVICE.search(line.text):
            waiting = Accelerator(
                origin=capture.origin(line),
                vendor="metax",
                name=found["name"],
                index=int(found["index"]),
                address=found["address"].lower(),
                seen_by="tool",
            )
            if found["busy"]:
                yield _reading(capture, line, waiting, "utilization", (found["busy"], "%"))
    if waiting:
        yield waiting


def _second(capture: Capture, line: Line, device: Accelerator) -> Iterator[Fact]:
    """The device with the memory of its second row, and what that row reads."""
    memory = MEMORY.search(line.text)
    yield replace(device, memory_mib=float(memory[2])) if memory else device
    for name, (pattern, unit) in SECOND.items():
        if found := pattern.search(line.text):
            yield _reading(capture, line, device, name, (found[1], unit))


def _reading(capture: Capture, line: Line, device: Accelerator, name: str, told: tuple[str, str]) -> Reading:
    value, unit = told
    origin, index, address = capture.origin(line), device.index, device.address
    return Reading(origin=origin, name=name, value=value, unit=unit, vendor="metax", index=index, address=address)
