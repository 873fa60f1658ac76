"""NVIDIA's own tools, and what its kernel module says of itself.

The table of `nvidia-smi` has had three widths, two names for its driver ("Driver Version", from 610 on "KMD Version")
and, on Windows, a driver model where Linux prints persistence; names longer than the column end in `...`. Its rows are
therefore read cell by cell. Parts of a device (MIG) are no devices of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from diag.api import Accelerator, Capture, Driver, Fact, Line, Recognise, Runtime, SeenBy, Unavailable, probe, replace

HEADER = re.compile(
    r"NVIDIA-SMI\s+\S+\s+(?:Driver|KMD) Version:\s*(\S+)(?:\s+CUDA (?:UMD )?Version:\s*(\d{1,3}\.\d{1,3})?)?"
)
VERSION = re.compile(r"\d{1,6}(?:\.\d{1,6})+")
MODES = {"On", "Off", "N/A", "ERR!", "WDDM", "TCC", "MCDM", "WDM"}
ADDRESS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
INDEX = re.compile(r"\d{1,4}")
MEBIBYTES = re.compile(r"(\d{1,9})\s?MiB")
REFUSALS = (
    "NVIDIA-SMI has failed because",
    "NVIDIA-SMI couldn't find",
    "Failed to initialize NVML",
    "Unable to determine the device handle",
    "No devices were found",
    "No devices found.",
)
ALONE = r"^\W*No devices (?:were )?found\W*$"
"""Other tools print these words, too, but not alone on a line."""
TOOLKIT = re.compile(r"Cuda compilation tools, release \d+\.\d+, V(\d{1,3}\.\d{1,3}\.\d{1,6})")
LISTED = re.compile(r"^\W*GPU (\d{1,4}): (\S.*)")


@probe(
    "nvidia-smi",
    tells=(Driver, Accelerator),
    command=("nvidia-smi",),
    timeout=20.0,
    recognise=Recognise(
        literals=("NVIDIA-SMI", "Bus-Id", *REFUSALS[2:]),
        pattern="|".join((HEADER.pattern, r"\| Bus-Id\s+Disp\.A", *REFUSALS[:4], ALONE)),
    ),
)
def nvidia_smi(capture: Capture) -> Iterator[Fact]:
    """The table: driver, the CUDA version it offers, and each device; or the tool's own refusal."""
    waiting: Accelerator | None = None
    for line in capture.lines():
        if waiting:
            yield replace(waiting, memory_mib=_total(line.text))
            waiting = None
        if reason := _refusal(line.text):
            yield Unavailable(origin=capture.origin(line), what="nvidia-smi", reason=reason, tells=("Driver",))
        elif found := HEADER.search(line.text):
            version = found[1] if VERSION.fullmatch(found[1]) else ""
            if version or found[2]:
                yield Driver(origin=capture.origin(line), vendor="nvidia", version=version, offers=found[2] or "")
        else:
            waiting = _row(capture, line)
    if waiting:
        yield waiting


def _refusal(text: str) -> str:
    words = next((words for words in REFUSALS if words in text), "")
    if not words or (words.startswith("No devices") and not re.match(ALONE, text)):
        return ""
    return text[text.index(words) :].strip()


def _row(capture: Capture, line: Line) -> Accelerator | None:
    """The device of a row: its number, name and mode in one cell, its address in the next."""
    for left, right in pairwise(line.text.split("|")):
        words, address = left.split(), right.split()[:1]
        if len(words) < 3 or words[-1] not in MODES or not INDEX.fullmatch(words[0]):
            continue
        if address and ADDRESS.fullmatch(address[0]):
            name = " ".join(words[1:-1])
            return _device(capture, line, name, index=int(words[0]), address=pci_address(address[0]))
    return None


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


def _total(text: str) -> float | None:
    """The memory of a device from the row below it, `6MiB / 81920MiB`, in MiB."""
    used = next((cell for cell in text.split("|") if "MiB" in cell and "/" in cell), "")
    found = MEBIBYTES.fullmatch(used.partition("/")[2].strip())
    return float(found[1]) if found else None


def pci_address(address: str) -> str:
    """A PCI address with a domain of four digits where four are enough, in lower case."""
    parts = address.lower().split(":")
    domain = f"{int(parts[0], 16):04x}" if len(parts) == 3 else "0000"
    return ":".join((domain, *parts[-2:]))


@probe(
    "nvidia-smi/log",
    tells=(Driver, Accelerator),
    recognise=Recognise(literals=("NVSMI LOG",), pattern=r"=NVSMI LOG=", lines=4_000),
)
def nvidia_smi_log(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi -q` prints: the driver, then each device under its address."""
    driver: dict[str, tuple[Line, str]] = {}
    devices: list[Accelerator] = []
    memory = False
    for line in capture.lines():
        key, _, value = (part.strip() for part in line.text.partition(" : "))
        if key in ("Driver Version", "KMD Version", "CUDA Version", "CUDA UMD Version", "Attached GPUs"):
            driver.setdefault(key.split()[0].replace("KMD", "Driver"), (line, value))
        elif (words := line.text.split())[:1] == ["GPU"] and len(words) == 2 and ADDRESS.fullmatch(words[1]):
            devices.append(_device(capture, line, "", address=pci_address(words[1])))
        elif devices and (key == "Product Name" or (memory and key == "Total")):
            total = MEBIBYTES.fullmatch(value)
            update = {"name": value} if key == "Product Name" else {"memory_mib": float(total[1]) if total else None}
            devices[-1] = replace(devices[-1], **update)
        memory = key == "FB Memory Usage"
    yield from _loaded(capture, driver)
    whole = driver.get("Attached", ("", ""))[1] == str(len(devices))
    yield from (replace(one, index=place) if whole else one for place, one in enumerate(devices))


def _loaded(capture: Capture, told: dict[str, tuple[Line, str]]) -> Iterator[Driver]:
    version, offers = (told.get(key, (None, ""))[1] for key in ("Driver", "CUDA"))
    if VERSION.fullmatch(version):
        offers = offers if VERSION.fullmatch(offers) else ""
        yield Driver(origin=capture.origin(told["Driver"][0]), vendor="nvidia", version=version, offers=offers)


@probe(
    "nvidia-smi/list",
    tells=(Accelerator,),
    recognise=Recognise(literals=("(UUID: GPU-",), pattern=LISTED.pattern, each=True, lines=16),
)
def nvidia_smi_list(capture: Capture) -> Iterator[Fact]:
    """What `nvidia-smi -L` prints: a device a line, its parts (MIG) below it."""
    for line in capture.lines():
        if (found := LISTED.match(line.text)) and "(UUID: GPU-" in found[2]:
            yield _device(capture, line, found[2].partition(" (UUID")[0].strip(), index=int(found[1]))


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
