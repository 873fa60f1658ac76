"""Measured collectives beside what is known of other machines: which row speaks of a measurement, and how near it is.

A row speaks of a measurement of the same operation between as many ranks of the same model. Up to where bandwidth
decides, two healthy machines of one model differ twofold (8 A100 at 1 MiB: 18 and 36 GB/s in two public sweeps), and
the way of timing counts as well; past it neither matters. Where that is, the rows themselves tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from diag.facts.bag import Facts
from diag.facts.collective import Collective, CollectiveBaseline, bus_factor
from diag.facts.device import Accelerator, Link
from diag.facts.matrix import DeviceModel
from diag.facts.models import model_of, posed
from diag.text import expression, matches

SATURATED = 0.8
"""Share of the highest bandwidth known of a machine from which on a row tells of the links, not of the calls."""
LARGE = 64 * 2**20
"""Bytes from which on that is believed of a machine of which one row alone is known."""
BEYOND, BEFORE = 4, 2
"""How many times larger or smaller than a row's a message may be, where bandwidth decides, to say something still."""
UNITS = ("B", "KiB", "MiB", "GiB")
DEVICE = expression(r"[A-Z]{1,3}PU\d{1,3}|[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
FREE = ("", "free-running")


class Comparison(NamedTuple):
    """A measurement beside a row: `ratio` is what it reaches of the row's, above 1 where it is better.

    `differs` names the one condition in which they are not the same, `saturated` whether bandwidth decides.
    """

    measured: Collective
    row: CollectiveBaseline
    value: float
    ratio: float
    differs: str
    saturated: bool


def compared_collectives(facts: Facts) -> tuple[Comparison, ...]:
    """Every measurement, the better of both placements, beside every row that speaks of it."""
    return facts.concluded(_compared)


def _compared(facts: Facts) -> tuple[Comparison, ...]:
    peaks = _peaks(facts.all(CollectiveBaseline))
    told = best_placed(facts.all(Collective))
    models = {name: measured_model(facts, one) for name, one in {one.device: one for one in told}.items()}
    rows = {name: _of(facts, model) for name, model in models.items() if model}
    return tuple(pair for one in told for pair in _beside(facts, one, rows.get(one.device, ()), peaks))


def best_placed(told: Iterable[Collective]) -> list[Collective]:
    """Of what one line or one run tells of the same exchange in several placements, the fastest."""
    kept: dict[tuple[object, ...], Collective] = {}
    for one in told:
        place = (one.origin.capture, one.origin.line, one.tool, one.op, one.bytes, one.mode, one.ranks, one.nodes)
        before = kept.get(place)
        if before is None or (bus_bandwidth(one) or 0) > (bus_bandwidth(before) or 0):
            kept[place] = one
    return list(kept.values())


def bus_bandwidth(one: Collective) -> float | None:
    """GB/s of busbw; of a noisy measurement what its fastest call had, None where that is not told."""
    factor = bus_factor(one.op, one.ranks or 0)
    if one.noisy:
        return one.bytes / one.latency_us.min / 1e3 * factor if one.latency_us.min and factor else None
    if one.busbw_gbps is not None:
        return one.busbw_gbps
    return one.algbw_gbps * factor if one.algbw_gbps and factor else None


def measured_model(facts: Facts, one: Collective) -> DeviceModel | None:
    """The model whose devices were measured: by the name told with it, else the one model that all devices here are."""
    named = Accelerator(origin=one.origin, name=one.device)
    found = model_of(facts, named, tells="name") if one.device and not posed(facts) else None
    if found:
        return found
    models = {model.name: model for device in facts.devices() if (model := model_of(facts, device, tells="name"))}
    return next(iter(models.values())) if len(models) == 1 else None


def size_in_words(size: int) -> str:
    """A number of bytes as `512 KiB`, `2.5 MiB`."""
    number, unit = float(size), 0
    while number >= 1024 and unit < len(UNITS) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.4g} {UNITS[unit]}"


Machine = tuple[str, str, int, int]


def _machine(row: CollectiveBaseline) -> Machine:
    return row.op, row.device, row.ranks, row.nodes


def _peaks(rows: Iterable[CollectiveBaseline]) -> dict[Machine, float]:
    """The highest bandwidth known of each operation on a kind of machine; infinite where what is known is no peak."""
    reached: dict[Machine, list[CollectiveBaseline]] = {}
    for row in rows:
        reached.setdefault(_machine(row), []).append(row)
    large = {machine: [row for row in told if len(told) > 1 or row.bytes >= LARGE] for machine, told in reached.items()}
    return {machine: max((row.busbw_gbps or 0.0 for row in told), default=inf) for machine, told in large.items()}


def _of(facts: Facts, model: DeviceModel) -> tuple[CollectiveBaseline, ...]:
    return tuple(row for row in facts.all(CollectiveBaseline) if (row.vendor, row.device) == (model.vendor, model.name))


def _beside(
    facts: Facts, one: Collective, rows: Sequence[CollectiveBaseline], peaks: dict[Machine, float]
) -> Iterator[Comparison]:
    """The rows that speak of a measurement: those of the very size where there are any, else those of a near one."""
    alike = [row for row in rows if (row.op, row.ranks) == (one.op, one.ranks) and one.nodes in (None, row.nodes)]
    found = list(filter(None, (_comparison(facts, one, row, peaks[_machine(row)]) for row in alike)))
    same = [pair for pair in found if pair.differs != "size"]
    yield from same or found


def _comparison(facts: Facts, one: Collective, row: CollectiveBaseline, peak: float) -> Comparison | None:
    saturated = bool(row.busbw_gbps) and (row.standing == "pass" or (row.busbw_gbps or 0.0) >= SATURATED * peak)
    same_mode = one.mode == row.mode or {one.mode, row.mode} <= set(FREE)
    conditions = [_size(one, row, saturated), _joined(facts, one, row)]
    conditions += ["nodes" if one.nodes is None else "", "dtype" if _other_type(one, row) else ""]
    differs = [condition for condition in conditions if condition]
    value, ratio = _ratio(one, row)
    if None in conditions or len(differs) > 1 or not ratio or not (saturated or same_mode):
        return None
    return Comparison(one, row, value, ratio, "".join(differs), saturated)


def _ratio(one: Collective, row: CollectiveBaseline) -> tuple[float, float]:
    """What was reached, and how it stands to the row's; zeros where that is not told."""
    if row.latency_us is not None:
        taken = one.latency_us.min if one.noisy else one.latency_us.typical
        return (taken, row.latency_us / taken) if taken else (0.0, 0.0)
    reached = bus_bandwidth(one)
    return (reached, reached / row.busbw_gbps) if reached and row.busbw_gbps else (0.0, 0.0)


def _size(one: Collective, row: CollectiveBaseline, saturated: bool) -> str | None:
    """Empty where the row holds for this size, None where it says nothing of it."""
    last = row.until or row.bytes
    if row.bytes <= one.bytes <= last:
        return ""
    near = row.bytes / BEFORE <= one.bytes <= last * BEYOND
    return "size" if saturated and near else None


def _joined(facts: Facts, one: Collective, row: CollectiveBaseline) -> str | None:
    """Empty where the devices are joined as the row has it, None where they are not; where nothing tells, `link`."""
    if not row.link:
        return ""
    pairs = [link for link in facts.all(Link) if DEVICE.fullmatch(link.first) and DEVICE.fullmatch(link.second)]
    ends = {end for link in pairs for end in (link.first, link.second)}
    if row.nodes > 1 or len(ends) != one.ranks:
        return "link"
    return "" if all(matches(link.kind, row.link) for link in pairs) else None


def _other_type(one: Collective, row: CollectiveBaseline) -> bool:
    return bool(one.dtype and row.dtype) and one.dtype != row.dtype
