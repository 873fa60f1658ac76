"""The machine beneath: kernel, processor, memory, mounts, and how fast it copies memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, Fact, Host, Line, MemoryBandwidth, Mount, Recognise, Request, Text, probe

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
SIZE = re.compile(r"^(\d+(?:\.\d+)?)([KMGTP]?)i?B?$")
HEADS = {"1K-blocks": 2**10, "1024-blocks": 2**10, "1B-blocks": 1, "1M-blocks": 2**20, "512-blocks": 512}
KERNEL_WORDS = ("kernel:", "NVRM:", "amdgpu", "pcieport ", "mce:", "oom-kill", "Out of memory:")
COPY_SECONDS = 0.004
COPY_MIB = (16, 64)


@probe("proc/meminfo", tells=(Host,), path="/proc/meminfo", recognise=Recognise(("MemTotal:",), r"^\s*MemTotal:", 60))
def meminfo(capture: Capture) -> Iterator[Fact]:
    """Physical memory."""
    for line in capture.lines():
        if found := re.match(r"\s*MemTotal:\s*(\d+) kB", line.text):
            yield Host(origin=capture.origin(line), memory_bytes=int(found[1]) * 1024)
            return


@probe("proc/cpuinfo", tells=(Host,), path="/proc/cpuinfo")
def cpuinfo(capture: Capture) -> Iterator[Fact]:
    """The processor's name and how many of it the kernel runs on."""
    lines = list(capture.lines())
    named = next((line for line in lines if line.text.startswith(("model name", "Model Name"))), None)
    count = sum(line.text.startswith("processor") for line in lines)
    if count:
        name = named.text.partition(":")[2].strip() if named else ""
        yield Host(origin=capture.origin(named), cpu=name, cpus=count)


@probe(
    "os-release",
    tells=(Host,),
    path="/etc/os-release",
    recognise=Recognise(("PRETTY_NAME=",), r"^\s*PRETTY_NAME=", lines=20),
)
def os_release(capture: Capture) -> Iterator[Fact]:
    """The distribution."""
    for line in capture.lines():
        if found := re.match(r"""\s*PRETTY_NAME=["']?([^"']+)""", line.text):
            yield Host(origin=capture.origin(line), os=found[1].strip())
            return


@probe("host/name", tells=(Host,), path="/proc/sys/kernel/hostname")
def hostname(capture: Capture) -> Iterator[Fact]:
    """What the machine calls itself."""
    if name := capture.content.strip():
        yield Host(origin=capture.origin(Line(1, name)), name=name)


@probe(
    "df",
    tells=(Mount,),
    command=("df", "-kP", "/dev/shm"),
    recognise=Recognise(("Filesystem",), r"^\s*Filesystem\s+.*(?:Size|blocks).*Mounted on", lines=60),
)
def df(capture: Capture) -> Iterator[Fact]:
    """Size and free space of mounted file systems, in whichever unit `df` printed them."""
    unit = None
    for line in capture.lines():
        words = line.text.split()
        if words[:1] == ["Filesystem"]:
            unit = HEADS.get(words[1], 1)
        elif unit and len(words) >= 6 and words[-1].startswith("/"):
            size, free = (_bytes(word, unit) for word in (words[1], words[3]))
            if size is not None:
                yield Mount(
                    origin=capture.origin(line), path=words[-1], kind=words[0], size_bytes=size, free_bytes=free
                )


def _bytes(word: str, unit: int) -> int | None:
    found = SIZE.match(word)
    if found is None:
        return None
    return int(float(found[1]) * (UNITS[found[2]] if found[2] else unit))


@probe(
    "text/kernel-log",
    tells=(Text,),
    recognise=Recognise(KERNEL_WORDS, r"^\W*\[\s*\d+\.\d{6}\]\s|\bkernel:\s", each=True, lines=50),
)
def kernel_log(capture: Capture) -> Iterator[Fact]:
    """Lines of the kernel's log."""
    yield Text(origin=capture.origin(next(iter(capture.lines()))), content="", kinds=("kernel-log",))


def next_copy(taken: tuple[Capture, ...]) -> Request | None:
    """A larger buffer until one copy takes long enough to be timed."""
    if len(taken) == len(COPY_MIB):
        return None
    measured = taken[-1].document("diag/host-memory/1") if taken else None
    if measured and measured["seconds"] >= COPY_SECONDS:
        return None
    return Request((str(COPY_MIB[len(taken)]), "3"))


@probe(
    "host/memory-copy",
    tells=(MemoryBandwidth,),
    measure="host_memory",
    cost="active",
    next=next_copy,
    recognise=Recognise(('"schema": "diag/host-memory/1"',), lines=0),
)
def memory_copy(capture: Capture) -> Iterator[Fact]:
    """How fast one core copies memory."""
    if (measured := capture.document("diag/host-memory/1")) and measured["seconds"] > 0:
        gbps = measured["bytes"] / measured["seconds"] / 1e9
        yield MemoryBandwidth(
            origin=capture.origin(Line(1, f"{measured['bytes']} bytes in {measured['seconds']:.6f} s")),
            subject="host, one core",
            gbps=round(gbps, 2),
            bytes=measured["bytes"],
            seconds=measured["seconds"],
        )
