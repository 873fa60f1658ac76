"""The machine beneath: kernel, processor, memory, mounts, and how fast it copies memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, Fact, Host, Line, MemoryBandwidth, Mount, Recognise, Request, probe

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)([KMGTP]?)i?B?")
BLOCKS = re.compile(r"(\d{1,6})([KMGT]?)B?-")
"""The unit that heads a column of `df`: `1K-blocks`, `1024-blocks`; without one each size carries its own."""
HEADS = ("Filesystem", "文件系统")
COPY_SECONDS = 0.004
COPY_MIB = (16, 64)


@probe("proc/meminfo", tells=(Host,), path="/proc/meminfo", recognise=Recognise(("MemTotal:",), r"^\W*MemTotal:", 60))
def meminfo(capture: Capture) -> Iterator[Fact]:
    """Physical memory."""
    for line in capture.lines():
        if found := re.match(r"\W*MemTotal:\s*(\d{1,15}) kB", line.text):
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
    recognise=Recognise(("PRETTY_NAME=",), r"^\W*PRETTY_NAME=", lines=20),
)
def os_release(capture: Capture) -> Iterator[Fact]:
    """The distribution."""
    for line in capture.lines():
        if found := re.match(r"""\W*PRETTY_NAME=["']?([^"']+)""", line.text):
            yield Host(origin=capture.origin(line), os=found[1].strip())
            return


@probe("host/name", tells=(Host,), path="/proc/sys/kernel/hostname")
def hostname(capture: Capture) -> Iterator[Fact]:
    """What the machine calls itself."""
    if name := capture.content.strip():
        yield Host(origin=capture.said(name), name=name)


@probe(
    "df",
    tells=(Mount,),
    command=("df", "-kP", "/dev/shm"),
    recognise=Recognise(HEADS, r"^\W*(?:Filesystem\s.*(?:Size|blocks).*Mounted on|文件系统\s.*挂载点)", lines=60),
)
def df(capture: Capture) -> Iterator[Fact]:
    """Size and free space of mounted file systems, in whichever unit `df` printed them."""
    unit, kind = 0, 0
    wrapped: list[str] = []
    for line in capture.lines():
        words = [*wrapped, *line.text.split()]
        wrapped = []
        if words[:1] and words[0] in HEADS:
            kind = 1 if words[1:2] in (["Type"], ["类型"]) else 0
            unit = _unit(words[1 + kind : 2 + kind])
        elif unit and len(words) == 1:
            wrapped = words
        elif unit and (found := _mount(capture, line, words, unit, kind=kind)):
            yield found
        elif unit and words:
            unit = 0


def _unit(head: list[str]) -> int:
    found = BLOCKS.match(head[0]) if head else None
    return int(found[1]) * UNITS[found[2]] if found else 1


def _mount(capture: Capture, line: Line, words: list[str], unit: int, *, kind: int) -> Mount | None:
    """The mount of a row; its kind is the type where there is a column of types, else the device."""
    path = next(iter(words[5 + kind :]), "")
    if not path.startswith("/") or not words[4 + kind].endswith(("%", "-")):
        return None
    size, free = (_bytes(words[place + kind], unit) for place in (1, 3))
    return Mount(origin=capture.origin(line), path=path, kind=words[kind], size_bytes=size, free_bytes=free)


def _bytes(word: str, unit: int) -> int | None:
    found = SIZE.fullmatch(word)
    if found is None:
        return None
    return int(float(found[1]) * (UNITS[found[2]] if found[2] else unit))


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
    measured = capture.document("diag/host-memory/1")
    if measured and 0 < measured["seconds"] < 1e6 and 0 < measured["bytes"] < 2**50:
        gbps = measured["bytes"] / measured["seconds"] / 1e9
        yield MemoryBandwidth(
            origin=capture.said(f"{measured['bytes']} bytes in {measured['seconds']:.6f} s"),
            subject="host, one core",
            gbps=round(gbps, 2),
            bytes=measured["bytes"],
            seconds=measured["seconds"],
        )
