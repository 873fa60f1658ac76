"""The file that nccl-tests writes with `-J`, from 2.17 on, of version 3 and near it.

It is one document on one line, with the environment of the process in it, of which nothing is quoted. Each process is
listed with its first device alone. Where calls were timed one by one (`-I 1`), the times are those of the slowest rank.

What it cannot know: whether a process that lists itself alone was meant to be one of many; it tells one rank.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import Any

from diag.api import Capture, Collective, Fact, Latency, Recognise, probe

PROGRAMS = {
    "all_reduce_perf": "all_reduce",
    "all_gather_perf": "all_gather",
    "reduce_scatter_perf": "reduce_scatter",
    "alltoall_perf": "all_to_all",
    "alltoallv_perf": "all_to_allv",
    **{f"{name}_perf": name for name in ("broadcast", "reduce", "sendrecv", "gather", "scatter", "hypercube")},
}
EXCHANGES = {"all_to_all", "all_to_allv", "sendrecv"}
"""Operations of which nothing is verified in place."""
DTYPES = {
    "float": "fp32",
    "half": "fp16",
    "bfloat16": "bf16",
    "double": "fp64",
    "f8e4m3": "fp8_e4m3",
    "f8e5m2": "fp8_e5m2",
}
PLACES = (("out_of_place", False), ("in_place", True))
PER_CALL = (("min", "min_us"), ("median", "p50_us"), ("p95", "p95_us"), ("max", "max_us"), ("mean", "avg_us"))
START = '"start_time"'


@probe(
    "nccl-tests/json",
    tells=(Collective,),
    recognise=Recognise(literals=(START,), pattern=r'"start_time"\s{0,4}:\s{0,4}"[0-9]{4}-', lines=20_000),
)
def nccl_json(capture: Capture) -> Iterator[Fact]:
    """Each row of the results, out of place and in place."""
    document = _document(capture.content)
    arguments = document.get("args")
    program = str(arguments[0]).rpartition("/")[2] if isinstance(arguments, list) and arguments else ""
    op = PROGRAMS.get(program.removesuffix("_mpi"), "")
    if "nccl_version" not in document or not op:
        return
    same = {"op": op, "tool": "nccl-tests", "library": "NCCL", **_run(document)}
    for row in _rows(document.get("results")):
        size, dtype = _number(row.get("size")), str(row.get("type"))
        for name, place in PLACES:
            told = row.get(name)
            if size and isinstance(told, dict):
                yield Collective(
                    origin=capture.said(f"{program}: {row.get('size')} {dtype} {json.dumps({name: told})}"),
                    bytes=int(size),
                    dtype=DTYPES.get(dtype, dtype),
                    in_place=place,
                    **same,
                    **_measured(told, row.get(f"{name}_per_iter"), document, alone=same["ranks"] == 1),
                    **({} if place and op in EXCHANGES else _verdict(told)),
                )


def _document(content: str) -> dict[str, Any]:
    """The document from its second field on, since somebody may have broken it into lines."""
    start = content.find(START)
    try:
        found, _ = json.JSONDecoder().raw_decode("{" + content[start:]) if start >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _run(document: dict[str, Any]) -> dict[str, Any]:
    """What was the same for all rows."""
    config = _config(document)
    devices = _rows(config.get("devices"))
    each = int((_number(config.get("nthreads")) or 1) * (_number(config.get("ngpus")) or 1))
    groups = Counter(str(one.get("group")) for one in devices)
    ranks = max(groups.values()) * each if groups else None
    names = {str(one.get("device_info") or "") for one in devices}
    blocking = config.get("blocking_collectives") == "true"
    graph = _number(config.get("graph"))
    return {
        "library_version": _release(_number(document.get("nccl_version"))),
        "device": names.pop() if len(names) == 1 else "",
        "ranks": ranks,
        "nodes": len({str(one.get("hostname")) for one in devices}) if len(groups) == 1 else None,
        "iterations": _whole(config.get("iterations")),
        "mode": "graph" if graph else "synchronised" if blocking else "",
    }


def _config(document: dict[str, Any]) -> dict[str, Any]:
    found = document.get("config")
    return found if isinstance(found, dict) else {}


def _rows(found: object) -> list[dict[str, Any]]:
    """The objects of a list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _measured(told: dict[str, Any], calls: object, document: dict[str, Any], *, alone: bool) -> dict[str, Any]:
    """Time and bandwidth: those of single calls where they were taken, none of calls that were aggregated."""
    times = {"mean": _number(told.get("time"))}
    if isinstance(calls, dict):
        times |= {ours: _number(calls.get(theirs)) for ours, theirs in PER_CALL}
    aggregated = (_number(_config(document).get("aggregated_iterations")) or 1) > 1
    return {
        "latency_us": Latency() if aggregated else Latency(**times),
        "algbw_gbps": None if alone else _number(told.get("alg_bw")) or None,
        "busbw_gbps": None if alone else _number(told.get("bus_bw")) or None,
    }


def _verdict(told: dict[str, Any]) -> dict[str, Any]:
    """Whether the result was right; nothing where it was not verified."""
    wrong = _whole(told.get("nwrong"))
    return {} if wrong is None else {"correct": wrong == 0, "wrong": wrong}


def _release(code: float | None) -> str:
    """A version from its code: 22705 is 2.27.5, and up to 2.8 2804 is 2.8.4."""
    number = int(code or 0)
    base = 10_000 if number >= 10_000 else 1_000
    return f"{number // base}.{number % base // 100}.{number % 100}" if number > 0 else ""


def _whole(found: object) -> int | None:
    number = _number(found)
    return None if number is None else int(number)


def _number(found: object) -> float | None:
    """A number of the document, None where it is none, not finite or less than nothing."""
    known = isinstance(found, int | float) and not isinstance(found, bool) and isfinite(found) and found >= 0
    return float(found) if known else None  # type: ignore[arg-type]
