"""What measured collectives mean, as tables: the line that each sweep follows, and the decode steps of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from diag.facts import CollectiveModel, DecodeStep, size_in_words
from diag.render.collectives import aligned, figure
from diag.report import Report

SIZES = 3
"""Sizes of a sweep from which on a line is spoken of."""
SHOWN = 40
LINES = ("op", "mode", "ranks", "α µs", "algbw", "busbw", "knee", "break", "residual", "")
LINES_LEFT = (True, True, *(False,) * 7, True)
STEPS = (
    *("tokens", "ranks", "size", "call µs", "calls ms", "step ms", "share", "measured", "of that"),
    *("gain", "even µs", ""),
)
STEPS_LEFT = (*(False,) * 11, True)


def decoded(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of both tables."""
    lines = [one for one in report.told(CollectiveModel) if one.sizes >= SIZES]
    if lines:
        yield from ("", words["line"])
        yield from aligned([LINES, *(_line(one, words) for one in lines[:SHOWN])], LINES_LEFT)
    for _, group in groupby(report.told(DecodeStep), key=lambda one: (one.origin.scope, one.weights_bytes)):
        yield from _steps(list(group), words)


def _line(one: CollectiveModel, words: Mapping[str, str]) -> tuple[str, ...]:
    knee, broken = (size_in_words(round(size)) if size else "" for size in (one.knee_bytes, one.break_bytes))
    note = "" if one.accepted else words["no line"].format(why=one.refused)
    error = f"{one.fit_error:.1%}" if one.fit_error is not None else ""
    figures = map(figure, (one.alpha_us, one.bandwidth_gbps, one.busbw_gbps))
    return (one.op, one.mode, str(one.ranks or ""), *figures, knee, broken, error, note)


def _steps(steps: Sequence[DecodeStep], words: Mapping[str, str]) -> Iterator[str]:
    divided = [one for one in steps if one.ranks > 1]
    if not divided:
        return
    first = divided[0]
    yield from ("", words["steps"].format(calls=first.calls, mode=f" ({first.mode})" if first.mode else ""))
    if first.weights_bytes:
        told = {"weights": f"{first.weights_bytes / 1e9:.3g}", "from": words[f"weights {first.weights_from}"]}
        yield words["weights"].format(**told)
    if first.bandwidth_gbps:
        whose = words[f"bandwidth {first.bandwidth_from}"]
        yield words["bandwidth"].format(**{"gbps": f"{first.bandwidth_gbps:.0f}", "from": whose})
    rows = sorted(steps, key=lambda one: (one.batch, one.ranks))
    yield from aligned([STEPS, *(_step(one, words) for one in rows[:SHOWN])], STEPS_LEFT)
    yield words["upper bound"]


def _step(one: DecodeStep, words: Mapping[str, str]) -> tuple[str, ...]:
    if one.ranks == 1:
        return (str(one.batch), "1", "", "", "", figure(one.step_ms), *("",) * 6)
    notes = [
        words[f"limit {one.limit}"] if one.limit else "",
        words["assumed"].format(ranks=one.measured_ranks) if one.basis == "assumed" else "",
        words[one.basis] if one.basis in ("interpolated", "extrapolated") else "",
        words["at least"] if one.noisy else "",
        words["exceeded"] if one.exceeded else "",
    ]
    more = "" if one.gain is not None or one.share is None else "≤ "
    return (
        *(str(one.batch), str(one.ranks), size_in_words(one.bytes)),
        *map(figure, (one.call_us, one.comm_ms, one.step_ms)),
        *(more + _percent(one.share), figure(one.measured_ms), "" if one.exceeded else _percent(one.measured_share)),
        *(f"{one.gain:.2f}" if one.gain is not None else "", figure(one.break_even_us)),
        ", ".join(filter(None, notes)),
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"
