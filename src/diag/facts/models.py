"""Devices and their models: which row of the table of models is this device's."""

from __future__ import annotations

from collections.abc import Iterable

from diag.facts.bag import Facts
from diag.facts.device import Accelerator
from diag.facts.matrix import DeviceModel
from diag.facts.reference import Vendor
from diag.text import matches

CUT = "..."
"""What a tool ends a name with that it cut."""


def bare_name(facts: Facts, name: str) -> str:
    """The name of a device without its maker's word before it."""
    word, _, rest = name.partition(" ")
    return rest if rest and word.lower() in {one.vendor for one in facts.all(Vendor)} else name


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
