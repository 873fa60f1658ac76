"""Ports of RDMA adapters, as the kernel, `ibstat`, `ibstatus`, `ibv_devinfo`, `rdma link` and `ibdev2netdev` show them.

State and rate are of the port, whichever its layer: RoCE is `Ethernet`. A state is told without the number that some
tools print with it (`4: ACTIVE`, `PORT_ACTIVE (4)`). `ibdev2netdev` shows whether the network interface is up, which
on InfiniBand says nothing of the port: of it, only the name of the interface is told. Tables of GIDs are read as the
kernel, `show_gids` and `ibv_devinfo -v` show them, without empty rows. What stands on the other side of a cable
it cannot know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from diag.api import (
    Capture,
    Fact,
    Gid,
    Line,
    Listing,
    NetworkPort,
    Recognise,
    Unavailable,
    expression,
    probe,
    replace,
)

CHILD = str(Path(__file__).resolve().parent / "_infiniband.py")
SCHEMA = "diag/infiniband/1"
RATE = expression(r"(\d{1,5}(?:\.\d{1,3})?)(?:\s|$)")
BYTES = expression(r"(\d{3,5})(?:\s|$)")
DEVICE = r"[A-Za-z][\w.\-]{0,40}"
STATE = expression(r"(?:\d{1,2}: )?([A-Za-z_]{2,20})(?: \(\d{1,2}\))?")
LAYERS = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}
WORDS = {
    "state": "state",
    "physical state": "physical_state",
    "phys state": "physical_state",
    "phys_state": "physical_state",
    "rate": "rate_gbps",
    "link layer": "layer",
    "link_layer": "layer",
    "firmware version": "firmware",
    "fw_ver": "firmware",
    "firmware": "firmware",
    "board_id": "board",
    "board": "board",
    "interface": "interface",
    "max_mtu": "mtu_max",
    "active_mtu": "mtu",
}
"""The tools' words for what a port tells, in lower case."""
OF_ADAPTER = ("firmware", "board")
KNOWN = expression(r"[A-Za-z0-9]")
ADAPTER = expression(rf"^\W*CA '(?P<device>{DEVICE})'(?P<port>)")
VERBS = expression(rf"^\W*hca_id:\s*(?P<device>{DEVICE})(?P<port>)\s*$")
STATUS = expression(rf"^\W*Infiniband device '(?P<device>{DEVICE})' port (?P<port>\d{{1,3}}) status:")
"""What heads an adapter, or at once its port."""
PORT = expression(r"^\W*[Pp]ort(?:\s(\d{1,3}):|:\s+(\d{1,3}))\s*$")
ROW = expression(
    rf"^\W*(?P<device>{DEVICE})\s+(?P<port>\d{{1,3}})\s+(?P<index>\d{{1,3}})\s+(?P<gid>[0-9a-f]{{0,4}}:[0-9a-f:.]{{2,41}})\s+"
    r"(?:\d{1,3}(?:\.\d{1,3}){3}\s+)?(?:RoCE\s)?v(?P<version>[12])(?:\s+(?P<interface>[\w.\-]{1,40}))?\s*$"
)
"""A row of `show_gids`."""
VERBOSE = expression(
    r"^\W*GID\[\s{0,3}(?P<index>\d{1,3})\]:\s+(?P<gid>[0-9a-f:.]{3,45})(?:,\s(?P<kind>IB/RoCE v1|RoCE v[12]|IB))?\s*$"
)
"""A row in `ibv_devinfo -v`."""
KINDS = {"1": "IB/RoCE v1", "2": "RoCE v2"}
"""The kernel's words for the versions of RoCE."""
LINK = expression(
    rf"^\W*(?:link |\d{{1,4}}/\d{{1,3}}: )(?P<device>{DEVICE})/(?P<port>\d{{1,3}}):? "
    r"(?P<infiniband>subnet_prefix .{1,120} )?state (?P<state>[A-Z_]{2,20}) physical_state (?P<physical>[A-Z_]{2,30})"
    r"(?: netdev (?P<interface>\S{1,40}))?"
)
NETDEV = expression(
    rf"^\W*(?P<device>{DEVICE})\s+port\s+(?P<port>\d{{1,3}})\s+==>\s+(?P<interface>\S{{1,40}})\s+\((?:Up|Down)\)"
)
FIELDS = r"^\W*(?:State|Physical state|Rate|Link layer|Firmware version): "


@probe(
    "infiniband",
    tells=(NetworkPort, Gid, Listing),
    measure=CHILD,
    recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0),
)
def infiniband(capture: Capture) -> Iterator[Fact]:
    """The kernel's own account: `/sys/class/infiniband`."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    told = [port for port in document.get("ports") or () if isinstance(port, dict)]
    for port in told:
        rows = port.get("gids", ())
        words = {key: str(value) for key, value in port.items() if key != "gids"}
        origin = capture.said(json.dumps(port))
        blank = NetworkPort(origin=origin, device=words.get("device", ""), port=_number(words.get("port", "")))
        yield replace(blank, **{name: value for key, text in words.items() for name, value in _told(key, text)})
        for row in rows:
            yield Gid(origin=capture.said(json.dumps(row)), device=blank.device, port=blank.port, **row)
    if told:
        yield Listing(origin=capture.said(f'"schema": "{SCHEMA}"'), kind="NetworkPort")
    else:
        reason = "no RDMA adapter in /sys/class/infiniband"
        yield Unavailable(
            origin=capture.said(reason), what="infiniband", how="missing", reason=reason, tells=("NetworkPort",)
        )


@probe(
    "ibstat",
    tells=(NetworkPort,),
    recognise=Recognise(
        ("CA '", "State: ", "Physical state: ", "Rate: ", "Link layer: ", "Firmware version: "),
        rf"^\W*CA '{DEVICE}'|{FIELDS}",
        each=True,
        lines=20,
    ),
)
def ibstat(capture: Capture) -> Iterator[Fact]:
    """What `ibstat` prints: adapters, and below each its ports."""
    yield from _ports(capture, ADAPTER)


@probe(
    "ibv-devinfo",
    tells=(NetworkPort, Gid),
    command=("ibv_devinfo",),
    recognise=Recognise(
        ("hca_id:", "fw_ver:", "board_id:", "port:", "PORT_", "_mtu:", "link_layer:", "GID["),
        rf"^\W*(?:hca_id:\s*{DEVICE}|(?:fw_ver|board_id|link_layer):\s+\S|port:\s+\d{{1,3}}\s*$|state:\s+PORT_"
        rf"|(?:max|active)_mtu:\s+\d)|{VERBOSE.pattern}",
        each=True,
        lines=160,
    ),
)
def ibv_devinfo(capture: Capture) -> Iterator[Fact]:
    """What `ibv_devinfo` prints, with or without `-v`."""
    yield from _ports(capture, VERBS)
    device, port = "", 1
    for line in capture.lines():
        if found := VERBS.match(line.text):
            device, port = found["device"], 1
        elif found := PORT.match(line.text):
            port = _number(found[1] or found[2])
        elif device and (found := VERBOSE.match(line.text)) and found["gid"].strip("0:"):
            kind = (found["kind"] or "").replace("RoCE v1", "IB/RoCE v1").replace("IB/IB/", "IB/")
            yield Gid(
                origin=capture.origin(line),
                device=device,
                port=port,
                index=_number(found["index"]),
                gid=found["gid"],
                kind=kind,
            )


@probe("show-gids", tells=(Gid,), command=("show_gids",), recognise=Recognise(("v1", "v2"), ROW.pattern, each=True))
def show_gids(capture: Capture) -> Iterator[Fact]:
    """What `show_gids` prints: a row for each GID in use."""
    for line in capture.lines():
        if found := ROW.match(line.text):
            yield Gid(
                origin=capture.origin(line),
                device=found["device"],
                port=_number(found["port"]),
                index=_number(found["index"]),
                gid=found["gid"],
                kind=KINDS[found["version"]],
                interface=found["interface"] or "",
            )


@probe(
    "ibstatus",
    tells=(NetworkPort,),
    recognise=Recognise(
        ("Infiniband device '", "phys state:", "state:", "rate:", "link_layer:"),
        r"^\W*(?:Infiniband device '|phys state:\s+\d|state:\s+\d{1,2}: |rate:\s+\d|link_layer:\s+\w)",
        each=True,
        lines=10,
    ),
)
def ibstatus(capture: Capture) -> Iterator[Fact]:
    """What `ibstatus` prints: one block a port."""
    yield from _ports(capture, STATUS)


def _ports(capture: Capture, head: re.Pattern[str]) -> Iterator[NetworkPort]:
    """The ports of a text in which an adapter's name, then a port's number, head what is told of them."""
    device, adapter, ports = "", dict[str, Any](), list[NetworkPort]()
    for line in capture.lines():
        if found := head.match(line.text):
            device, adapter, inside = found["device"], {}, bool(found["port"])
            ports += [_blank(capture, line, device, found["port"], {})] if inside else []
        elif device and (found := PORT.match(line.text)):
            inside = True
            ports.append(_blank(capture, line, device, found[1] or found[2], adapter))
        elif device:
            for name, value in _field(line.text):
                if inside:
                    ports[-1] = replace(ports[-1], **{name: ports[-1].told().get(name, value)})
                elif name in OF_ADAPTER:
                    adapter[name] = value
    yield from ports


def _blank(capture: Capture, line: Line, device: str, port: str, adapter: Mapping[str, Any]) -> NetworkPort:
    return NetworkPort(origin=capture.origin(line), device=device, port=_number(port), **adapter)


def _field(text: str) -> Iterator[tuple[str, Any]]:
    key, _, value = text.partition(":")
    yield from _told(key.strip(" \t>|*-").lower(), value.strip())


def _told(key: str, value: str) -> Iterator[tuple[str, Any]]:
    """What a word of a tool and its value say of a port."""
    name = WORDS.get(key, "")
    if name in ("state", "physical_state"):
        found = STATE.fullmatch(value)
        read: Any = found[1] if found else ""
    elif name == "rate_gbps":
        found = RATE.match(value)
        read = float(found[1]) if found else None
    elif name in ("mtu", "mtu_max"):
        found = BYTES.match(value)
        read = int(found[1]) if found else None
    else:
        read = LAYERS.get(value.lower(), "") if name == "layer" else value[:80]
    if name and read and (name not in OF_ADAPTER or KNOWN.match(read)):
        yield name, read


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"[0-9]{1,3}", text) else 1


@probe(
    "rdma-link",
    tells=(NetworkPort,),
    recognise=Recognise((" physical_state ",), LINK.pattern, each=True, lines=4),
)
def rdma_link(capture: Capture) -> Iterator[Fact]:
    """What `rdma link` prints, of iproute2 old and new: a port a line."""
    for line in capture.lines():
        if found := LINK.match(line.text):
            port = _blank(capture, line, found["device"], found["port"], {})
            layer = "InfiniBand" if found["infiniband"] else ""
            yield replace(
                port,
                state=found["state"],
                physical_state=found["physical"],
                layer=layer,
                interface=found["interface"] or "",
            )


@probe(
    "ibdev2netdev",
    tells=(NetworkPort,),
    recognise=Recognise((" ==> ",), NETDEV.pattern, each=True, lines=4),
)
def ibdev2netdev(capture: Capture) -> Iterator[Fact]:
    """What `ibdev2netdev` prints: the network interface of each port."""
    for line in capture.lines():
        if found := NETDEV.match(line.text):
            port = _blank(capture, line, found["device"], found["port"], {})
            yield replace(port, interface=found["interface"])
