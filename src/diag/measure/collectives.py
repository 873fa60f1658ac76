"""Collectives between ranks, timed call by call and verified: one process a rank; rank 0 prints `diag/collectives/1`.

`collectives.py REQUEST` reads `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `MASTER_ADDR` and `MASTER_PORT` as torch does. What
ranks tell each other travels over the store, never over the collective that is measured. Sizes are measured in rounds,
so that what disturbs the machine for a second disturbs all of them a little; rank 0 decides before each round what is
still open. Seconds of a call are those of its slowest rank.

Modes: `synchronised`, a barrier before each call and its end awaited; `free-running`, calls queued one behind the
other, their end awaited once; `graph`, the same from a captured graph. Bytes are those of the tensor on one rank, for
all_gather and reduce_scatter of the whole one, as nccl-tests count them. Buffers hold zeros while time is taken, and a
pattern whose sums are exact in every type when the result is compared.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import socket
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

if __name__ == "__main__":
    sys.path.pop(0)

CALLS, CALLS_LEAST = 2_000, 20
"""Calls of one size and mode: the most, and the fewest before an interval is believed."""
BLOCK = 50
"""Calls of a block: the most."""
ROUNDS_LEAST = 5
PRECISE = 0.05
"""Half of the 90 % interval of the median, as a share of it, at which a size is done."""
RESAMPLED = 200
LIBRARIES = ("libnccl", "librccl", "libbkcl", "libccl.so", "libhccl", "libmpi", "libflagcx", "libmccl", "libnccl-net")
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class Case(NamedTuple):
    """What is measured: an operation on so many bytes, in a mode."""

    op: str
    bytes: int
    mode: str


class World:
    """This rank, the others, and the store they meet in."""

    def __init__(self, torch: Any, request: dict[str, Any]) -> None:
        self.torch, self.request = torch, request
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local = int(os.environ.get("LOCAL_RANK", self.rank))
        self.device = request["device"]
        self.module: Any = getattr(torch, self.device, None)
        self.progress = (
            open(request["progress"].format(rank=self.rank), "r+b", buffering=0) if request.get("progress") else None
        )
        from datetime import timedelta

        # torchrun's own agent holds the store where it says so.
        agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        patience = timedelta(seconds=request["patience"])
        whole = torch.distributed.TCPStore(address, port, self.size, self.rank == 0 and not agent, patience)
        self.store = torch.distributed.PrefixStore(f"diag/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", whole)
        self.patience = patience

    def at(self, phase: str) -> None:
        """Note where this rank is, for whoever looks after it."""
        if self.progress:
            self.progress.seek(0)
            self.progress.write(f"{phase:<120}\n".encode())

    def tell(self, key: str, value: Any) -> None:
        """Put something into the store for the others."""
        self.store.set(key, json.dumps(value))

    def told(self, key: str) -> Any:
        """Wait for what another has put there."""
        return json.loads(self.store.get(key))

    def all(self, key: str, value: Any) -> list[Any]:
        """What each rank says; only rank 0 waits for it."""
        self.tell(f"{key}/{self.rank}", value)
        return [self.told(f"{key}/{rank}") for rank in range(self.size)] if self.rank == 0 else []

    def agreed(self, key: str, value: Any) -> Any:
        """What rank 0 says."""
        if self.rank == 0:
            self.tell(key, value)
        return self.told(key)

    def synchronise(self) -> None:
        """Wait for the device."""
        if self.device != "cpu":
            self.module.synchronize()


def main() -> None:
    """Meet, measure, and print the document on rank 0."""
    request = json.loads(sys.argv[1])
    import torch
    import torch.distributed

    for name in request.get("imports", ()):
        importlib.import_module(name)
    world = World(torch, request)
    world.at("meeting")
    if world.device != "cpu":
        world.module.set_device(world.local % max(1, world.module.device_count()))
    ranks = world.all("identity", identity(world))
    document: dict[str, Any] = {"schema": "diag/collectives/1", "ranks": ranks, "results": [], "libraries": []}
    document["error"] = world.agreed("refused", refused(ranks))
    if not document["error"]:
        measured(world, document)
    if world.rank == 0:
        print(json.dumps(document), flush=True)
    # Destroying a process group may wait for ever for a rank that is gone.
    world.agreed("end", "")
    sys.stdout.flush()
    os._exit(0)


def measured(world: World, document: dict[str, Any]) -> None:
    """The first call, the libraries behind it, and all cases."""
    request, distributed = world.request, world.torch.distributed
    world.at("joining the group")
    group = distributed.PrefixStore("group", world.store)
    backend = request["backend"]
    distributed.init_process_group(backend, store=group, rank=world.rank, world_size=world.size, timeout=world.patience)
    world.at("first all_reduce of 8 bytes")
    distributed.all_reduce(world.torch.zeros(2, device=world.device))
    world.synchronise()
    document["libraries"] = sorted({tuple(one) for found in world.all("libraries", libraries()) for one in found})
    document["backend"] = {"asked": backend, "class": type(distributed.distributed_c10d._get_default_group()).__name__}
    cases = [
        Case(op, size, mode)
        for op in request["ops"]
        for size in request["sizes"]
        for mode in request["modes"]
        if mode != "graph" or hasattr(world.module, "CUDAGraph")
    ]
    document["results"] = swept(world, cases)


def identity(world: World) -> dict[str, Any]:
    """Who this rank is, and what it would measure on."""
    torch, module = world.torch, world.module
    properties = module.get_device_properties(module.current_device()) if world.device != "cpu" else None
    return {
        "rank": world.rank,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "device": getattr(properties, "name", "cpu"),
        "uuid": str(getattr(properties, "uuid", ""))
        or (f"{world.device}:{module.current_device()}" if properties else ""),
        "torch": torch.__version__,
        "library": guarded(lambda: ".".join(map(str, torch.cuda.nccl.version())), "") if world.device == "cuda" else "",
        "cpus": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        "started": os.environ.get("TORCHELASTIC_RUN_ID", ""),
    }


def refused(ranks: list[dict[str, Any]]) -> str:
    """Why these ranks measure nothing, empty where they may: one alone, a device held twice, different versions."""
    if len(ranks) == 1:
        return "one rank alone has nobody to exchange with"
    held: dict[tuple[str, str], int] = {}
    for one in ranks:
        key = (one["host"], one["uuid"])
        if one["uuid"] and key in held:
            return f"ranks {held[key]} and {one['rank']} hold the same device {one['uuid']} of {one['host']}"
        held[key] = one["rank"]
    for name in ("torch", "library"):
        versions = {one[name]: one["rank"] for one in reversed(ranks)}
        if len(versions) > 1:
            return f"{name} differs: " + ", ".join(f"{version} on rank {rank}" for version, rank in versions.items())
    return ""


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """What a question answers, or something else where it raises."""
    try:
        return ask()
    except Exception:
        return otherwise


def libraries() -> list[tuple[str, str]]:
    """The libraries for collectives in this process, by name and path."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(None, 5)[5].strip() for line in file if line.count("/") > 0 and ".so" in line}
    except (OSError, IndexError):
        return []
    named = ((os.path.basename(path), path) for path in paths)
    return sorted((name, path) for name, path in named if name.startswith(LIBRARIES))


class Exchange(NamedTuple):
    """An operation with its buffers: the call, and whether a call with the pattern gives what it must."""

    call: Callable[[], Any]
    right: Callable[[], bool]


def exchange(world: World, case: Case) -> Exchange:
    """The buffers of a case, on this rank's device."""
    torch, distributed, size, rank = world.torch, world.torch.distributed, world.size, world.rank
    kind = getattr(torch, DTYPES[world.request["dtype"]])
    count = max(size, case.bytes // torch.empty(0, dtype=kind).element_size() // size * size)
    part = count // size

    def pattern(owner: int, length: int = count) -> Any:
        # Sums of zeros and ones are exact in every type up to 256 ranks.
        return ((torch.arange(length, device=world.device) + owner) % 2).to(kind)

    def everyone(length: int) -> Any:
        return sum(pattern(one, length) for one in range(1, size)) + pattern(0, length)

    source = torch.zeros(count, dtype=kind, device=world.device)
    target = torch.zeros(count, dtype=kind, device=world.device)

    def right(fill: Callable[[], Any], call: Callable[[], Any], result: Any, wanted: Callable[[], Any]) -> bool:
        source.copy_(fill())
        call()
        world.synchronise()
        same = bool(torch.equal(result, wanted()))
        source.zero_()
        target.zero_()
        return same

    calls: dict[str, tuple[Callable[[], Any], Callable[[], Any], Any, Callable[[], Any]]] = {
        "all_reduce": (
            lambda: distributed.all_reduce(source),
            lambda: pattern(rank),
            source,
            lambda: everyone(count),
        ),
        "all_gather": (
            lambda: distributed.all_gather_into_tensor(target, source[:part]),
            lambda: pattern(rank),
            target,
            lambda: torch.cat([pattern(one, part) for one in range(size)]),
        ),
        "reduce_scatter": (
            lambda: distributed.reduce_scatter_tensor(target[:part], source),
            lambda: pattern(rank),
            target[:part],
            lambda: everyone(count)[rank * part : (rank + 1) * part],
        ),
        "all_to_all": (
            lambda: distributed.all_to_all_single(target, source),
            lambda: pattern(rank),
            target,
            lambda: torch.cat([pattern(one)[rank * part : (rank + 1) * part] for one in range(size)]),
        ),
        "broadcast": (
            lambda: distributed.broadcast(source, 0),
            lambda: pattern(rank),
            source,
            lambda: pattern(0),
        ),
        "sendrecv": (
            lambda: [one.wait() for one in distributed.batch_isend_irecv(pair())],
            lambda: pattern(rank),
            target,
            lambda: pattern((rank - 1) % size),
        ),
    }

    def pair() -> list[Any]:
        after, before = (rank + 1) % size, (rank - 1) % size
        return [
            distributed.P2POp(distributed.isend, source, after),
            distributed.P2POp(distributed.irecv, target, before),
        ]

    call, fill, result, wanted = calls[case.op]
    return Exchange(call, lambda: right(fill, call, result, wanted))


class Taken(NamedTuple):
    """The samples of a case so far: seconds of each call in each block, of the slowest rank, and of each rank."""

    slowest: list[list[float]]
    ranks: list[list[float]]
    foreign: list[float]


def swept(world: World, cases: list[Case]) -> list[dict[str, Any]]:
    """All cases in rounds, until each is precise or the time is over."""
    end = time.monotonic() + world.request["budget"]
    exchanges: dict[tuple[str, int], Exchange] = {}
    taken = [Taken([], [[] for _ in range(world.size)], []) for _ in cases]
    correct: dict[tuple[str, int], bool] = {}
    number = 0
    while plan := world.agreed(f"plan/{number}", planned(cases, taken, end)):
        for index, calls in plan:
            case = cases[index]
            key = case[:2]
            world.at(f"round {number}: {case.op} of {case.bytes} bytes, {case.mode}")
            if key not in exchanges:
                exchanges = {key: exchange(world, case)}
                same = world.all(f"right/{number}/{index}", exchanges[key].right())
                correct[key] = correct.get(key, True) and all(same)
            before = ticks()
            seconds = MODES[case.mode](world, exchanges[key].call, calls)
            told = world.all(f"taken/{number}/{index}", (seconds, ticks()[1] - before[1], socket.gethostname()))
            if told:
                kept(taken[index], told, before, ticks())
        number += 1
    return [result(case, one, correct.get(case[:2])) for case, one in zip(cases, taken)]


def planned(cases: list[Case], taken: list[Taken], end: float) -> list[tuple[int, int]]:
    """What the next round measures, by its place in `cases`, and how many calls; only rank 0 knows."""
    left = end - time.monotonic()
    rounds = max((len(one.slowest) for one in taken), default=0)
    if left <= 0 and rounds:
        return []
    open_ = [index for index, one in enumerate(taken) if not done(one)]
    plan = []
    for index in open_:
        block = taken[index].slowest[-1] if taken[index].slowest else []
        each = statistics.median(block) if block else 0.0
        # A fifth of what is left is shared by those that are open.
        fair = left / ROUNDS_LEAST / len(open_) / each if each else 3
        plan.append((index, max(1, min(BLOCK, int(fair)))))
    return plan


def done(taken: Taken) -> bool:
    """Whether more calls would not tell more."""
    calls = sum(map(len, taken.slowest))
    if len(taken.slowest) < ROUNDS_LEAST or calls < CALLS_LEAST:
        return False
    return calls >= CALLS or interval(taken.slowest)[1] < PRECISE


def interval(blocks: list[list[float]]) -> tuple[float, float]:
    """The median of the blocks' medians, and half of its 90 % interval as a share of it, by resampling blocks."""
    medians = [statistics.median(one) for one in blocks[1:] or blocks]
    middle = statistics.median(medians)
    chance = random.Random(0)
    drawn = sorted(statistics.median(chance.choices(medians, k=len(medians))) for _ in range(RESAMPLED))
    low, high = drawn[RESAMPLED // 20], drawn[-RESAMPLED // 20 - 1]
    return middle, (high - low) / 2 / middle if middle else 0.0


def synchronised(world: World, call: Callable[[], Any], calls: int) -> list[float]:
    """Each call by itself, behind a barrier."""
    seconds = []
    for _ in range(calls):
        world.torch.distributed.barrier()
        world.synchronise()
        start = time.perf_counter()
        call()
        world.synchronise()
        seconds.append(time.perf_counter() - start)
    return seconds


def free_running(world: World, call: Callable[[], Any], calls: int) -> list[float]:
    """One sample: calls one behind the other, by their number."""
    world.torch.distributed.barrier()
    world.synchronise()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    world.synchronise()
    return [(time.perf_counter() - start) / calls]


def graph(world: World, call: Callable[[], Any], calls: int) -> list[float]:
    """One sample: the calls captured in a graph that is replayed, by their number."""
    module = world.module
    captured = module.CUDAGraph()
    with module.graph(captured):
        for _ in range(calls):
            call()
    captured.replay()
    world.torch.distributed.barrier()
    world.synchronise()
    start = time.perf_counter()
    captured.replay()
    world.synchronise()
    return [(time.perf_counter() - start) / calls]


MODES = {"synchronised": synchronised, "free-running": free_running, "graph": graph}


def ticks() -> tuple[float, float, float]:
    """Seconds: now, of this process's processors, and of all processors that did something."""
    try:
        with open("/proc/stat") as file:
            busy = file.readline().split()[1:9]
        spent = sum(int(one) for place, one in enumerate(busy) if place not in (3, 4)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        spent = 0.0
    return time.monotonic(), time.process_time(), spent


def kept(taken: Taken, told: list[Any], before: tuple[float, ...], after: tuple[float, ...]) -> None:
    """Keep a block: its slowest ranks, each rank's median, and the share of the processors that others took."""
    taken.slowest.append([max(call) for call in zip(*(seconds for seconds, *_ in told))])
    for rank, (seconds, *_) in enumerate(told):
        taken.ranks[rank].append(statistics.median(seconds))
    own = sum(spent for _, spent, host in told if host == told[0][2])
    wall = (after[0] - before[0]) * (os.cpu_count() or 1)
    taken.foreign.append(max(0.0, after[2] - before[2] - own) / wall if wall else 0.0)


def result(case: Case, taken: Taken, correct: bool | None) -> dict[str, Any]:
    """A case as the document has it; seconds are rounded to nanoseconds."""
    return {
        **case._asdict(),
        "correct": correct,
        "blocks": [[round(one, 9) for one in block] for block in taken.slowest],
        "ranks": [[round(one, 9) for one in blocks] for blocks in taken.ranks],
        "foreign_cpu": [round(one, 3) for one in taken.foreign],
    }


if __name__ == "__main__":
    main()
