"""What a device is called in a finding: as its user sees it, and by its address, which is the same for everybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from diag.facts.bag import Facts, devices
from diag.facts.device import Accelerator
from diag.facts.reference import Vendor

HIDDEN = "-1"
"""What ends a list of visible devices: it and all after it are not seen."""


def device_name(facts: Facts, *, index: int | None = None, address: str = "", vendor: str = "") -> str:
    """A device as `gpu3 (0000:1a:00.0)`, with the number that a process has for it where a variable renumbers them.

    `index` is the tool's number, `address` the one on the bus; what is not given is looked up among the accelerators.
    Empty where neither is known.
    """
    device = next((one for one in devices(facts) if _is(one, index, address, vendor)), None)
    vendor = vendor or (device.vendor if device else "")
    if device:
        index, address = device.index if index is None else index, address or device.address
    row = next((one for one in facts.all(Vendor) if one.vendor == vendor), None)
    called = row.called if row else "gpu"
    if index is None:
        return address and f"{called} {address}"
    beside = filter(None, (address, *_renumbered(facts, row, index)))
    return f"{called}{index}" + (f" ({told})" if (told := ", ".join(beside)) else "")


def device_names(facts: Facts, addresses: Iterable[str], vendor: str = "") -> str:
    """Several devices in words, each as `device_name` has it; empty where none is known."""
    named = (device_name(facts, address=one, vendor=vendor) for one in dict.fromkeys(addresses))
    return ", ".join(filter(None, named))


def _is(device: Accelerator, index: int | None, address: str, vendor: str) -> bool:
    if vendor and device.vendor and device.vendor != vendor:
        return False
    if address and device.address:
        return device.address == address
    return index is not None and device.index == index


def _renumbered(facts: Facts, row: Vendor | None, index: int) -> Iterator[str]:
    """The device's number in a process that the strongest of the set variables lets see only some of them."""
    settings = facts.environment() if row and row.visible else {}
    name = next((one for one in row.visible if one in settings), "") if row else ""
    listed = [word.strip() for word in settings[name].value.split(",")] if name else []
    if not name or not all(word.isdecimal() or word == HIDDEN for word in listed):
        return
    seen = listed[: listed.index(HIDDEN)] if HIDDEN in listed else listed
    place = next((place for place, word in enumerate(seen) if word.lstrip("0") == str(index).lstrip("0")), None)
    if place is None:
        yield f"hidden by {name}"
    elif place != index:
        yield f"{place} in {name}"
