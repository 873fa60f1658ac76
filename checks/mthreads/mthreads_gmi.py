"""Moore Threads' `mthreads-gmi`: its driver, and three rows for each device in a table without a frame."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Accelerator, Capture, Driver, Fact, Line, Reading, Recognise, expression, probe

HEADER = expression(r"mthreads-gmi:[0-9][\w.]{0,40}\s{1,40}Driver Version:\s{0,9}([0-9][\w.-]{1,40})")
DEVICE = expression(
    r"^\W*(?P<index>[0-9]{1,4})\s{1,9}(?P<name>MTT [^|]{1,40}?)\s{0,40}\|"
    r"(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])"
    r"(?:\s{0,20}\|(?P<busy>[0-9]{1,3})%)?(?:\s{1,9}(?P<used>[0-9]{1,9})MiB\((?P<total>[0-9]{1,9})MiB\))?"
)
SECOND = expression(r"\|(?P<width>[0-9]{1,3})x\((?P<most>[0-9]{1,3})x\)(?:\s{0,20}\|(?P<heat>[0-9]{1,4})C)?")


@probe(
    "mthreads-gmi",
    tells=(Driver, Accelerator, Reading),
    command=("mthreads-gmi",),
    timeout=20.0,
    recognise=Recognise(literals=("mthreads-gmi:",), pattern=HEADER.pattern),
)
def mthreads_gmi(capture: Capture) -> Iterator[Fact]:
    """The table: driver and devices."""
    device: Accelerator | None = None
    for line in capture.lines():
        told: dict[str, tuple[str | None, str]] = {}
        if found := HEADER.search(line.text):
            yield Driver(origin=capture.origin(line), vendor="mthreads", version=found[1])
        elif found := DEVICE.match(line.text):
            device = _device(capture, line, found)
            yield device
            told = {"utilization": (found["busy"], "%"), "memory.used": (found["used"], "MiB")}
        elif device and (found := SECOND.search(line.text)):
            told = {"pcie.width": (found["width"], ""), "pcie.width.max": (found["most"], "")}
            told["temperature"] = (found["heat"], "C")
        if device:
            yield from _readings(capture, line, device, told)


def _device(capture: Capture, line: Line, found: re.Match[str]) -> Accelerator:
    return Accelerator(
        origin=capture.origin(line),
        vendor="mthreads",
        name=found["name"],
        index=int(found["index"]),
        address=found["address"].lower()[-12:],
        memory_mib=float(found["total"]) if found["total"] else None,
        seen_by="tool",
    )


def _readings(
    capture: Capture, line: Line, device: Accelerator, told: dict[str, tuple[str | None, str]]
) -> Iterator[Fact]:
    for name, (value, unit) in told.items():
        if value:
            origin, index, address = capture.origin(line), device.index, device.address
            yield Reading(
                origin=origin, name=name, value=value, unit=unit, vendor="mthreads", index=index, address=address
            )
