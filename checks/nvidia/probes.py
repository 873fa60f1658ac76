"""NVIDIA's lists of devices and parts, its toolkit, and its kernel module.

Parts of a device (MIG) are no devices of their own: they are told under the number
of the device they are a part of. A list that `nvidia-smi` prints tells no address and no memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Fact,
    Line,
    Partition,
    Recognise,
    Runtime,
    SeenBy,
    expression,
    pci_address,
    probe,
    replace,
)

VERSION = expression(r"\d{1,6}(?:\.\d{1,6})+")
TOOLKIT = expression(r"Cuda compilation tools, release \d+\.\d+, V(\d{1,3}\.\d{1,3}\.\d{1,6})")
LISTED = expression(r"^\W*(?:GPU ([0-9]{1,4})(?=: \S)|MIG (\S{1,40})\s+Device\s+[0-9]{1,4}(?=:)): (.*)")
INSTANCE = expression(r"^\W*([0-9]{1,4})\s+MIG (\S{1,40})\s+[0-9]{1,4}\s+[0-9]{1,4}\s+[0-9]{1,3}:[0-9]{1,3}\W*$")
DISCOVERED = expression(r"^\W*([0-9]{1,4})\s*\|\s*Name: ([^|]*)")
BUS_ID = expression(r"\|\s*PCI Bus ID: ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])(?![0-9A-Fa-f])")


def _device(
    capture: Capture, line: Line, name: str, *, index: int | None = None, address: str = "", seen_by: SeenBy = "tool"
) -> Accelerator:
    return Accelerator(
        origin=capture.origin(line),
        vendor="nvidia",
        name="" if name == "ERR!" else name,
        index=index,
        address=address,
        seen_by=seen_by,
    )


@probe(
    "nvidia-smi/list",
    tells=(Accelerator, Partition),
    recognise=Recognise(literals=("(UUID: GPU-", "(UUID: MIG-"), pattern=LISTED.pattern, each=True, lines=16),
)
def nvidia_smi_list(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi -L` prints: a device a line, its parts (MIG) below it with their profiles."""
    device: int | None = None
    for line in capture.lines():
        if not (found := LISTED.match(line.text)):
            continue
        if found[1] and "(UUID: GPU-" in found[3]:
            device = int(found[1])
            yield _device(capture, line, found[3].partition(" (UUID")[0].strip(), index=device)
        elif found[2] and device is not None:
            yield Partition(origin=capture.origin(line), index=device, name=found[2], vendor="nvidia")


@probe(
    "nvidia-smi/mig",
    tells=(Partition,),
    recognise=Recognise(literals=("GPU instances:",), pattern=r"^\W*GPU instances:\W*$"),
)
def nvidia_smi_mig(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi mig -lgi` prints: each part that was made, with its profile."""
    for line in capture.lines():
        if found := INSTANCE.match(line.text):
            yield Partition(origin=capture.origin(line), index=int(found[1]), name=found[2], vendor="nvidia")


@probe(
    "dcgmi/discovery",
    tells=(Accelerator,),
    recognise=Recognise(literals=("| Device Information",), pattern=r"GPU ID \| Device Information"),
)
def dcgmi_discovery(capture: Capture) -> Iterator[Fact]:
    """What `dcgmi discovery -l` prints: each device that the host engine watches, with its address."""
    device: Accelerator | None = None
    for line in capture.lines():
        if found := DISCOVERED.match(line.text):
            yield from [device] if device else []
            name = "" if "<<<" in found[2] else found[2].strip()
            device = _device(capture, line, name, index=int(found[1]))
        elif device and (bus := BUS_ID.search(line.text)):
            device = replace(device, address=pci_address(bus[1]))
        elif "Switch ID" in line.text or "CPU ID" in line.text:
            break
    yield from [device] if device else []


@probe(
    "nvcc",
    tells=(Runtime,),
    recognise=Recognise(literals=("Cuda compilation tools, release ",), lines=0),
)
def nvcc(capture: Capture) -> Iterator[Fact]:
    """The local toolkit, as its compiler names itself; torch brings a runtime of its own."""
    for line in capture.lines():
        if found := TOOLKIT.search(line.text):
            yield Runtime(origin=capture.origin(line), name="cuda", version=found[1], kind="toolkit")
            return


@probe(
    "proc/driver/nvidia",
    tells=(Driver,),
    path="/proc/driver/nvidia/version",
    recognise=Recognise(
        literals=("NVRM version:", "NVRM: loading NVIDIA UNIX", "this kernel module has the version"),
        pattern=r"NVRM version:|NVRM: loading|NVRM: this kernel module",
        each=True,
        lines=3,
    ),
)
def kernel_module(capture: Capture) -> Iterator[Fact]:
    """The kernel module that is loaded, as it says itself or in the kernel's log: the last one loaded."""
    found: tuple[Line, str] | None = None
    for line in capture.lines():
        if "NVRM" in line.text and ("Kernel Module" in line.text or "kernel module has the version" in line.text):
            words = (word.strip(".,") for word in line.text.split())
            version = next((word for word in words if VERSION.fullmatch(word)), "")
            found = (line, version) if version else found
    if found:
        yield Driver(origin=capture.origin(found[0]), vendor="nvidia", version=found[1])
