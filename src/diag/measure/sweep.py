"""The measuring that `collectives.py` does: operations on tensors of many sizes, timed and verified.

Sizes are measured in rounds, so that what disturbs the machine for a second disturbs all of them a little; rank 0
decides before each round what is still open. Seconds of a call are those of its slowest rank.

Modes: `synchronised`, a barrier before each call and its end awaited; `free-running`, calls queued one behind the
other, their end awaited once; `graph`, the same from a captured graph. Bytes are those of the tensor on one rank, for
all_gather, reduce_scatter and all_to_all of the whole one, as nccl-tests count them. Buffers hold zeros while time is
taken, and a pattern whose sums are exact in every type when the result is compared.
"""

from __future__ import annotations

import os
import random
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

CALLS, CALLS_LEAST = 2_000, 20
"""Samples of one size and mode: the most, and the fewest before an interval is believed."""
BLOCK, BATCHES = 50, 5
"""Calls of a block, the most; and how many samples it gives where calls are not timed one by one."""
FIRST = 3
"""Calls of the first block, which warms up and does not count where there are others."""
ROUNDS_LEAST = 5
PRECISE = 0.05
"""Half of the 90 % interval of the median, as a share of it, at which a size is done."""
RESAMPLED = 200
KEPT = 4 * 2**20
"""Bytes up to which the buffers of a size stay from round to round."""
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
PARTED = ("all_gather", "reduce_scatter", "all_to_all")
"""Operations in which each rank has a part of the whole."""
EXACT = 256
"""Up to here every whole number is exact in all of these types."""


class Case(NamedTuple):
    """What is measured: an operation on so many bytes, in a mode."""

    op: str
    bytes: int
    mode: str


class Exchange(NamedTuple):
    """An operation with its buffers: the call, and whether a call with the pattern gives what it must."""

    call: Callable[[], Any]
    right: Callable[[], bool]


class Taken(NamedTuple):
    """Of a case so far: seconds of each call in each block, of the slowest rank; medians of each rank; calls.

    `foreign` are processor seconds of this host that were none of the ranks', and those that there were, by block.
    """

    slowest: list[list[float]]
    ranks: list[list[float]]
    foreign: list[tuple[float, float]]
    calls: list[int]
    wrong: list[str]


def swept(world: Any, document: dict[str, Any], shown: Callable[[], None]) -> None:
    """Measure all cases in rounds, until each is precise or the time is over; `document` has what is known by now."""
    request = world.request
    modes = [mode for mode in request["modes"] if mode != "graph" or graphs(world.module)]
    if not modes:
        reason = f"{world.device} has no graphs to capture calls in (--mode)"
        document["trouble"] = {"kind": "refused", "reason": reason, "suspects": []}
        return
    sized = dict.fromkeys((op, whole(op, size, world)) for op in request["ops"] for size in request["sizes"])
    cases = [Case(op, size, mode) for op, size in sized for mode in modes]
    taken = [Taken([], [[] for _ in range(world.size)], [], [], []) for _ in cases]
    exchanges: dict[tuple[str, int], Exchange] = {}
    end = time.monotonic() + request["budget"]
    number = 0
    while plan := world.agreed(f"plan/{number}", planned(taken, end)):
        for index, calls in plan:
            told = block(world, cases[index], calls, exchanges, f"{number}/{index}")
            if told:
                kept(taken[index], told, calls)
        wrong = {case[:2] for case, one in zip(cases, taken) if "wrong" in one.wrong}
        document["results"] = [result(case, one, case[:2] not in wrong) for case, one in zip(cases, taken)]
        shown()
        number += 1


def whole(op: str, size: int, world: Any) -> int:
    """The bytes that are exchanged for a size: whole elements, as many for each rank where it has a part."""
    width: int = world.torch.empty(0, dtype=getattr(world.torch, DTYPES[world.request["dtype"]])).element_size()
    ranks: int = world.size if op in PARTED else 1
    return max(1, size // width // ranks) * width * ranks


def block(
    world: Any, case: Case, calls: int, exchanges: dict[tuple[str, int], Exchange], place: str
) -> list[tuple[Any, ...]]:
    """A block of calls: what each rank saw, told to rank 0 alone."""
    key = case[:2]
    world.progress.at(f"round {place.partition('/')[0]}: {case.op} of {case.bytes} bytes, {case.mode}")
    wrong, seconds, before = "", list[float](), ticks()
    try:
        if key not in exchanges:
            for other in [one for one in exchanges if one[1] > KEPT]:
                del exchanges[other]
            exchanges[key] = exchange(world, case)
            world.progress.enter()
            wrong = "" if exchanges[key].right() else "wrong"
            world.progress.leave()
        before = ticks()
        seconds = MODES[case.mode](world, exchanges[key].call, calls)
    except Exception as error:
        # An operation or type that a backend does not have raises at once, on all ranks alike.
        wrong = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    spent = tuple(now - then for now, then in zip(ticks(), before))
    return world.all(f"taken/{place}", (seconds, wrong, spent, socket.gethostname()))  # type: ignore[no-any-return]


class Buffers:
    """The tensors of a case on this rank's device, and the pattern that is exchanged where results are compared."""

    def __init__(self, world: Any, case: Case) -> None:
        self.torch, self.device, self.rank, self.size = world.torch, world.device, world.rank, world.size
        self.kind = getattr(self.torch, DTYPES[world.request["dtype"]])
        width = self.torch.empty(0, dtype=self.kind).element_size()
        self.count = case.bytes // width
        self.part = self.count // self.size
        self.cycle = period(self.size)
        self.source, self.target = (self.torch.zeros(self.count, dtype=self.kind, device=self.device) for _ in range(2))

    def pattern(self, owner: int, start: int = 0, length: int | None = None) -> Any:
        """What a rank sends, from an element on."""
        return self.repeated([(one + owner + start) % self.cycle for one in range(self.cycle)], length)

    def everyone(self, start: int = 0, length: int | None = None) -> Any:
        """The sum of what all ranks send, from an element on."""
        ranks, cycle = range(self.size), range(self.cycle)
        return self.repeated([sum((one + owner + start) % self.cycle for owner in ranks) for one in cycle], length)

    def repeated(self, values: list[int], length: int | None) -> Any:
        """These values over and over."""
        length = self.count if length is None else length
        once = self.torch.tensor(values, dtype=self.kind, device=self.device)
        return once.repeat(length // self.cycle + 1)[:length]


def exchange(world: Any, case: Case) -> Exchange:
    """The call of a case with its buffers, on this rank's device."""
    buffers = Buffers(world, case)
    call, told, wanted = operations(world.torch.distributed, buffers)[case.op]

    def right() -> bool:
        buffers.source.copy_(buffers.pattern(buffers.rank))
        call()
        world.synchronise()
        same = bool(world.torch.equal(told, wanted()))
        buffers.source.zero_()
        buffers.target.zero_()
        return same

    return Exchange(call, right)


def operations(distributed: Any, own: Buffers) -> dict[str, tuple[Callable[[], Any], Any, Callable[[], Any]]]:
    """Each operation: its call, the tensor with its result, and what must stand in it."""
    source, target, part, rank = own.source, own.target, own.part, own.rank
    after, before = (rank + 1) % own.size, (rank - 1) % own.size

    def pair() -> None:
        told = distributed.P2POp(distributed.isend, source, after)
        heard = distributed.P2POp(distributed.irecv, target, before)
        for one in distributed.batch_isend_irecv([told, heard]):
            one.wait()

    def parts(start: int) -> Any:
        return own.torch.cat([own.pattern(one, start, part) for one in range(own.size)])

    return {
        "all_reduce": (lambda: distributed.all_reduce(source), source, own.everyone),
        "all_gather": (
            lambda: distributed.all_gather_into_tensor(target, source[:part]),
            target,
            lambda: parts(0),
        ),
        "reduce_scatter": (
            lambda: distributed.reduce_scatter_tensor(target[:part], source),
            target[:part],
            lambda: own.everyone(rank * part, part),
        ),
        "all_to_all": (
            lambda: distributed.all_to_all_single(target, source),
            target,
            lambda: parts(rank * part),
        ),
        "broadcast": (lambda: distributed.broadcast(source, 0), source, lambda: own.pattern(0)),
        "sendrecv": (pair, target, lambda: own.pattern(before)),
    }


def period(ranks: int) -> int:
    """After how many elements the pattern repeats, so that no sum over the ranks is the same everywhere if possible."""
    fits = [one for one in (7, 5, 3) if ranks % one and ranks * (one - 1) <= EXACT]
    return fits[0] if fits else 2


def synchronised(world: Any, call: Callable[[], Any], calls: int) -> list[float]:
    """Each call by itself, behind a barrier."""
    progress, synchronise, barrier = world.progress, world.synchronise, world.torch.distributed.barrier
    clock, seconds = time.perf_counter, []
    for _ in range(calls):
        progress.enter()
        barrier()
        synchronise()
        start = clock()
        call()
        synchronise()
        seconds.append(clock() - start)
        progress.leave()
    return seconds


def free_running(world: Any, call: Callable[[], Any], calls: int) -> list[float]:
    """Samples of several calls one behind the other, by their number."""
    return batched(world, lambda number: [call() for _ in range(number)], calls)


def graph(world: Any, call: Callable[[], Any], calls: int) -> list[float]:
    """The same of calls captured in a graph that is replayed."""
    number = max(1, calls // BATCHES)
    captured = graphs(world.module)()
    with world.module.graph(captured):
        for _ in range(number):
            call()
    captured.replay()
    return batched(world, lambda _: captured.replay(), calls)


def batched(world: Any, run: Callable[[int], Any], calls: int) -> list[float]:
    """Samples of the same number of calls, by that number."""
    seconds = []
    number = max(1, calls // BATCHES)
    for _ in range(calls // number):
        world.progress.enter()
        world.torch.distributed.barrier()
        world.synchronise()
        start = time.perf_counter()
        run(number)
        world.synchronise()
        seconds.append((time.perf_counter() - start) / number)
        world.progress.leave()
    return seconds


def graphs(module: Any) -> Any:
    """The class of the device's graphs, None where it has none."""
    return next((getattr(module, name) for name in dir(module) if name.endswith("Graph") and name.isidentifier()), None)


MODES = {"synchronised": synchronised, "free-running": free_running, "graph": graph}


def planned(taken: list[Taken], end: float) -> list[tuple[int, int]]:
    """What the next round measures, by its place, and how many calls of it; only rank 0 knows."""
    left = end - time.monotonic()
    if left <= 0 and any(one.slowest for one in taken):
        return []
    waiting = [index for index, one in enumerate(taken) if not done(one)]
    plan = []
    for index in waiting:
        each = statistics.median(taken[index].slowest[-1]) if taken[index].slowest else 0.0
        # A fifth of what is left is shared by those that are open.
        fair = int(left / ROUNDS_LEAST / len(waiting) / each) if each else FIRST
        plan.append((index, max(1, min(BLOCK, fair))))
    return plan


def done(taken: Taken) -> bool:
    """Whether more calls would not tell more, or must not be made."""
    samples = sum(map(len, taken.slowest))
    if any(one != "wrong" for one in taken.wrong):
        return True
    if len(taken.slowest) < ROUNDS_LEAST or samples < CALLS_LEAST:
        return False
    return samples >= CALLS or interval(taken.slowest)[1] < PRECISE


def interval(blocks: list[list[float]]) -> tuple[float, float]:
    """The median of the blocks' medians, and half of its 90 % interval as a share of it, by resampling blocks."""
    medians = [statistics.median(one) for one in counted(blocks)]
    middle = statistics.median(medians)
    chance = random.Random(0)
    drawn = sorted(statistics.median(chance.choices(medians, k=len(medians))) for _ in range(RESAMPLED))
    low, high = drawn[RESAMPLED // 20], drawn[-RESAMPLED // 20 - 1]
    return middle, (high - low) / 2 / middle if middle else 0.0


def counted(blocks: list[list[float]]) -> list[list[float]]:
    """The blocks without the one that warmed up, unless it is the only one."""
    return blocks[1:] or blocks


def ticks() -> tuple[float, float, float]:
    """Seconds: now, of this process's processors, and of all processors that did something."""
    try:
        with open("/proc/stat") as file:
            busy = file.readline().split()[1:9]
        spent = sum(int(one) for place, one in enumerate(busy) if place not in (3, 4)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        spent = 0.0
    return time.monotonic(), time.process_time(), spent


def kept(taken: Taken, told: list[Any], calls: int) -> None:
    """Keep a block: its slowest ranks, each rank's median, and the time of the processors that others took."""
    taken.wrong.extend(dict.fromkeys(wrong for _, wrong, *_ in told if wrong))
    if not all(seconds for seconds, *_ in told):
        return
    taken.calls.append(calls)
    taken.slowest.append([max(call) for call in zip(*(seconds for seconds, *_ in told))])
    for rank, (seconds, *_) in enumerate(told):
        taken.ranks[rank].append(statistics.median(seconds))
    here = told[0][3]
    wall, _, busy = told[0][2]
    own = sum(spent[1] for _, _, spent, host in told if host == here)
    taken.foreign.append((busy - own, wall * (os.cpu_count() or 1)))


def result(case: Case, taken: Taken, correct: bool) -> dict[str, Any]:
    """A case as the document has it; seconds are rounded to nanoseconds, what is compared is the same in all modes."""
    foreign, all_ = (sum(column) for column in zip(*taken.foreign or [(0.0, 0.0)]))
    errors = [one for one in taken.wrong if one != "wrong"]
    median, half = interval(taken.slowest) if taken.slowest else (0.0, 0.0)
    return {
        **case._asdict(),
        "in_place": case.op in ("all_reduce", "broadcast"),
        "correct": None if errors else correct,
        "error": errors[0] if errors else "",
        "calls": sum(taken.calls),
        "median": round(median, 9),
        "interval90": round(half * median, 9),
        "blocks": [[round(one, 9) for one in block] for block in taken.slowest],
        "ranks": [[round(one, 9) for one in blocks] for blocks in taken.ranks],
        "foreign_cpu": round(min(1.0, max(0.0, foreign) / all_), 3) if all_ else None,
    }
