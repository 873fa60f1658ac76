"""Measured devices beside what is known of their models, and beside each other.

A device is judged by its fastest calls: others that use it only slow it. Where somebody publishes a threshold for a
model, that holds; where somebody published a measurement, three quarters of it, as makers' own diagnoses take of what
they measured; else the same of the smallest share of the maker's figure that a sound device was published with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from diag.facts.bag import Facts
from diag.facts.device import (
    Accelerator,
    DeviceBaseline,
    DeviceMeasure,
    DeviceMemory,
    DeviceTest,
    HostLink,
    MatrixProduct,
)
from diag.facts.matrix import DeviceModel
from diag.facts.models import model_of, posed
from diag.facts.reference import Reference

MARGIN = 0.75
"""Of what was measured elsewhere: so DCGM makes its minima (`nvvs/diag-skus.yaml.in`: "Multiply by .75")."""
SOUND = {"memory": 0.75, "bf16": 0.51}
"""The smallest share of a maker's figure that sound devices were published with: C550 in FlagPerf, MI300X in MAMF."""
WHOLE = 0.8
"""The share of its model's memory from which on a device is the whole of it, not a part or one of two dies."""
MANY = 5
"""Sisters from which on their spread tells what is usual; of fewer the best is taken, and a ratio."""
BEYOND, RATIO = 3.5, 1.3
USUAL = {DeviceMemory: 0.9, HostLink: 0.8, MatrixProduct: 0.9}
"""Shares of the sisters' median that sound devices reach: products of one board's devices differ by 5 % and more."""
STEADY = 0.01
"""The spread, as a share of the median, below which a clock is the limit, not the device."""


class Expectation(NamedTuple):
    """The least that a device of a model must reach, and the row that says so, with the figure in it."""

    least: float
    figure: float
    row: Reference


class Behind(NamedTuple):
    """A device that is slower than its sisters: what it reaches, the median of all, and how many there are."""

    measure: DeviceMeasure
    usual: float
    sisters: int


def expectation(facts: Facts, one: DeviceMeasure, measure: str) -> Expectation | None:
    """What a device must reach by its model; None where the model is not known, or the device is a part of one."""
    model = tested_model(facts, one.device)
    if model is None:
        return None
    rows = [
        row
        for row in facts.all(DeviceBaseline)
        if (row.vendor, row.device, row.measure) == (model.vendor, model.name, measure)
    ]
    told = [Expectation(row.value * (1.0 if row.standing == "pass" else MARGIN), row.value, row) for row in rows]
    figure = {"memory": model.bandwidth_gbps, "bf16": model.bf16_tflops}.get(measure)
    if figure:
        told.append(Expectation(figure * SOUND[measure] * MARGIN, figure, model))
    return told[0] if told else None


def tested_model(facts: Facts, device: str) -> DeviceModel | None:
    """The model of a device that was tested as a whole."""
    test = next((one for one in facts.all(DeviceTest) if one.device == device), None)
    if test is None or not test.name or posed(facts):
        return None
    model = model_of(facts, Accelerator(origin=test.origin, name=test.name), tells="name")
    whole = (model.memory_gb or 0) * 1e9 * WHOLE if model else 0
    return model if test.memory_bytes is None or test.memory_bytes >= whole else None


def best_memory(facts: Facts) -> list[DeviceMemory]:
    """Of the ways in which each device's memory was measured, the fastest."""
    best: dict[str, DeviceMemory] = {}
    for one in facts.all(DeviceMemory):
        if one.device not in best or one.best > best[one.device].best:
            best[one.device] = one
    return list(best.values())


def behind(facts: Facts) -> list[Behind]:
    """The devices that are slower than others of the same name, in what each is slowest in."""
    alike: dict[tuple[object, ...], list[DeviceMeasure]] = defaultdict(list)
    for memory in best_memory(facts):
        alike[memory.name, "memory"].append(memory)
    for link in facts.all(HostLink):
        if link.pinned:
            alike[link.name, link.direction].append(link)
    for product in facts.all(MatrixProduct):
        alike[product.name, product.dtype].append(product)
    found = [one for group in alike.values() for one in _slower(group)]
    worst: dict[str, Behind] = {}
    for one in sorted(found, key=lambda one: one.measure.best / one.usual):
        worst.setdefault(one.measure.device, one)
    return list(worst.values())


def _slower(group: list[DeviceMeasure]) -> Iterable[Behind]:
    values = [one.best for one in group]
    if len(values) < 3:
        return
    usual = median(values)
    spread = max(median(abs(value - usual) for value in values) / 0.6745, STEADY * usual)
    for one in group:
        far = (usual - one.best) / spread > BEYOND if len(values) >= MANY else max(values) / one.best > RATIO
        if far and one.best < USUAL[type(one)] * usual:
            yield Behind(one, usual, len(values))
