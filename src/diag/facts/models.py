"""Devices and their models: which row of the table of models is this device's."""

from __future__ import annotations

from collections.abc import Iterable

from diag.facts.bag import Facts
from diag.facts.device import Accelerator, Platform
from diag.facts.host import Host
from diag.facts.matrix import DeviceModel, TorchWheel
from diag.facts.reference import Vendor
from diag.facts.software import Package
from diag.text import expression, matches
from diag.versions import satisfies

STRANGERS = {(8, 7), (10, 1)}
"""Capabilities that no other of their major version serves."""
JETSON = frozenset({"sm_53", "sm_62", "sm_72", "sm_87", "sm_101", "sm_110"})
"""Boards: their maker numbers the driver and builds the wheels in a way of its own."""
NAME = expression(r"(sm|compute)_(\d+)(\d)([a-z]?)$")
CUT = "..."
"""What a tool ends a name with that it cut."""


def bare_name(facts: Facts, name: str) -> str:
    """The name of a device without its maker's word before it."""
    word, _, rest = name.partition(" ")
    return rest if rest and word.lower() in facts.concluded(_vendors) else name


def _vendors(facts: Facts) -> frozenset[str]:
    return frozenset(one.vendor for one in facts.all(Vendor))


def named(facts: Facts, device: Accelerator, patterns: Iterable[str]) -> bool | None:
    """Whether a device's whole name, without its maker's word, is one of these; None where it is cut or not told."""
    if not device.name:
        return None
    name = bare_name(facts, device.name)
    if name.endswith(CUT):
        start = name.removesuffix(CUT)
        if any(one.endswith("*") and matches(start, one) for one in patterns):
            return True
        return None if any(one.lower().startswith(start.lower()) for one in patterns) else False
    return any(matches(name, one) for one in patterns)


def model_of(facts: Facts, device: Accelerator, *, tells: str = "architecture") -> DeviceModel | None:
    """The first model of the device's maker that has its name and tells a field; None where there is none."""
    for one in facts.all(DeviceModel):
        own = not device.vendor or one.vendor == device.vendor
        if own and getattr(one, tells) not in ("", None) and named(facts, device, one.names):
            return one
    return None


def architecture_of(facts: Facts, device: Accelerator) -> str:
    """The architecture of a device: as told, else that of its model; empty where neither tells."""
    model = None if device.architecture else model_of(facts, device)
    return model.architecture if model else device.architecture


def present_makers(facts: Facts) -> frozenset[str]:
    """The makers whose devices or software stand here."""
    return frozenset(name for one in facts.all(Platform) for name in one.present)


def posed(facts: Facts, vendor: str = "") -> bool:
    """Whether another maker's devices or software stand here that pose as this maker's, as any's where it is empty."""
    packages = {one.name for one in facts.all(Package)}
    software = {one.poses_as for one in facts.all(Vendor) if packages & set(one.packages)}
    shown = {name for one in facts.all(Platform) for name in one.poses_as} | (software - {""})
    return vendor in shown if vendor else bool(shown)


def machines_of(facts: Facts, listed: Iterable[Accelerator]) -> frozenset[str]:
    """The architecture of the host's processor, as told, else as the models of these devices are sold with one."""
    told = {one.machine for one in facts.all(Host) if one.machine}
    models = (model_of(facts, one, tells="machine") for one in listed)
    return frozenset(told or {one.machine for one in models if one})


def plain_wheel(facts: Facts, version: str, listed: Iterable[Accelerator]) -> TorchWheel | None:
    """The row on the wheel of this torch that a plain installation gives beside these devices, where it has one."""
    there = [one for one in listed if architecture_of(facts, one) not in JETSON]
    vendors, machines = {one.vendor for one in there}, machines_of(facts, there)
    for row in facts.all(TorchWheel):
        if row.machine in machines and row.vendor in vendors and satisfies(version, row.torch):
            return row
    return None


def runs_on(architecture: str, supported: Iterable[str]) -> bool:
    """Whether binary code for one of the architectures, or PTX for an older one, runs on a device of this one.

    Names are as in `torch.cuda.get_arch_list()`: `sm_90`, `compute_90` for PTX; others must be equal.
    """
    own = NAME.match(architecture)
    if own is None:
        return architecture in supported
    major, minor = int(own[2]), int(own[3])
    for found in filter(None, map(NAME.match, supported)):
        older = (int(found[2]), int(found[3])) <= (major, minor)
        same = int(found[2]) == major and ((major, minor) not in STRANGERS or found[3] == own[3])
        if older and (found[1] == "compute" or same) and (found[4] != "a" or found.group(2, 3) == own.group(2, 3)):
            return True
    return False
