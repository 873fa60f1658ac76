"""Network interfaces of the kernel: its own account, and `ip` and `ifconfig` as people paste them.

An address is told as being there, never as such. The list is known to be whole where the kernel itself was asked; what
is pasted may be cut, and `ifconfig` leaves out what is down. What an interface reaches it cannot know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diag.api import Capture, Fact, HostName, Line, Listing, NetworkInterface, Recognise, expression, probe, replace

CHILD = str(Path(__file__).resolve().parent / "_interfaces.py")
SCHEMA = "diag/interfaces/1"
WORD = r"[^\s:@,;<>()|]{1,40}"
ROW = expression(
    rf"^\W*\d{{1,6}}:\s(?P<name>{WORD})(?:@{WORD})?:\s<[A-Z0-9_,\-]{{0,200}}>\smtu\s(?P<mtu>\d{{1,6}})\b"
    r"(?:.{0,120}?\bstate\s(?P<state>[A-Z]{2,20})\b)?"
)
"""A line of `ip addr` or `ip link`."""
HEAD = expression(
    rf"^\W*(?P<name>{WORD}):\sflags=\d{{1,6}}<(?P<flags>[A-Z0-9_,\-]{{0,200}})>\s{{1,4}}mtu\s(?P<mtu>\d{{1,6}})\b"
)
"""The first line of an interface in `ifconfig`."""
ADDRESS = expression(r"^\W*(?P<family>inet6?)\s(?P<address>[0-9a-fA-F.:]{2,45})(?:/\d{1,3})?\b(?P<rest>.{0,200})")
OPENED = (
    rf"^\W*(?:\d{{1,6}}:\s)?{WORD}(?:@{WORD})?:\s(?:<[A-Z0-9_,\-]{{0,200}}>|flags=\d{{1,6}}<[A-Z0-9_,\-]{{0,200}}>)\s{{1,4}}mtu\s\d"
    r"|^\W*inet6?\s[0-9a-fA-F.:]{2,45}"
)
OWN = ("127.", "169.254.", "fe80:", "::1", "0.0.0.0")
"""How addresses begin that are good for this host or this link alone."""


@probe(
    "interfaces",
    tells=(HostName, NetworkInterface, Listing),
    measure=CHILD,
    recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0),
)
def interfaces(capture: Capture) -> Iterator[Fact]:
    """The kernel's own account: `/sys/class/net`."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    for one in document["interfaces"]:
        yield NetworkInterface(origin=capture.said(json.dumps(one)), **one)
    origin = capture.said(f'"schema": "{SCHEMA}"')
    yield Listing(origin=origin, kind="NetworkInterface")
    if leads := document.get("own_name", ""):
        yield HostName(
            origin=origin, leads="away" if leads == "away" else "loopback", address=leads.removeprefix("away")
        )


@probe(
    "interfaces/pasted",
    tells=(NetworkInterface,),
    recognise=Recognise(("> mtu ", ">  mtu ", "inet ", "inet6 "), OPENED, each=True, lines=12),
)
def interfaces_pasted(capture: Capture) -> Iterator[Fact]:
    """What `ip addr`, `ip link` and `ifconfig` print: an interface, and below it its addresses."""
    told: list[NetworkInterface] = []
    addresses = False
    for line in capture.lines():
        if row := ROW.match(line.text):
            told.append(_interface(capture, line, row["name"], row["mtu"], (row["state"] or "").lower()))
        elif head := HEAD.match(line.text):
            told.append(_interface(capture, line, head["name"], head["mtu"], _state(head["flags"])))
        elif told and (found := ADDRESS.match(line.text)):
            addresses = True
            told[-1] = replace(told[-1], addressed=bool(told[-1].addressed) or _reachable(found))
    for one in told:
        yield replace(one, addressed=bool(one.addressed)) if addresses else one


def _interface(capture: Capture, line: Line, name: str, mtu: str, state: str) -> NetworkInterface:
    fields: dict[str, Any] = {"name": name, "mtu": int(mtu), "state": state}
    return NetworkInterface(origin=capture.origin(line), **fields)


def _state(flags: str) -> str:
    return "up" if {"UP", "RUNNING"} <= set(flags.split(",")) else "down"


def _reachable(found: Any) -> bool:
    """Whether an address is good beyond the host and its link."""
    own = found["address"].lower().startswith(OWN)
    return not own and "scope link" not in found["rest"] and "scope host" not in found["rest"]
