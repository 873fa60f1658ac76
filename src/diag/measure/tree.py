"""Which operators go over the CPU, read from the tree of calls that torch's profiler draws.

A kernel on the device calls nothing that touches the host. One that falls back copies its tensors down, computes, and
copies the result up; each copy is an operator of its own in the tree, with the devices of its tensors. The innermost
operator that such a copy belongs to is the one that fell back, unless it is no kernel but made of others by torch
itself: that reads a few numbers by design. Three more signs stand for the same: an operator on tensors of the host
beneath one on the device, as large as what that was given; a result that comes up whole though nothing went down, as
where random numbers are drawn on the host; and torch's own `_to_cpu`, in whatever way the backend does it.

What it cannot see: copies that go past torch's dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

WRAPPERS = ("to", "_to_copy", "_to_cpu", "cpu", "detach", "alias", "lift", "lift_fresh", "pin_memory", "_pin_memory")
"""Operators whose business is to bring tensors elsewhere: what they copy belongs to who called them."""
READS = ("item", "_local_scalar_dense", "is_nonzero")
"""Operators by which the host reads one number: a wait, but no work of the CPU's."""
SOURCE_FIRST = ("_copy_from", "_copy_from_and_resize")
HALF = 0.5
"""The part of an operator's first tensor that must go down, so that it is not a mere look at lengths or places."""
WHOLE = 1024
"""Bytes below which what comes up is a constant, and no result."""
ENOUGH = 64
"""Elements from which work on the host counts."""


class Tensor(NamedTuple):
    """A tensor that a call was given."""

    device: str
    shape: tuple[int, ...]
    dtype: str
    width: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        product = 1
        for size in self.shape:
            product *= size
        return product


class Call(NamedTuple):
    """A call in the tree: the name with its namespace, what it was given, calls beneath it, nanoseconds."""

    name: str
    overload: str
    tensors: tuple[Tensor, ...]
    inner: tuple[Call, ...]
    nanoseconds: int

    @property
    def base(self) -> str:
        """The name without its namespace."""
        return self.name.rpartition("::")[2]


class Seen:
    """What was seen of one call that others may belong to."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.down: list[Tensor] = []
        self.up: list[Tensor] = []
        self.reads = 0
        self.host: list[Call] = []

    def evidence(self, device: str) -> list[str]:
        """Why this call went over the CPU; empty where it did not."""
        own = [one for one in self.call.tensors if one.device == device]
        first = own[0].elements if own else 0
        most = max((one.elements for one in own), default=0)
        down, up = (max((one.elements for one in way), default=-1) for way in (self.down, self.up))
        host = max((one.elements for call in self.host for one in call.tensors), default=-1)
        told = {
            "copied to the host": down >= HALF * first,
            "computed on the host": host >= max(ENOUGH, HALF * first),
            "came whole from the host": up >= HALF * most and weight(self.up) >= WHOLE,
        }
        return [sign for sign, so in told.items() if so]


class Walk:
    """A walk through a tree, for tensors of one kind of device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.owners: list[Seen] = []
        self.top = Seen(Call("", "", (), (), 0))

    def visit(self, call: Call, owner: Seen) -> None:
        """Look at a call that belongs to another, and at those beneath it."""
        if way := crossing(call, self.device):
            getattr(owner, way[0]).extend(way[1])
            return
        if call.base in READS:
            owner.reads += any(one.device == self.device for one in call.tensors)
            return
        if "::" in call.name and call.base not in WRAPPERS:
            devices = {one.device for one in call.tensors}
            if devices == {"cpu"}:
                owner.host.append(call)
            elif devices:
                owner = Seen(call)
                self.owners.append(owner)
        for one in call.inner:
            self.visit(one, owner)


def crossing(call: Call, device: str) -> tuple[str, list[Tensor]] | None:
    """Which way a copy goes between the device and the host, and what; None for what is no such copy."""
    if call.base == "_to_cpu":
        there = [one for one in call.tensors if one.device == device]
        return ("down", there) if there else None
    if "copy" not in call.base or len(call.tensors) < 2:
        return None
    target, source = call.tensors[:2]
    if call.base in SOURCE_FIRST or not call.base.endswith("_"):
        target, source = source, target
    ways = {(device, "cpu"): "down", ("cpu", device): "up"}
    way = ways.get((source.device, target.device))
    return (way, [source]) if way else None


def weight(tensors: Iterable[Tensor]) -> int:
    """Bytes of all these."""
    return sum(one.elements * one.width for one in tensors)


def judged(roots: Iterable[Call], device: str, composite: Callable[[str, str], bool]) -> dict[str, Any]:
    """The operators of a tree with their placement, what the host read, and what was copied by whoever ran it.

    `copies` is the placement of one that goes over the CPU, `composite` that of one which torch makes of others and
    which reads from the device, `reads` of a kernel that copies a part of what it is given, `native` of all others.
    """
    walk = Walk(device)
    for one in roots:
        walk.visit(one, walk.top)
    told: dict[tuple[str, str], dict[str, Any]] = {}
    for seen in walk.owners:
        made = composite(seen.call.name, seen.call.overload)
        if not made or seen.down or seen.up:
            key = (seen.call.name, seen.call.overload)
            added(told.setdefault(key, blank(*key)), seen, device, made)
    return {
        "operators": list(told.values()),
        "reads": list(reads(walk)),
        "explicit": {way: [len(there), weight(there)] for way in ("down", "up") if (there := getattr(walk.top, way))},
    }


def blank(name: str, overload: str) -> dict[str, Any]:
    """An operator of which nothing was seen yet."""
    numbers = dict.fromkeys(NUMBERS, 0)
    return {"name": name, "overload": overload, "placement": "native", **numbers}


NUMBERS = ("calls", "copying", "bytes_down", "bytes_up", "microseconds")
"""What is summed over calls: all of them, those that copied, what these moved, and what all took of the host."""
RANKS = ("native", "composite", "reads", "copies")


def added(row: dict[str, Any], seen: Seen, device: str, made: bool) -> None:
    """Put a call into its operator's row; the worst of the calls places it."""
    evidence = [] if made else seen.evidence(device)
    placement = "copies" if evidence else "composite" if made else "reads" if seen.down else "native"
    row["placement"] = max(row["placement"], placement, key=RANKS.index)
    row["calls"] += 1
    row["microseconds"] += seen.call.nanoseconds // 1000
    if evidence:
        row["copying"] += 1
        row["bytes_down"] += weight(seen.down)
        row["bytes_up"] += weight(seen.up)
        row["evidence"] = sorted({*row.get("evidence", ()), *evidence})
        own = max((one for one in seen.call.tensors if one.device == device), key=lambda one: one.elements)
        row["dtype"] = own.dtype
        if own.elements >= row.get("elements", 0):
            row |= {"shape": list(own.shape), "elements": own.elements}


def reads(walk: Walk) -> Iterator[dict[str, Any]]:
    """Who made the host read a number, how often; whoever ran it all has no name."""
    counts: dict[str, int] = {}
    for seen in (walk.top, *walk.owners):
        if seen.reads:
            counts[seen.call.name] = counts.get(seen.call.name, 0) + seen.reads
    for name, count in counts.items():
        yield {"operator": name, "calls": count}


def drawn(profiled: Any, overload: Callable[[str, Any], str]) -> list[Call]:
    """The tree of a run under torch's profiler, and what to ask for an overload that it does not tell."""
    return [one for event in profiled.kineto_results.experimental_event_tree() for one in calls(event, overload)]


def calls(event: Any, overload: Callable[[str, Any], str]) -> Iterator[Call]:
    """An event as a call, or the calls beneath one that is no operator of torch."""
    inner = tuple(one for child in event.children for one in calls(child, overload))
    kind, fields = event.typed
    if kind.name != "TorchOp":
        yield from inner
        return
    tensors = tuple(one for given in fields.inputs for one in given_tensors(given))
    which = getattr(event, "overload_name", "") or overload(event.name, fields.inputs)
    yield Call(event.name, which, tensors, inner, event.duration_time_ns)


def given_tensors(given: Any) -> Iterator[Tensor]:
    """The tensors in an argument: one, several, or none."""
    if isinstance(given, list):
        for one in given:
            yield from given_tensors(one)
    elif hasattr(given, "sizes") and hasattr(given, "device"):
        dtype = str(given.dtype).removeprefix("torch.")
        yield Tensor(given.device.type, tuple(given.sizes), dtype, getattr(given.dtype, "itemsize", 4))
