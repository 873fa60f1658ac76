"""Accelerators that are known from the PCI bus alone, driver or not: one for each function of a known maker and class.

The makers' patterns are data (`pci` of the rows `Vendor`). The graphics inside an Intel processor, always 00:02.0,
serve no large model and are left out, as are the compression engines inside a Kunpeng processor, which have the maker
and class of an Ascend device; the graphics inside an AMD processor differ in nothing here from a card and are kept.
What this cannot know: whether a function is passed on to a virtual machine, or is a part of another device.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Fact, Facts, PciDevice, Vendor, deduction

GRAPHICS = ("0000:00:02.0", "8086")
ENGINES = ("19e5", "a")
"""Maker and start of the device id of engines inside a processor, which `lspci` names `HiSilicon`."""


@deduction(needs=(PciDevice, Vendor), tells=(Accelerator,))
def accelerators_on_the_bus(facts: Facts) -> Iterator[Fact]:
    """One accelerator for each address, told by the text that names it where one does."""
    found: dict[str, PciDevice] = {}
    for device in facts.all(PciDevice):
        if device.address not in found or (device.name and not found[device.address].name):
            found[device.address] = device
    for device in found.values():
        vendor = _maker(facts, device)
        if vendor and not _inside_processor(device):
            yield Accelerator(
                origin=device.origin, vendor=vendor, name=device.name, address=device.address, seen_by="pci"
            )


def _maker(facts: Facts, device: PciDevice) -> str:
    """The maker of whose patterns one begins the function's vendor and class."""
    numbers = f"{device.vendor_id}:{device.class_id}"
    starts = ((one.vendor, start) for one in facts.all(Vendor) for start in one.pci)
    return next((vendor for vendor, start in starts if numbers.startswith(start)), "")


def _inside_processor(device: PciDevice) -> bool:
    maker, start = ENGINES
    engine = device.vendor_id == maker and (device.device_id.startswith(start) or " HiSilicon " in device.name)
    return engine or (device.address, device.vendor_id) == GRAPHICS
