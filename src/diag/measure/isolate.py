"""The narrowing down that `collectives.py` does: which rank, link or host exchanges slowly.

Rank 0 asks `estimate/isolation.py` what to measure next and all do it, in the one world that is there; the document
keeps each step with its answer as `isolation`. A pair is timed at its source: a message there, and a short one back,
the least of several. What arrived is compared. In a chain each rank does a little work of its own before each call, as
a model does, and nobody waits for the others to begin.
"""

from __future__ import annotations

import os
import runpy
import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

LARGE = {"cpu": 2**20}
LARGE_DEVICE = 32 * 2**20
"""Bytes of a large message."""
REPEATS = 8
"""Exchanges of a pair, of which the first warms up."""
CALLS = 24
ALONE = 0.12
"""Seconds of work alone: longer than the period in which a control group gets its share of the processors."""
QUIET = 0.1
"""The share of the processors that others may use meanwhile."""
CYCLE = 251
"""After how many elements the pattern of a message repeats: a prime, and exact in every type."""
APART = 64
"""Elements between the beginnings of two ranks' messages: what lies across lines of a cache is sent more slowly."""
WIDTH = {"cpu": 128}
WIDTH_DEVICE = 2048
"""The width of the matrices of the work alone."""
SMALL_WIDTH = 64
"""That of the work between two calls of a chain."""


def isolated(world: Any, document: dict[str, Any], shown: Callable[[], None]) -> None:
    """Measure what the planner asks, until it has no question, the time is over, or a call raises."""
    planner = program("..", "estimate", "isolation.py")
    hosts = world.agreed("isolate/hosts", [one["host"] for one in document["ranks"]])
    known = planner["Known"](tuple(hosts), LARGE.get(world.device, LARGE_DEVICE))
    taken: list[dict[str, Any]] = []
    cells: dict[Any, Any] = {}
    document["isolation"] = {"large": known.large, "error": "", "steps": taken}
    buffers = Buffers(world, known.large)
    end = time.monotonic() + world.request["isolate"]
    over = False
    for number in count():
        wanted = world.rank == 0 and not over and time.monotonic() < end
        step = world.agreed(f"isolate/{number}", planner["asked"](known, taken, cells) if wanted else None)
        if not step:
            return
        answers = world.all(f"isolated/{number}", answered(world, step, buffers, hosts))
        if world.rank == 0:
            told, errors, spent = ([answer[place] for answer in answers] for place in range(3))
            document["isolation"]["error"], over = next(filter(None, errors), ""), any(errors)
            if not over:
                taken.append({**step, **GATHERED[step["kind"]](step, told), "foreign": foreign(spent)})
                planner["add"](cells, taken[-1])
        shown()


def program(*path: str) -> dict[str, Any]:
    """The names of a program beside this one."""
    return runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), *path))


def answered(world: Any, step: dict[str, Any], buffers: Buffers, hosts: list[str]) -> tuple[Any, str, Any]:
    """This rank's part of a step, what it raised, and what it and all took of this machine's processors."""
    before = buffers.ticks()
    try:
        told, error = TAKEN[step["kind"]](world, step, buffers, hosts), ""
    except Exception as raised:
        # Point-to-point calls that a backend does not have raise at once, on both ranks alike.
        told, error = None, f"{type(raised).__name__}: {(str(raised).splitlines() or [''])[0]}"
    wall, own, busy = (now - then for now, then in zip(buffers.ticks(), before))
    return told, error, (buffers.machine, own, busy, wall * (os.cpu_count() or 1))


def foreign(spent: list[tuple[str, float, float, float]]) -> float:
    """The share of the processors that others than the ranks used, of the machine where it is most.

    `spent` are of each rank its machine and seconds: its own, those of all that ran there, and those that there were.
    """
    shares = [0.0]
    for machine in {one[0] for one in spent}:
        here = [one[1:] for one in spent if one[0] == machine]
        _, busy, all_ = max(here, key=lambda one: one[2])
        shares.append((busy - sum(own for own, *_ in here)) / max(all_, 1e-9))
    return round(min(1.0, max(shares)), 3)


def machine_of() -> str:
    """The machine that this is, whatever its name: hosts that are containers of one share its processors."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename


class Buffers:
    """What is sent, on this rank's device."""

    def __init__(self, world: Any, large: int) -> None:
        torch = world.torch
        sweep = program("sweep.py")
        self.kind = getattr(torch, sweep["DTYPES"][world.request["dtype"]])
        self.width = torch.empty(0, dtype=self.kind).element_size()
        length = large // self.width
        cycle = torch.arange(CYCLE, device=world.device).to(self.kind)
        self.pattern = cycle.repeat((length + APART * world.size) // CYCLE + 1)
        self.target = torch.zeros(length, dtype=self.kind, device=world.device)
        self.ticks, self.machine = sweep["ticks"], machine_of()
        self.short = torch.zeros(2, dtype=self.kind, device=world.device)
        side = WIDTH.get(world.device, WIDTH_DEVICE)
        self.matrix = torch.ones(side, side, device=world.device)

    def message(self, source: int, size: int) -> Any:
        """What that rank sends."""
        start = source * APART
        return self.pattern[start : start + size // self.width]


def alone(world: Any, step: dict[str, Any], buffers: Buffers, hosts: list[str]) -> float:
    """Seconds of a product and a copy, while the other ranks of this host are still."""
    place = hosts[: world.rank].count(hosts[world.rank])
    seconds = 0.0
    for turn in range(max(map(hosts.count, set(hosts)))):
        world.progress.at(f"isolation: work of rank {turn} of each host alone")
        meet(world)
        if turn == place:
            seconds = worked(world, buffers)
    return seconds


def worked(world: Any, buffers: Buffers) -> float:
    """Seconds of the work: on average where the host was quiet meanwhile, else the median, which a neighbour spares."""
    before, seconds = buffers.ticks(), list[float]()
    while sum(seconds) < ALONE:
        start = time.perf_counter()
        buffers.matrix @ buffers.matrix
        buffers.target.copy_(buffers.message(0, len(buffers.target) * buffers.width))
        world.synchronise()
        seconds.append(time.perf_counter() - start)
    wall, own, busy = (now - then for now, then in zip(buffers.ticks(), before))
    quiet = busy - own < QUIET * wall * (os.cpu_count() or 1)
    return sum(seconds) / len(seconds) if quiet else statistics.median(seconds)


def chain(world: Any, step: dict[str, Any], buffers: Buffers, hosts: list[str]) -> float:
    """Seconds of this rank in a call, of calls that each begins when it is ready."""
    mm, all_reduce, clock = world.torch.mm, world.torch.distributed.all_reduce, time.perf_counter
    world.progress.at(f"isolation: a chain of all_reduce of {step['bytes']} bytes")
    tensor, small = buffers.target.zero_(), buffers.matrix[:SMALL_WIDTH, :SMALL_WIDTH]
    seconds = []
    for _ in range(CALLS):
        world.progress.enter()
        mm(small, small)
        world.synchronise()
        start = clock()
        all_reduce(tensor)
        world.synchronise()
        seconds.append(clock() - start)
        world.progress.leave()
    return statistics.median(seconds)


def pairs(world: Any, step: dict[str, Any], buffers: Buffers, hosts: list[str]) -> list[Any]:
    """The least seconds of each pair that this rank is the source of, and the sources that sent it something wrong."""
    told, wrong = [], []
    for place, round_ in enumerate(step["rounds"]):
        own = [pair for pair in round_ if world.rank in pair]
        meet(world)
        for source, target in own:
            world.progress.at(f"isolation: pair {source} to {target}")
            if world.rank == source:
                told.append([place, target, [sent(world, buffers, target, size) for size in step["bytes"]]])
                continue
            right = [heard(world, buffers, source, size) for size in step["bytes"]]
            if not all(right):
                wrong.append(source)
        world.progress.at("isolation: between pairs")
    return [told, wrong]


def sent(world: Any, buffers: Buffers, target: int, size: int) -> float:
    """The least seconds of a message there and a short one back."""
    message, seconds = buffers.message(world.rank, size), []
    for _ in range(REPEATS):
        world.progress.enter()
        start = time.perf_counter()
        world.torch.distributed.send(message, target)
        world.torch.distributed.recv(buffers.short, target)
        world.synchronise()
        seconds.append(time.perf_counter() - start)
        world.progress.leave()
    return round(min(seconds[1:]), 9)


def heard(world: Any, buffers: Buffers, source: int, size: int) -> bool:
    """Whether the last message arrived as it was sent."""
    place = buffers.target[: size // buffers.width].zero_()
    for _ in range(REPEATS):
        world.progress.enter()
        world.torch.distributed.recv(place, source)
        world.torch.distributed.send(buffers.short, source)
        world.synchronise()
        world.progress.leave()
    return bool(world.torch.equal(place, buffers.message(source, size)))


def groups(world: Any, step: dict[str, Any], buffers: Buffers, hosts: list[str]) -> float:
    """The least seconds of an all_reduce in the group that this rank is in."""
    distributed, tensor, seconds = world.torch.distributed, buffers.target.zero_(), [0.0]
    world.progress.at("isolation: new groups")
    made = [(group, distributed.new_group(group)) for group in step["groups"]]
    for members, group in made:
        if world.rank in members:
            world.progress.at(f"isolation: all_reduce of {step['bytes']} bytes in a group")
            for _ in range(REPEATS):
                world.progress.enter()
                start = time.perf_counter()
                distributed.all_reduce(tensor, group=group)
                world.synchronise()
                seconds.append(time.perf_counter() - start)
                world.progress.leave()
            distributed.destroy_process_group(group)
    meet(world)
    return min(seconds[2:], default=0.0)


def meet(world: Any) -> None:
    """Wait for the others."""
    world.progress.enter()
    world.torch.distributed.barrier()
    world.synchronise()
    world.progress.leave()


def by_rank(step: dict[str, Any], answers: list[Any]) -> dict[str, Any]:
    """Seconds of each rank."""
    return {"seconds": [round(one, 9) for one in answers]}


def by_pair(step: dict[str, Any], answers: list[Any]) -> dict[str, Any]:
    """Seconds of each pair, in the places of the rounds, and the pairs that sent something wrong."""
    told = {(place, rank, other): at for rank, (own, _) in enumerate(answers) for place, other, at in own}
    seconds = [[told[place, one, other] for one, other in round_] for place, round_ in enumerate(step["rounds"])]
    return {
        "seconds": seconds,
        "wrong": [[source, rank] for rank, (_, wrong) in enumerate(answers) for source in wrong],
    }


def by_group(step: dict[str, Any], answers: list[Any]) -> dict[str, Any]:
    """Seconds of the slowest rank of each group."""
    return {"seconds": [round(max(answers[rank] for rank in group), 9) for group in step["groups"]]}


TAKEN = {"self": alone, "late": chain, "pairs": pairs, "groups": groups}
GATHERED = {"self": by_rank, "late": by_rank, "pairs": by_pair, "groups": by_group}
