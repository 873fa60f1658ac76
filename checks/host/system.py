"""Which system this is: kernel, machine, distribution, product, host name.

A container has its own name and distribution and the host's kernel. What this cannot know: the product where firmware
tells none (virtual machines, most containers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from diag.api import Capture, Fact, Host, Recognise, expression, probe

KERNEL = r"[0-9]{1,2}\.[0-9]{1,3}[\w.+\-~]{0,80}"
MACHINE = r"(?:x86_64|aarch64|arm64|ppc64le|s390x|riscv64|loongarch64|i686|armv7l)"
UNAME = expression(
    rf"^\W*Linux (?:(?P<name>[\w.\-]{{1,64}})|<[\w\-]{{1,64}}>) (?P<kernel>{KERNEL}) .*?\b(?P<machine>{MACHINE})\b"
)
FIELDS = {
    "Static hostname": "name",
    "Operating System": "os",
    "Kernel": "kernel",
    "Architecture": "machine",
    "Virtualization": "virtual",
    "Hardware Model": "product",
}
"""Labels of `hostnamectl`."""
MACHINES = {"x86-64": "x86_64", "arm64": "aarch64"}
VAGUE = ("", "n/a", "None", "To Be Filled By O.E.M.", "System Product Name", "Default string", "Not Specified")
"""What firmware says where nobody gave the product a name."""


@probe(
    "uname",
    tells=(Host,),
    command=("uname", "-a"),
    recognise=Recognise(("Linux ",), UNAME.pattern, each=True, lines=0),
)
def uname(capture: Capture) -> Iterator[Fact]:
    """Name, kernel and machine."""
    for line in capture.lines():
        if found := UNAME.match(line.text):
            name, kernel, machine = found.groups()
            yield Host(origin=capture.origin(line), name=name, kernel=kernel, machine=machine)
            return


@probe("uname/release", tells=(Host,), command=("uname", "-r"))
def release(capture: Capture) -> Iterator[Fact]:
    """The kernel's release alone, which is known by the command typed before it."""
    line = next((line for line in capture.lines() if line.text.strip()), None)
    if line and re.fullmatch(KERNEL, line.text.strip()):
        yield Host(origin=capture.origin(line), kernel=line.text.strip())


@probe(
    "proc/version",
    tells=(Host,),
    path="/proc/version",
    recognise=Recognise(
        ("Linux version ",), rf"^(?:\W*\[[^\]]{{1,40}}\])?\W*Linux version {KERNEL} \(", each=True, lines=0
    ),
)
def proc_version(capture: Capture) -> Iterator[Fact]:
    """The kernel, as it says itself when it starts."""
    for line in capture.lines():
        if found := re.search(rf"Linux version ({KERNEL}) \(", line.text):
            yield Host(origin=capture.origin(line), kernel=found[1])
            return


@probe(
    "hostnamectl",
    tells=(Host,),
    recognise=Recognise(("Static hostname:",), r"^\W*Static hostname:\s", lines=20),
)
def hostnamectl(capture: Capture) -> Iterator[Fact]:
    """What systemd knows of the machine."""
    told: dict[str, Any] = {}
    lines = []
    for line in capture.lines():
        label, _, value = (part.strip(" \t>|│") for part in line.text.partition(":"))
        if (name := FIELDS.get(label)) and value not in VAGUE:
            told.setdefault(name, value.removeprefix("Linux ") if name == "kernel" else MACHINES.get(value, value))
            lines.append(line)
    if told:
        yield Host(origin=capture.origin(lines[0]), **told)


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


def product(capture: Capture) -> Iterator[Fact]:
    """The name of the system or board, where firmware has one."""
    name = capture.content.strip().partition("\n")[0].strip()
    if name not in VAGUE and len(name) <= 120:
        yield Host(origin=capture.said(name), product=name)


dmi_product = probe("dmi/product", tells=(Host,), path="/sys/class/dmi/id/product_name")(product)
board_model = probe("device-tree/model", tells=(Host,), path="/proc/device-tree/model")(product)
