"""What NVIDIA's management library tells, asked by a child in the environment that is examined.

The same as `nvidia-smi` prints, without its table. A device that cannot be opened or that is lost is told with the
library's words as its health.

What it cannot know: anything where the environment has no `pynvml` (of nvidia-ml-py), which is no fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from diag.api import (
    Accelerator,
    Capture,
    DeviceProcess,
    Driver,
    Fact,
    Origin,
    Reading,
    Recognise,
    Text,
    Unavailable,
    pci_address,
    probe,
)

CHILD = Path(__file__).with_name("_nvml.py")
SCHEMA = "diag/nvml/1"
MISSING = ("No module named", "Shared Library Not Found")
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
}
LOST = ("GPU is lost", "GPU requires reset", "Unknown Error")


@probe(
    "nvml",
    tells=(Driver, Accelerator, Reading, DeviceProcess, Text),
    measure=str(CHILD),
    interpreter="target",
    cost="import",
    timeout=20.0,
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0),
)
def nvml(capture: Capture) -> Iterator[Fact]:
    """What the library answered: the driver, the CUDA version it offers, each device; or why it could not."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    if error := _word(document.get("error")):
        yield Unavailable(
            origin=capture.said(error),
            what="nvml",
            reason=error,
            how="missing" if any(words in error for words in MISSING) else "failed",
            tells=("Driver", "Accelerator", "Reading", "DeviceProcess"),
        )
    if version := _word(document.get("driver")):
        offers = _word(document.get("cuda"))
        yield Driver(origin=capture.said(version), vendor="nvidia", version=version, offers=offers)
    for device in _objects(document.get("devices")):
        yield from _device(capture, device)


def _device(capture: Capture, told: Mapping[str, Any]) -> Iterator[Fact]:
    index, name = _number(told.get("index")), _word(told.get("name"))
    origin = capture.said(name or f"device {index}")
    address = pci_address(_word(told.get("address")))
    memory = _number(told.get("memory_mib"))
    yield Accelerator(
        origin=origin,
        vendor="nvidia",
        name=name,
        index=index,
        address=address,
        memory_mib=None if memory is None else float(memory),
        architecture=_word(told.get("architecture")),
        seen_by="tool",
    )
    if marks := tuple(_marks(told)):
        yield Text(origin=origin, kinds=marks)
    for name, value in _readings(told):
        yield Reading(
            origin=origin,
            name=name,
            value=value,
            unit=UNITS.get(name, ""),
            vendor="nvidia",
            index=index,
            address=address,
        )
    for process in _objects(told.get("processes")):
        yield _process(origin, index, process)


def _marks(told: Mapping[str, Any]) -> Iterator[str]:
    """What was asked of the device and may have nothing to tell: reasons for a lower clock, processes."""
    readings = told.get("readings")
    if isinstance(readings, dict) and "throttle" in readings:
        yield "clock-reasons"
    if isinstance(told.get("processes"), list):
        yield "device-processes"


def _readings(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Health where the device is lost, and each reading; of throttle reasons one each."""
    errors = told.get("errors")
    said = [_word(told.get("error")), *(map(_word, errors.values()) if isinstance(errors, dict) else ())]
    if health := next((word for word in said if word.startswith(LOST)), said[0]):
        yield "health", health
    readings = told.get("readings")
    for name, value in readings.items() if isinstance(readings, dict) else ():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (str, int, float)) and not isinstance(one, bool):
                yield str(name), f"{one:g}" if isinstance(one, float) else str(one)


def _process(origin: Origin, index: int | None, told: Mapping[str, Any]) -> DeviceProcess:
    memory = _number(told.get("memory_mib"))
    return DeviceProcess(
        origin=origin,
        index=index,
        pid=_number(told.get("pid")),
        name=_word(told.get("name")),
        memory_mib=None if memory is None else float(memory),
        vendor="nvidia",
    )


def _objects(told: Any) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in told if isinstance(one, dict)) if isinstance(told, list) else ()


def _word(told: Any) -> str:
    return told if isinstance(told, str) else ""


def _number(told: Any) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 2**53 else None
