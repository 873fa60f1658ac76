"""What diag's own ranks measured: each operation by size and mode, who the ranks were, and why there is no more.

What it cannot know: what an engine's own kernels reach. Where these replace the collective library (custom all-reduce,
symmetric memory, fused kernels), the times of torch's all_reduce are an upper bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from math import isfinite
from typing import Any

from diag.api import (
    ALONE,
    Capture,
    Collective,
    CollectivePair,
    CollectiveRank,
    CollectiveTrouble,
    CollectiveVerdict,
    CollectiveWorld,
    Fact,
    Known,
    Latency,
    Library,
    RankTiming,
    Recognise,
    Unavailable,
    Verdict,
    bases,
    bus_factor,
    by_torch,
    expression,
    inside,
    judged,
    measured_pairs,
    pairs_of,
    probe,
)

SCHEMA = "diag/collectives/1"
LIBRARIES = (
    *(
        "libnccl",
        "librccl",
        "libbkcl",
        "libccl.so",
        "libhccl",
        "libhcom",
        "libmpi.so",
        "libflagcx",
        "libmccl",
        "libucc.so",
    ),
    *("libcncl", "libmcclprim", "libxpucuda", "libnccl-net", "libnccl-tuner", "librccl-net"),
)
"""How the files begin that exchange data between ranks, or pose as the runtime of another maker."""
VERSIONS = r"(?:[NRHMB]CCL|NCCL|xccl|FlagCX|oneCCL)[ _][Vv]ersion[: ]{1,2}([0-9a-f][\w.+\-]{1,40})"
"""What such a file says of its own version, as it would print it."""
RESOURCES = ("GPU", "NPU", "HPU")
"""How Ray calls accelerators that torch can use."""
IN_USE = (
    "more than half the memory of devices {devices} is held: they are in use, and diag comm measures them all the same"
)
US, GB = 1e6, 1e9
INSIDE = expression(r"isolation: pair (\d+) to (\d+)")
"""What a rank notes before it exchanges with one other."""
SHOWN = 512
"""Pairs that are told of a world, the slowest of a larger one."""


@probe(
    "collectives",
    tells=(
        *(Collective, CollectiveRank, CollectiveWorld, CollectiveTrouble, Library),
        *(CollectivePair, RankTiming, CollectiveVerdict),
    ),
    measure="collectives",
    arguments=(json.dumps({"libraries": LIBRARIES, "versions": VERSIONS, "resources": RESOURCES}),),
    interpreter="target",
    cost="active",
    ranks=True,
    spared=by_torch(2),
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0),
)
def collectives(capture: Capture) -> Iterator[Fact]:
    """What was measured, by whom, and what went wrong."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    if "devices" in document:
        used = ", ".join(map(str, document.get("in_use", ())))
        reason = IN_USE.format(devices=used) if used else ALONE[document["devices"]]
        origin = capture.said(f'"schema": "{SCHEMA}"')
        yield Unavailable(origin=origin, what="collectives", how="missing", reason=reason, tells=("Collective",))
        return
    yield from _ranks(capture, document)
    yield from _trouble(capture, document)
    yield from _libraries(capture, document)
    for one in document.get("results", ()):
        if all(map(isfinite, (one.get("median") or 0.0, one.get("interval90") or 0.0, *chain(*one["blocks"])))):
            yield from _result(capture, document, one)
    yield from _refusals(capture, document)
    if isolation := document.get("isolation"):
        yield from _isolated(capture, document, isolation)


def _ranks(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    """The world, and each rank: what it said of itself, and what was seen of it."""
    told = {one["rank"]: one for one in document.get("ranks", ())}
    seen = {one["rank"]: one for one in document.get("states", ())}
    size = document.get("size") or len(told)
    nodes = len({one["host"] for one in told.values()}) or 1
    yield CollectiveWorld(
        origin=capture.said(f'"backend": "{document["backend"]}"'),
        launcher=document.get("launcher", ""),
        ranks=size,
        nodes=nodes,
        device=document["device"],
        backend=document["backend"],
        implementation=document.get("implementation", ""),
        seconds=document.get("seconds"),
    )
    for rank in sorted(told.keys() | seen.keys()):
        yield _rank(capture, rank, told.get(rank, {}), seen.get(rank, {}))


def _rank(capture: Capture, rank: int, told: dict[str, Any], seen: dict[str, Any]) -> CollectiveRank:
    return CollectiveRank(
        origin=capture.said(f'"rank": {rank}'),
        rank=rank,
        host=told.get("host", ""),
        pid=seen.get("pid") or told.get("pid"),
        device=told.get("device", ""),
        address=told.get("address", ""),
        torch=told.get("torch", ""),
        library_version=told.get("library", ""),
        cpus=told.get("cpus"),
        phase=seen.get("phase", ""),
        entered=seen.get("entered"),
        finished=seen.get("finished"),
        state=seen.get("state", ""),
        ended=seen.get("ended", ""),
    )


def _trouble(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    if trouble := document.get("trouble"):
        yield CollectiveTrouble(
            origin=capture.said(json.dumps(trouble["reason"])[1:-1]),
            kind=trouble["kind"],
            reason=trouble["reason"],
            suspects=tuple(trouble.get("suspects", ())),
            seconds=trouble.get("seconds"),
            released=trouble.get("released"),
        )


def _refusals(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    """The operations and modes that a backend does not have, each by its first size."""
    told = [one for one in reversed(document.get("results", ())) if one.get("error") and one["mode"] != "graph"]
    for one in reversed({(one["op"], one["mode"]): one for one in told}.values()):
        reason = f"{one['op']} of {one['bytes']} bytes, {one['mode']}: {one['error']}"
        yield CollectiveTrouble(origin=capture.said(json.dumps(one["error"])[1:-1]), kind="failed", reason=reason)


def _libraries(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    """The libraries in the process of one rank: the first that holds the most."""
    held = [one.get("libraries", ()) for one in document.get("ranks", ())]
    for path, version in max(held, key=len, default=()):
        name = path.rpartition("/")[2].partition(".so")[0]
        yield Library(origin=capture.said(path), name=name, path=path, version=version, process="collectives")


def _result(capture: Capture, document: dict[str, Any], result: dict[str, Any]) -> Iterator[Fact]:
    ranks = document.get("ranks", ())
    samples = sorted(one for block in result["blocks"][1:] or result["blocks"] for one in block)
    if not samples and result["correct"] is not False:
        return
    median = result.get("median") or None
    size, op = result["bytes"], result["op"]
    algbw = size / median / GB if median else None
    factor = bus_factor(op, len(ranks))
    libraries = [one for rank in ranks[:1] for one in rank.get("libraries", ())]
    path, version = libraries[0] if libraries else ("", "")
    interval = result.get("interval90")
    yield Collective(
        origin=capture.said(f'"op": "{op}", "bytes": {size}, "mode": "{result["mode"]}"'),
        op=op,
        bytes=size,
        tool="diag",
        mode=result["mode"],
        in_place=result["in_place"],
        backend=document["backend"],
        library=path.rpartition("/")[2],
        library_version=version or ranks[0].get("library", ""),
        device=ranks[0].get("device", ""),
        dtype=document["dtype"],
        ranks=len(ranks),
        nodes=len({one["host"] for one in ranks}),
        iterations=result["calls"],
        latency_us=_latency(samples, median),
        interval90_us=None if interval is None else _us(interval),
        rank_us=tuple(_us(_median(blocks[1:] or blocks)) for blocks in result["ranks"] if blocks),
        foreign_cpu=result["foreign_cpu"],
        algbw_gbps=_rounded(algbw),
        busbw_gbps=_rounded(algbw * factor if algbw and factor else None),
        correct=result["correct"],
        noisy=bool(median and interval is not None and interval >= PRECISE * median),
    )


def _isolated(capture: Capture, document: dict[str, Any], isolation: dict[str, Any]) -> Iterator[Fact]:
    """The matrix of pairs, what each rank did by itself, and who is to blame."""
    hosts, steps = tuple(one["host"] for one in document["ranks"]), isolation["steps"]
    if error := isolation["error"]:
        yield CollectiveTrouble(origin=capture.said(json.dumps(error)[1:-1]), kind="failed", reason=f"pairs: {error}")
    known, cells = Known(hosts, isolation["large"]), measured_pairs(steps)
    for step in reversed([step for step in steps if step["kind"] == "pairs"]):
        yield from _pairs(capture, known, cells, step["bytes"])
        break
    for rank in range(len(hosts)):
        alone, inside_ = ([_us(step["seconds"][rank]) for step in steps if step["kind"] == one] for one in ALONE_LATE)
        origin = capture.said(f'"rank": {rank}')
        yield RankTiming(origin=origin, rank=rank, alone_us=tuple(alone), in_call_us=tuple(inside_))
    met = [
        INSIDE.search(one.get("phase", "")) for one in document.get("states", ()) if one["entered"] > one["finished"]
    ]
    dead = sorted({(int(one[1]), int(one[2])) for one in met if one})
    counted = sum(len(pairs) for step in steps for pairs in step.get("rounds", ()))
    for one in judged(known, steps, dead) if steps else ():
        yield _verdict(capture, one, hosts, counted)


ALONE_LATE = ("self", "late")
"""The steps that time each rank by itself."""


def _pairs(capture: Capture, known: Known, cells: dict[tuple[int, int], Any], sizes: list[int]) -> Iterator[Fact]:
    like = bases(known, cells)
    told = [
        (seconds / like[inside(known, pair), place], pair, place, seconds)
        for pair, cell in cells.items()
        for place, seconds in enumerate(cell.least)
    ]
    for _, (source, target), place, seconds in sorted(told, reverse=len(told) > SHOWN)[:SHOWN]:
        cell = cells[source, target]
        yield CollectivePair(
            origin=capture.said(json.dumps(seconds)),
            source=source,
            target=target,
            bytes=sizes[place],
            us=_us(seconds),
            base_us=_us(like[inside(known, (source, target)), place]),
            passes=cell.passes,
            wrong=cell.wrong,
        )


def _verdict(capture: Capture, one: Verdict, hosts: tuple[str, ...], counted: int) -> CollectiveVerdict:
    first = min(one.ranks, default=0)
    words = f"isolation: pair {first} to {one.peers[0]}" if one.peers else '"isolation"'
    return CollectiveVerdict(
        origin=capture.said(json.dumps(one.seconds) if one.seconds is not None else words),
        kind=one.kind,
        ranks=one.ranks,
        peers=one.peers,
        hosts=tuple(dict.fromkeys(hosts[rank] for rank in (*one.ranks, *one.peers))),
        place=hosts[:first].count(hosts[first]) if one.kind == "rail" else None,
        direction=one.direction,
        bytes=one.bytes,
        us=None if one.seconds is None else _us(one.seconds),
        base_us=None if one.base is None else _us(one.base),
        threshold=one.threshold,
        measured=counted,
        possible=pairs_of(len(hosts)),
    )


PRECISE = 0.05
"""Half of the 90 % interval, as a share of the median, from which on a result is noisy."""


def _latency(samples: list[float], median: float | None) -> Latency:
    if not samples or median is None:
        return Latency()
    last = len(samples) - 1
    least, p5, p10, p95, most = (_us(samples[round(share * last)]) for share in (0.0, 0.05, 0.1, 0.95, 1.0))
    return Latency(min=least, p5=p5, p10=p10, median=_us(median), p95=p95, max=most)


def _us(seconds: float) -> float:
    return round(seconds * US, 3)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
