"""Which vendors' accelerators a machine has, and what sets it apart: identity before judgement.

What a vendor is known by stands in `kb/reference/vendors.yaml`. Marks differ in what they prove. A device on the bus
or under its maker's name in the maker's tool is that maker's; so is what a driver, a device file or torch's list tell
of, unless another vendor poses as this one (Kunlun as CUDA, Hygon as ROCm), whose own marks then outweigh them.
Packages and folders prove software alone, and count where nothing tells of hardware. What this cannot know: a vendor of
which nothing was told, and which of two vendors an impostor is that left no mark of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from diag.api import (
    Accelerator,
    Container,
    DeviceNode,
    DeviceProcess,
    Driver,
    Fact,
    Facts,
    HardwareEvent,
    Host,
    Installation,
    KernelModule,
    Link,
    Package,
    Partition,
    Platform,
    Reading,
    TorchBuild,
    Vendor,
    deduction,
    local,
)

Proves = Literal["itself", "hardware", "software"]


class Mark(NamedTuple):
    """A fact by which a vendor is known, and what it proves."""

    vendor: str
    proves: Proves
    fact: Fact


@deduction(
    needs=(Vendor,),
    uses=(
        *(Accelerator, Container, DeviceNode, DeviceProcess, Driver, HardwareEvent, Host, Installation, KernelModule),
        *(Link, Package, Partition, Reading, TorchBuild),
    ),
    tells=(Platform,),
)
def platform(facts: Facts) -> Iterator[Fact]:
    """The vendors that something was told of, those that are taken to be absent, and the machine's traits."""
    makers = facts.all(Vendor)
    told = [fact for fact in facts if type(fact) in MARKS]
    marks = [mark for maker in makers for mark in _marks(told, maker)]
    poses = {maker.poses_as: maker.vendor for maker in makers if maker.poses_as and _of(marks, maker.vendor)}
    marks = [mark for mark in marks if mark.vendor not in poses or mark.proves == "itself"]
    hardware = {mark.vendor for mark in marks if mark.proves != "software"}
    known = hardware or {mark.vendor for mark in marks}
    present = tuple(maker.vendor for maker in makers if maker.vendor in known)
    traits = dict(_traits(facts, makers))
    if present or traits:
        first = next((mark.fact for mark in marks if mark.vendor in known), None) or next(iter(traits.values()))
        marked = {mark.vendor for mark in marks}
        yield Platform(
            origin=first.origin,
            present=present,
            absent=tuple(maker.vendor for maker in makers if present and maker.vendor not in marked),
            poses_as=tuple(victim for victim, poser in poses.items() if poser in known and victim not in known),
            traits=tuple(traits),
        )


def _of(marks: list[Mark], vendor: str) -> bool:
    return any(mark.vendor == vendor for mark in marks)


def _marks(told: Iterable[Fact], maker: Vendor) -> Iterator[Mark]:
    """Everything by which one vendor is known."""
    for fact in told:
        marks = MARKS[type(fact)]
        if marks.shown(fact, maker):
            yield Mark(maker.vendor, "itself" if _itself(fact, maker) else marks.proves, fact)


def _itself(fact: Fact, maker: Vendor) -> bool:
    """Whether a device is seen on the bus, or under the maker's own name by the maker's own tool."""
    if not isinstance(fact, Accelerator):
        return False
    return fact.seen_by == "pci" or (fact.seen_by == "tool" and fact.name.startswith(maker.names))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _worded(version: str, maker: Vendor) -> bool:
    return any(word in local(version) for word in maker.locals)


def _named(fact: Any, maker: Vendor) -> bool:
    return bool(fact.vendor == maker.vendor)


class Marks(NamedTuple):
    """What facts of one kind prove, and whether one of them marks a vendor."""

    proves: Proves
    shown: Callable[[Any, Vendor], bool]


MARKS: dict[type[Fact], Marks] = {
    Accelerator: Marks(
        "hardware", lambda one, maker: maker.vendor == one.vendor or one.architecture in maker.architectures
    ),
    **dict.fromkeys((DeviceProcess, Driver, HardwareEvent, Link, Partition, Reading), Marks("hardware", _named)),
    DeviceNode: Marks("hardware", lambda node, maker: _matches(node.path, maker.nodes)),
    KernelModule: Marks("hardware", lambda module, maker: _matches(module.name, maker.modules)),
    Installation: Marks("software", lambda folder, maker: _matches(folder.path, maker.folders)),
    Package: Marks("software", lambda one, maker: one.name in maker.packages or _worded(one.version, maker)),
    TorchBuild: Marks("software", lambda torch, maker: _worded(torch.version, maker)),
}


def _traits(facts: Facts, makers: tuple[Vendor, ...]) -> Iterator[tuple[str, Fact]]:
    """What sets a machine apart, each with the fact that tells it."""
    for host in facts.all(Host):
        if host.virtual:
            yield ("wsl" if host.virtual == "wsl" else "virtual"), host
    for container in facts.all(Container):
        if container.inside:
            yield "container", container
    unified = tuple(word for maker in makers for word in maker.unified)
    for device in facts.all(Accelerator):
        if any(word in device.name for word in unified):
            yield "unified-memory", device
    divided = (one for one in facts.all(Reading) if one.name == "mig.mode" and one.value == "Enabled")
    for part in (*facts.all(Partition), *divided):
        yield "partitioned", part
