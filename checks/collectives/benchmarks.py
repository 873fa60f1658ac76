"""What smaller benchmarks of collectives print: all_reduce_bench, DeepSpeed's, gloo's, OSU's.

Bandwidths are those of nccl-tests: gloo prints GiB/s under the name of GB/s and DeepSpeed counts an all-reduce twice,
so that both are told from their times.

What it cannot know: how many ranks there were, where the head was lost; of OSU, what the others do beside all_reduce,
reduce and broadcast, since its sizes are those of a part of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from diag.api import Capture, Collective, Fact, Latency, Line, Origin, Recognise, bus_factor, expression, probe

AVERAGED = expression(
    r"bandwidth of all_reduce (?:over ([0-9]{1,6}) ranks \([0-9]{1,6} warmups / ([0-9]{1,6}) trials\)"
    r"|with a ([0-9]{1,6}(?:\.[0-9]{1,9})?)GB payload \(([0-9]{1,6}) trials, ([0-9]{1,6}) ranks\))"
)
PAYLOAD = expression(
    r"\|\s{1,8}([0-9]{1,6}(?:\.[0-9]{1,3})?)([KMGT]?)i?B\s{1,8}\|\s{1,8}([0-9]{1,8}\.[0-9]{1,4})GBps\s{1,8}"
    r"\|\s{1,8}([0-9]{1,8}\.[0-9]{1,4})GBps"
)
RATE = expression(r"\b(algbw|busbw): ([0-9]{1,8}\.[0-9]{1,4}) GBps\b")
NCCL = expression(r"\bnccl=\(([0-9]{1,3}), ([0-9]{1,3}), ([0-9]{1,3})\)")
HARDWARE = expression(r"- hardware: .{0,80}name='([^']{1,80})'")
SCALES = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}

PERFORMED = expression(
    r"-{4} Performance of (all_reduce|all_gather|all_to_all|broadcast|pt2pt) on ([0-9]{1,6}) devices -"
)
DESCRIBED = expression(
    r"\s([0-9]{1,15})x([0-9]{1,2})\s{1,30}([0-9]{1,12}\.[0-9]{1,4})(?: (us|ms))?\s{1,30}[0-9]{1,9}\.[0-9]{1,4}\s"
)
MICROSECONDS = {"us": 1.0, "ms": 1_000.0, None: 1.0}

OSU = expression(r"# OSU MPI(?:-[A-Z]{2,6})? (\w{1,20}) Latency Test")
OSU_OPS = {"Allreduce": "all_reduce", "Reduce": "reduce", "Bcast": "broadcast"}
OSU_ROW = expression(
    r"(?:^|[\s:])([0-9]{1,12})\s{1,40}([0-9]{1,10}\.[0-9]{2})"
    r"(?:\s{1,30}([0-9]{1,10}\.[0-9]{2})\s{1,30}([0-9]{1,10}\.[0-9]{2})\s{1,30}([0-9]{1,9}))?\s*$"
)

ALGORITHM = expression(r"(?:^|[\s:_])(allreduce|broadcast|ALLREDUCE|BROADCAST)_[A-Za-z_]{3,40}\s*$")
GLOO_OPS = {"allreduce": "all_reduce", "broadcast": "broadcast"}
PROCESSES = expression(r"\bOptions:\s{1,20}processes=([0-9]{1,6}), inputs=")
GLOO_HEAD = expression(
    r"(?:^|\s)(size \(B\)\s{1,20})?elements\s{1,20}min \((us|ns)\)\s{1,20}p50 \([un]s\)\s{1,20}"
    r"p99 \([un]s\)\s{1,20}max \("
)
NUMBER = expression(r"[0-9]{1,15}(?:\.[0-9]{1,6})?")
FLOAT = 4
"""Bytes of gloo's elements, unless it is asked for halves."""


@probe(
    "all_reduce_bench",
    tells=(Collective,),
    recognise=Recognise(
        literals=("bandwidth of all_reduce ", "GBps |", "busbw: ", "algbw: ", "software: torch=", "- hardware: "),
        pattern="|".join(one.pattern for one in (AVERAGED, PAYLOAD, RATE, NCCL, HARDWARE)),
        each=True,
        lines=40,
    ),
)
def all_reduce_bench(capture: Capture) -> Iterator[Fact]:
    """Stas Bekman's benchmark in both its forms: one payload, or a table of them."""
    same: dict[str, Any] = {}
    payload = rate = 0.0
    for line in capture.lines():
        if found := AVERAGED.search(line.text):
            payload, trials = float(found[3] or 0) * 1e9, int(found[2] or found[4])
            same |= {"ranks": int(found[1] or found[5]), "iterations": trials}
        elif found := NCCL.search(line.text):
            same |= {"library": "NCCL", "library_version": ".".join(found.groups())}
        elif found := HARDWARE.search(line.text):
            same["device"] = found[1]
        elif found := PAYLOAD.search(line.text):
            size = float(found[1]) * 1024 ** SCALES[found[2]]
            yield _reduced(capture, line, same, round(size), float(found[4]), float(found[3]))
        elif (found := RATE.search(line.text)) and payload:
            if found[1] == "busbw" and rate:
                yield _reduced(capture, line, same, round(payload), rate, float(found[2]))
            rate = float(found[2]) if found[1] == "algbw" else 0.0


def _reduced(capture: Capture, line: Line, same: dict[str, Any], size: int, algbw: float, busbw: float) -> Collective:
    return Collective(
        origin=capture.origin(line),
        op="all_reduce",
        bytes=size,
        tool="all_reduce_bench",
        mode="synchronised",
        in_place=True,
        dtype="fp32",
        algbw_gbps=algbw,
        busbw_gbps=busbw,
        **same,
    )


@probe(
    "ds_bench",
    tells=(Collective,),
    recognise=Recognise(literals=("---- Performance of ",), pattern=PERFORMED.pattern, lines=60),
)
def ds_bench(capture: Capture) -> Iterator[Fact]:
    """DeepSpeed's benchmark: sizes by the description of the tensor, bandwidths by the time."""
    op, ranks = "", 0
    for line in capture.lines():
        if found := PERFORMED.search(line.text):
            op, ranks = "sendrecv" if found[1] == "pt2pt" else found[1], int(found[2])
        elif found := DESCRIBED.search(line.text):
            size = int(found[1]) * int(found[2]) * (ranks if op == "all_gather" else 1)
            time = float(found[3]) * MICROSECONDS[found[4]]
            yield _timed(
                capture.origin(line), "ds_bench", (op, size), Latency(mean=time), ranks=ranks, mode="free-running"
            )


@probe(
    "osu",
    tells=(Collective,),
    recognise=Recognise(literals=("# OSU MPI",), pattern=OSU.pattern, lines=80),
)
def osu(capture: Capture) -> Iterator[Fact]:
    """OSU's latency tests of collectives: the mean time of a call, of the slowest rank where that is told."""
    op = ""
    for line in capture.lines():
        if "# OSU " in line.text:
            found = OSU.search(line.text)
            op = OSU_OPS.get(found[1], "") if found else ""
        elif op and (found := OSU_ROW.search(line.text)):
            mean = Latency(mean=float(found[4] or found[2]))
            more = {"iterations": int(found[5])} if found[5] else {}
            yield _timed(
                capture.origin(line), "osu", (op, int(found[1])), mean, mode="synchronised", in_place=False, **more
            )


@probe(
    "gloo-benchmark",
    tells=(Collective,),
    recognise=Recognise(
        literals=("p50 (us)", "p50 (ns)", "allreduce_", "ALLREDUCE_", "broadcast_one", "BROADCAST_ONE", " processes="),
        pattern=f"{GLOO_HEAD.pattern}|{PROCESSES.pattern}|{ALGORITHM.pattern}",
        lines=60,
    ),
)
def gloo_benchmark(capture: Capture) -> Iterator[Fact]:
    """gloo's own benchmark: the times of calls on rank 0."""
    op, ranks, unit, columns = "", None, 0.0, 0
    for line in capture.lines():
        if found := GLOO_HEAD.search(line.text):
            unit, columns = (1.0 if found[2] == "us" else 0.001), 2 if found[1] else 1
        elif found := ALGORITHM.search(line.text):
            op = GLOO_OPS[found[1].lower()]
        elif found := PROCESSES.search(line.text):
            ranks = int(found[1])
        elif op and unit and (numbers := _numbers(line.text, columns + 5)):
            size = int(numbers[0]) * (1 if columns == 2 else FLOAT)
            least, median, _, most = (float(one) * unit for one in numbers[columns : columns + 4])
            times = Latency(min=least, median=median, max=most)
            more: dict[str, Any] = {"mode": "free-running", "iterations": int(float(numbers[-1]))}
            yield _timed(capture.origin(line), "gloo-benchmark", (op, size), times, ranks=ranks, backend="gloo", **more)


def _numbers(text: str, least: int) -> Sequence[str]:
    """The words of a line that is nothing but numbers, and enough of them."""
    words = text.split()
    whole = len(words) >= least and all(map(NUMBER.fullmatch, words)) and "." not in words[0]
    return words if whole else ()


def _timed(
    origin: Origin,
    tool: str,
    moved: tuple[str, int],
    times: Latency,
    *,
    ranks: int | None = None,
    **more: Any,
) -> Collective:
    """A measurement of which the time was told: bandwidths are made from it."""
    op, size = moved
    algbw = size / times.typical / 1e3 if times.typical else None
    factor = bus_factor(op, ranks) if ranks else None
    return Collective(
        origin=origin,
        op=op,
        bytes=size,
        tool=tool,
        latency_us=times,
        ranks=ranks,
        algbw_gbps=algbw,
        busbw_gbps=algbw * factor if algbw and factor else None,
        **more,
    )
