"""Operators that do not run on their device, and what that costs the steps of engines, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from diag.facts import Operator, OperatorScan, OperatorStep
from diag.facts.placement import costs
from diag.render.collectives import aligned, figure, size
from diag.report import Report
from diag.text import cut

SHOWN = 40
"""Operators that are shown, the costliest first."""
HEAD = ("operator", "", "seen by", "on", "ms", "moved", "kernel from", "steps")
LEFT = (True, True, True, True, False, False, True, True)
STEP_HEAD = ("step", "B", "V", "ms", "on CPU", "tokens/s", "")
STEP_LEFT = (True, False, False, False, False, False, True)
STEPS_SHOWN = 3
LONGEST = 100
"""Characters of an exception."""


def table(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of both tables, and what each detector looked at."""
    scans = report.told(OperatorScan)
    if not scans:
        return
    yield ""
    yield words["looked"].format(detectors=", ".join(_scanned(one, words) for one in scans))
    rows = list(_operators(report.told(Operator), words))
    if rows:
        yield from aligned([HEAD, *rows[:SHOWN]], LEFT)
    if len(rows) > SHOWN:
        yield words["more operators"].format(count=len(rows) - SHOWN)
    steps = [*_steps(report), *_raised(report)]
    if steps:
        yield ""
        yield words["costs"]
        yield from aligned([STEP_HEAD, *steps], STEP_LEFT)
    yield from _untold(scans, words)


def _scanned(one: OperatorScan, words: Mapping[str, str]) -> str:
    told = words[f"detector {one.detector}"].format(count=one.looked)
    return told if one.seconds is None else f"{told} ({figure(one.seconds)} s)"


def _operators(told: Sequence[Operator], words: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """A row for each operator, whoever saw it."""
    groups: dict[tuple[str, str], list[Operator]] = {}
    for one in told:
        groups.setdefault((one.device, one.name), []).append(one)
    for own in sorted(groups.values(), key=lambda own: -max(one.host_us or 0.0 for one in own)):
        measured = max(own, key=lambda one: one.host_us or 0.0)
        steps = list(dict.fromkeys(step for one in own for step in one.steps))
        more = ", …" if len(steps) > STEPS_SHOWN else ""
        yield (
            own[0].name.removeprefix("aten::"),
            ", ".join(dict.fromkeys(words[f"placed {one.placement}"] for one in own)),
            ", ".join(dict.fromkeys(one.detector for one in own)),
            measured.shape,
            figure(None if measured.host_us is None else measured.host_us / 1000),
            size(measured.bytes) if measured.bytes else "",
            next((one.owner for one in own if one.owner), ""),
            ", ".join(steps[:STEPS_SHOWN]) + more,
        )


def _steps(report: Report) -> Iterator[tuple[str, ...]]:
    """The steps that operators on the CPU keep waiting, the worst first."""
    told = costs(report.told(OperatorStep), report.told(Operator))
    for one in sorted(told, key=lambda one: one.rate):
        figures = (figure(one.step.ms), figure(one.cpu_ms), figure(one.rate))
        yield (*_sized(one.step), *figures, ", ".join(name.removeprefix("aten::") for name in one.operators))


def _raised(report: Report) -> Iterator[tuple[str, ...]]:
    """The steps that raised, with what they did."""
    for one in report.told(OperatorStep):
        if one.error:
            yield (*_sized(one), "", "", "", cut(one.error, LONGEST))


def _sized(one: OperatorStep) -> tuple[str, str, str]:
    return (one.step, str(one.batch or ""), str(one.vocabulary or ""))


def _untold(scans: Sequence[OperatorScan], words: Mapping[str, str]) -> Iterator[str]:
    """What a detector could not tell of, and why."""
    for scan in scans:
        if scan.untold:
            yield words["detector untold"].format(detector=scan.detector)
            yield from (f"  {one}" for one in scan.untold)
