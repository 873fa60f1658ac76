"""Device files with their rights, measured by `_device_nodes.py`, and whether the one who asks may open them.

None is opened, so that what a control group of a container forbids is not seen. All that there are of those that matter
are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diag.api import Capture, DeviceNode, Fact, Listing, Recognise, probe, program

CHILD = str(Path(__file__).with_name("_device_nodes.py"))
NODES = str(Path(__file__).with_name("nodes.py"))
SCHEMA = "diag/device-nodes/1"


@probe(
    "device-nodes",
    tells=(DeviceNode, Listing),
    measure=CHILD,
    recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0),
)
def device_nodes(capture: Capture) -> Iterator[Fact]:
    """Each device file of a kind that the probe `nodes` knows."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    known = program(NODES)["KNOWN"]
    for one in document["nodes"]:
        if known.fullmatch(str(one["path"]).removeprefix("/dev/")):
            rights = {name: str(one[name]) for name in ("path", "mode", "owner", "group")}
            origin = capture.said(rights["path"])
            yield DeviceNode(origin=origin, **rights, accessible=bool(one["accessible"]))
    if document.get("listed"):
        yield Listing(origin=capture.said('"listed": true'), kind="DeviceNode")
