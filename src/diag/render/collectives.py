"""What was measured between ranks, as a table: each operation by mode and size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from diag.facts import Collective, CollectiveCompared, CollectiveEarlier, against_earlier
from diag.report import Report

SHOWN = 60
"""Rows of a run that are shown although nothing is wrong with them."""
UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (10**9, "GB"), (10**6, "MB"), (10**3, "KB"))
WHOLE = 10_000
"""The most of a unit that is shown."""
LEAST = 0.001
"""GB/s, or microseconds, below which a figure says no more than that."""
HEAD = ("op", "mode", "size", "µs p50", "±", "min", "p95", "algbw", "busbw", "", "")
LEFT = (True, True, *(False,) * 7, True, True)


Place = tuple[str, int, str, str]
"""What makes a row: where it was read (capture, line, quote), as several may stand there, and what it says."""


def table(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines of the table, of each world by itself; GB/s, and microseconds of the slowest rank."""
    found = _found(report)
    for world, group in groupby(report.collectives, key=_world):
        ranks, nodes, backend, library, version, dtype, device, tool = world
        told = {"ranks": ranks, "nodes": nodes, "backend": backend, "library": library, "version": version}
        yield ""
        yield f"{_tidy(words['between'].format(**told, dtype=dtype, device=device, tool=tool))}; {words['units']}"
        rows = list(group)
        # The largest are what thresholds are about.
        shown = [one for one in rows[:-SHOWN] if _wrong(one) or _place(one) in found] + rows[-SHOWN:]
        if len(rows) > len(shown):
            yield words["more rows"].format(count=len(rows) - len(shown))
        yield from aligned([HEAD, *(_row(one, found, words) for one in shown)], LEFT)


def compared(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """The lines that say what the results of each operation were compared with, or that it was nothing and why."""
    told = dict.fromkeys(_beside(one, words) for one in report.told(CollectiveCompared))
    if told:
        yield ""
        yield words["compared"]
        yield from (f"  {line}" for line in told)


def _beside(one: CollectiveCompared, words: Mapping[str, str]) -> str:
    known = {"op": one.op, "ranks": one.ranks or "?", "model": one.model, "compared": one.compared}
    if one.lacks or one.ratio is None:
        why = words[f"lacks {one.lacks or 'row'}"].format(**known, nodes=one.nodes or "?", device=one.device)
        return words["compared with nothing"].format(**known, why=why)
    unit = "µs" if one.latency_us is not None else "GB/s"
    return words["compared with"].format(
        **known,
        results=one.results,
        baseline=f"{figure(one.latency_us if one.busbw_gbps is None else one.busbw_gbps)} {unit}",
        standing=words[f"standing {one.standing}"],
        differs=words[f"differs {one.differs}"] if one.differs else "",
        value=f"{figure(one.value)} {unit}",
        size=size(one.bytes or 0),
        percent=f"{one.ratio:.0%}",
    )


def _found(report: Report) -> dict[Place, list[int]]:
    """The findings that rest on a row, by their rank."""
    found: dict[Place, list[int]] = {}
    for finding in report.findings:
        for place in dict.fromkeys((one.capture, one.line, one.quote, one.says) for one in finding.evidence):
            found.setdefault(place, []).append(finding.rank)
    return found


def _place(one: Collective) -> Place:
    return one.origin.capture, one.origin.line, one.origin.quote, one.says()


def _wrong(one: Collective) -> bool:
    return one.correct is False or (one.wrong or 0) > 0


def beside_earlier(report: Report, words: Mapping[str, str]) -> Iterator[str]:
    """How much was compared with an earlier run, and the slowest of it; nothing where there is none."""
    earlier = report.told(CollectiveEarlier)
    if not earlier or not report.collectives:
        return
    alike = against_earlier(report.collectives, earlier)
    told = [(one.ratio, one.now) for one in alike if one.ratio is not None]
    slowest = noisy = ""
    if told:
        ratio, now = max(told, key=lambda one: one[0])
        slowest = words["slowest"].format(ratio=f"{ratio:.2f}", what=f"{now.op}, {now.mode}, {size(now.bytes)}")
    if len(told) < len(alike):
        noisy = words["not comparable"].format(count=len(alike) - len(told))
    figures = {"count": len(told), "all": len(report.collectives), "slowest": slowest, "noisy": noisy}
    yield from ("", words["compared earlier"].format(file=earlier[0].file, **figures))


def _world(one: Collective) -> tuple[object, ...]:
    return (
        *(one.ranks or "?", one.nodes or "?", one.backend, one.library, one.library_version),
        *(one.dtype, one.device, one.tool),
    )


def _tidy(text: str) -> str:
    """Without what was not told."""
    parts = [" ".join(part.split()) for part in text.replace("，", ", ").split(",")]
    return ", ".join(part for part in parts if part.strip(" ()"))


def _row(one: Collective, found: Mapping[Place, Sequence[int]], words: Mapping[str, str]) -> tuple[str, ...]:
    latency = one.latency_us
    half, typical = one.interval90_us, latency.typical
    share = f"{half / typical:.0%}" if half is not None and typical else ""
    place = {True: "in place", False: "", None: ""}[one.in_place] if one.tool != "diag" else ""
    notes = [
        f"{words['wrong']} ({one.wrong})" if one.wrong else words["wrong"] if _wrong(one) else "",
        words["noisy"] if one.noisy else "",
        words["others"].format(share=f"{one.foreign_cpu:.0%}") if (one.foreign_cpu or 0) > FOREIGN else "",
        *(words["of finding"].format(rank=rank) for rank in found.get(_place(one), ())),
    ]
    figures = (typical, share, latency.min, latency.p95, one.algbw_gbps, one.busbw_gbps)
    return (one.op, one.mode, size(one.bytes), *map(figure, figures), place, ", ".join(filter(None, notes)))


FOREIGN = 0.05
"""The share of the processors from which on it is told that others used it."""


def size(count: int) -> str:
    """Bytes in the largest unit that fits exactly, else as they are."""
    for unit, name in UNITS:
        if count % unit == 0 and 0 < count // unit < WHOLE:
            return f"{count // unit} {name}"
    return f"{count} B"


def figure(value: float | str | None) -> str:
    """A number as it is shown: three figures, or all before the point."""
    if value is None or isinstance(value, str):
        return value or ""
    if value < LEAST:
        return f"<{LEAST}" if value else "0"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def aligned(rows: Sequence[Sequence[str]], left: Sequence[bool]) -> Iterator[str]:
    """The lines of a table, its head the first row: each column as wide as it must be, none that is empty."""
    used = [place for place in range(len(rows[0])) if any(row[place] for row in rows[1:])]
    widths = {place: max(len(row[place]) for row in rows) for place in used}
    for row in rows:
        cells = (row[place].ljust(widths[place]) if left[place] else row[place].rjust(widths[place]) for place in used)
        yield ("  " + "  ".join(cells)).rstrip()
