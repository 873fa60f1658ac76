"""What was measured between ranks in the columns of nccl-tests, for programs that read these.

The mode is `free-running`, which is how nccl-tests time (calls queued one behind the other), unless another alone was
measured: the head says so, and by what where that was not diag. Of a placement that was not measured the columns say
`N/A`. Verdict and findings follow as comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from diag.facts import Collective, table_head
from diag.render import Look
from diag.render.collectives import beside_earlier
from diag.render.words import WORDS
from diag.report import Report
from diag.text import in_one_line

MODES = ("free-running", "", "synchronised", "graph")
"""Which mode is printed: the first of these that was measured."""
TYPES = {"bf16": ("bfloat16", 2), "fp16": ("half", 2), "fp32": ("float", 4)}
REDUCES = ("all_reduce", "reduce_scatter")
PARTS = ("all_gather", "reduce_scatter", "all_to_all")
"""Of these nccl-tests counts the elements of one rank's part."""
COLUMNS = "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}"
FIGURES = "  {:>7}  {:>6}  {:>6} {:>6}"
HEADS = (
    (("size", "count", "type", "redop", "root"), ("time", "algbw", "busbw", "#wrong")),
    (("(B)", "(elements)", "", "", ""), ("(us)", "(GB/s)", "(GB/s)", "")),
)
NONE = ("N/A", "N/A", "N/A", "N/A")
PLACES = ("out-of-place", "in-place")


def render(report: Report, look: Look) -> str:
    """The tables, one for each operation."""
    return "".join(f"{line.rstrip()}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    for op, group in groupby(report.collectives, key=lambda one: one.op):
        every = list(group)
        mode = min({one.mode for one in every}, key=MODES.index)
        rows = [one for one in every if one.mode == mode]
        yield f"# Collective test starting: {op}_perf"
        yield from table_head(rows[0], report.tool, mode or MODES[0])
        yield "#"
        yield f"#{'':51}" + "".join(f"{place:^31}" for place in PLACES)
        for columns, figures in HEADS:
            yield "#" + COLUMNS.format(*columns)[1:] + 2 * FIGURES.format(*figures)
        yield from map(_row, rows)
        bandwidths = [one.busbw_gbps for one in rows if one.busbw_gbps is not None]
        wrong = sum(one.correct is False for one in rows)
        yield f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"
        if bandwidths:
            yield f"# Avg bus bandwidth    : {sum(bandwidths) / len(bandwidths):g}"
        yield "#"
    yield f"# Verdict              : {report.verdict}"
    for line in filter(None, beside_earlier(report, WORDS[report.language])):
        yield f"# {in_one_line(line)}"
    for reason in report.incomplete:
        yield f"# Not answered         : {in_one_line(reason)}"
    for one in report.findings:
        yield f"# {one.severity:<7} {one.id}: {in_one_line(one.summary)}"


def _row(one: Collective) -> str:
    kind, width = TYPES.get(one.dtype, (one.dtype, 1))
    told = (
        f"{one.latency_us.typical or 0:.2f}",
        *(f"{value:.2f}" if value is not None else "N/A" for value in (one.algbw_gbps, one.busbw_gbps)),
        "N/A" if one.correct is None else str(int(not one.correct)),
    )
    redop, root = "sum" if one.op in REDUCES else "none", "0" if one.op == "broadcast" else "-1"
    figures = (NONE, told) if one.in_place else (told, NONE)
    count = one.bytes // width // (one.ranks or 1 if one.op in PARTS else 1)
    return COLUMNS.format(one.bytes, count, kind, redop, root) + "".join(FIGURES.format(*part) for part in figures)
