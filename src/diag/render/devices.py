"""What each device did in its self-test, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from diag.facts import DeviceMeasure, DeviceMemory, DeviceNumerics, DeviceTest, HostLink, MatrixProduct
from diag.facts.device import Direction
from diag.render.collectives import aligned, figure
from diag.report import Report

LINKS: dict[str, tuple[Direction, bool]] = {
    "H2D": ("to-device", True),
    "D2H": ("from-device", True),
    "H2D pageable": ("to-device", False),
    "D2H pageable": ("from-device", False),
}
TYPES = ("bf16", "fp16", "fp32")
HEAD = ("device", "", "memory", *LINKS, *TYPES, "operators", "")
LEFT = (True, True, *(False,) * (len(HEAD) - 3), True)

Told = TypeVar("Told", DeviceMeasure, DeviceNumerics)


def table(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of the table, a device a line: medians, of its memory the faster way; how many operators are right."""
    measures: list[DeviceMeasure] = [
        one for kind in (DeviceMemory, HostLink, MatrixProduct) for one in report.told(kind)
    ]
    answers = report.told(DeviceNumerics)
    rows = [_row(test, _of(measures, test), _of(answers, test), words) for test in report.told(DeviceTest)]
    if rows:
        yield ""
        yield words["tested"]
        yield from aligned([HEAD, *rows], LEFT)


def _of(told: list[Told], test: DeviceTest) -> list[Told]:
    return [one for one in told if one.device == test.device]


def _row(
    test: DeviceTest, told: list[DeviceMeasure], answers: list[DeviceNumerics], words: Mapping[str, str]
) -> tuple[str, ...]:
    memory = max((one.value for one in told if isinstance(one, DeviceMemory)), default=None)
    links = {(one.direction, one.pinned): one.value for one in told if isinstance(one, HostLink)}
    products = {one.dtype: one.value for one in told if isinstance(one, MatrixProduct)}
    wrong = any(one.correct is False for one in told) or any(not (one.correct or one.near) for one in answers)
    right = f"{sum(one.correct for one in answers)}/{len(answers)}" if answers else ""
    notes = [words["wrong"] if wrong else ""]
    notes.append(words["ended"].format(error=test.error, phase=test.phase) if test.error else "")
    figures = (memory, *(links.get(one) for one in LINKS.values()), *(products.get(one) for one in TYPES))
    return (test.device, test.name, *map(figure, figures), right, ", ".join(filter(None, notes)))
