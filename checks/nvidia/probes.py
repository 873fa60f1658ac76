"""NVIDIA's own tools, and its devices on the PCI bus, which need no driver to be seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Accelerator, Capture, Driver, Fact, Line, Recognise, Unavailable, probe

HEADER = re.compile(r"NVIDIA-SMI\s+[\d.]+\s+Driver Version:\s*([\d.]+)(?:\s+CUDA Version:\s*([\d.]+))?")
DEVICE = re.compile(
    r"^\W*(?P<index>\d+)\s+(?P<name>\S.*?)\s+(?:On|Off|N/A|ERR!)\s*\|\s*"
    r"(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s"
)
MEMORY = re.compile(r"\|\s*\d+\s*MiB\s*/\s*(\d+)\s*MiB")
REFUSALS = (
    "NVIDIA-SMI has failed because",
    "NVIDIA-SMI couldn't find",
    "Failed to initialize NVML",
    "No devices were found",
    "Unable to determine the device handle",
)
BUS = re.compile(
    r"^(?P<address>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])\s+"
    r"(?:3D controller|VGA compatible controller|Display controller|Processing accelerators)[^:]*:\s*"
    r"(?P<name>NVIDIA Corporation .*?)\s*(?:\(rev \w+\))?(?:\s*\(prog-if .*)?$"
)


@probe(
    "nvidia-smi",
    tells=(Driver, Accelerator),
    command=("nvidia-smi",),
    timeout=20.0,
    recognise=Recognise(literals=("NVIDIA-SMI", *REFUSALS[2:]), pattern=HEADER.pattern + "|" + "|".join(REFUSALS)),
)
def nvidia_smi(capture: Capture) -> Iterator[Fact]:
    """The table: driver, the CUDA version it offers, and each device; or the tool's own refusal."""
    device: tuple[Line, dict[str, str]] | None = None
    for line in capture.lines():
        if refusal := next((words for words in REFUSALS if words in line.text), None):
            reason = line.text[line.text.index(refusal) :].strip()
            yield Unavailable(origin=capture.origin(line), what="nvidia-smi", reason=reason, tells=("Driver",))
        elif found := HEADER.search(line.text):
            version, offers = found[1], found[2] or ""
            yield Driver(origin=capture.origin(line), vendor="nvidia", version=version, offers=offers)
        elif found := DEVICE.match(line.text):
            if device:
                yield _device(capture, *device, None)
            device = (line, found.groupdict())
        elif device:
            memory = MEMORY.search(line.text)
            yield _device(capture, *device, float(memory[1]) if memory else None)
            device = None
    if device:
        yield _device(capture, *device, None)


def _device(capture: Capture, line: Line, told: dict[str, str], memory: float | None) -> Accelerator:
    return Accelerator(
        origin=capture.origin(line),
        vendor="nvidia",
        name=told["name"],
        index=int(told["index"]),
        address=pci_address(told["address"]),
        memory_mib=memory,
        seen_by="tool",
    )


def pci_address(address: str) -> str:
    """A PCI address with a domain of four digits where four are enough, in lower case."""
    parts = address.lower().split(":")
    domain = f"{int(parts[0], 16):04x}" if len(parts) == 3 else "0000"
    return ":".join((domain, *parts[-2:]))


@probe(
    "lspci",
    tells=(Accelerator,),
    command=("lspci", "-nn"),
    recognise=Recognise(literals=("NVIDIA Corporation",), pattern=BUS.pattern, each=True, lines=40),
)
def lspci(capture: Capture) -> Iterator[Fact]:
    """Each device of the vendor on the bus."""
    for line in capture.lines():
        if found := BUS.match(line.text.strip()):
            address = pci_address(found["address"])
            yield Accelerator(
                origin=capture.origin(line), vendor="nvidia", name=found["name"], address=address, seen_by="pci"
            )


@probe(
    "proc/driver/nvidia",
    tells=(Driver,),
    path="/proc/driver/nvidia/version",
    recognise=Recognise(literals=("NVRM version:",), lines=0),
)
def kernel_module(capture: Capture) -> Iterator[Fact]:
    """The kernel module that is loaded, which needs no tool to be asked."""
    for line in capture.lines():
        if found := re.search(r"NVRM version:.*?Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", line.text):
            yield Driver(origin=capture.origin(line), vendor="nvidia", version=found[1])
            return
