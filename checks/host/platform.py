"""Which vendors' accelerators a machine has: identity before judgement.

A vendor that poses as another is named by its own marks first (its packages, the local part of its versions). So far
from names, packages and versions; device nodes and PCI ids of every vendor come with their probes. What this cannot
know: a vendor of which nothing was told.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Driver, Fact, Facts, Package, Platform, TorchBuild, deduction, local

VENDORS = ("nvidia", "amd", "hygon", "kunlun", "ascend", "intel")
PACKAGES = {"torch-npu": "ascend", "torch-xmlir": "kunlun", "vllm-kunlun": "kunlun", "vllm-ascend": "ascend"}
LOCALS = {"das": "hygon", "dtk": "hygon"}
POSES_AS = {"hygon": "amd", "kunlun": "nvidia"}


@deduction(tells=(Platform,), uses=(Accelerator, Driver, Package, TorchBuild))
def platform(facts: Facts) -> Iterator[Fact]:
    """The vendors that something was told of; all others are taken to be absent."""
    marks = [*_marks(facts), *((one.vendor, one) for one in facts.all(Accelerator))]
    marks += [(one.vendor, one) for one in facts.all(Driver)]
    present = {vendor: fact for vendor, fact in reversed(marks) if vendor}
    for vendor, other in POSES_AS.items():
        if vendor in present:
            present.pop(other, None)
    if present:
        found = tuple(vendor for vendor in VENDORS if vendor in present)
        absent = tuple(vendor for vendor in VENDORS if vendor not in present)
        yield Platform(origin=next(iter(present.values())).origin, present=found, absent=absent)


def _marks(facts: Facts) -> Iterator[tuple[str, Fact]]:
    for package in facts.all(Package):
        if package.name in PACKAGES:
            yield PACKAGES[package.name], package
    versioned: list[Package | TorchBuild] = [*facts.all(Package), *facts.all(TorchBuild)]
    for told in versioned:
        for word, vendor in LOCALS.items():
            if word in local(told.version):
                yield vendor, told
