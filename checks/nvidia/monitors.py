"""Xids as monitors tell them: those of Kubernetes and of the cloud, DCGM, and exporters of metrics.

| who | how |
|---|---|
| NVIDIA's device plugin, and those made from it | `XidCriticalError: Xid=69 on Device=GPU-…` |
| a condition of the node (GKE) | `XidCriticalError True … {"31":true}` |
| gpud | `XID 79(GPU has fallen off the bus) detected on PCI:0000:ae:00` |
| DCGM, and NVSentinel from it | `Detected XID 145 for GPU 0`, `GPU had an uncontained error (XID 95)` |
| who hands on the kernel's line (journald, HyperPod) | `"MESSAGE":"NVRM: Xid (PCI:0000:b9:00): 71, …"` |
| DCGM's exporter | `DCGM_FI_DEV_XID_ERRORS{gpu="1",…} 31`, `DCGM_EXP_XID_ERRORS_COUNT{…,xid="42"} 1` |

Each is an event of kind `xid-reported`; where the kernel's log tells the same number it adds nothing, and elsewhere it
is an Xid like any other. What it cannot know: how often and when, and, of a metric, whether it is over: it shows what
came last. The device only where its address stands in the line.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Capture,
    Fact,
    Facts,
    HardwareEvent,
    Recognise,
    deduction,
    expression,
    pci_address,
    probe,
    replace,
)

REPORTED = "xid-reported"
MESSAGE_CAP = 240
CODE = r"([1-9][0-9]{0,3})\b"
FORMS = (
    rf"XidCriticalError: Xid={CODE}",
    rf"XidCriticalError\s+True\s.{{1,200}}\{{.?\"{CODE}.?\":true",
    rf"\bXID {CODE}(?:\.[0-9]{{1,3}})? ?\(.{{1,160}} detected on ",
    rf"\bDetected XID {CODE} for GPU [0-9]",
    rf"\bGPU ha[ds] .{{1,40}} \(XID {CODE}\)",
    rf"[\"'`]NVRM: Xid \([^)]{{7,40}}\): {CODE}",
    rf"DCGM_FI_DEV_XID_ERRORS\{{.{{1,900}}\}} {CODE}",
    rf"DCGM_\w{{1,20}}XID_ERRORS_(?:COUNT|ACTIVE)\{{.{{1,900}}xid=\"{CODE}\".{{0,300}}\}} [1-9]",
)
SAID = tuple(map(expression, FORMS))
ADDRESS = expression(r"(?:PCI:|pci_bus_id=\"|PCI\W{1,9}entityValue\W{1,9})([0-9a-fA-F]{4,8}:[0-9a-fA-F:.]{5,7})")


@probe(
    "nvidia/monitors",
    tells=(HardwareEvent,),
    recognise=Recognise(
        ("XidCriticalError", "XID ", "NVRM: Xid (", "DCGM_FI_DEV_XID_ERRORS", "DCGM_EXP_XID_ERRORS"),
        "|".join(FORMS),
        each=True,
        lines=20,
    ),
)
def monitors(capture: Capture) -> Iterator[Fact]:
    """The number of each line, and the device's address where it stands there."""
    for line in capture.lines():
        if found := next((match for one in SAID if (match := one.search(line.text))), None):
            place = ADDRESS.search(line.text)
            yield HardwareEvent(
                origin=capture.origin(line),
                kind=REPORTED,
                vendor="nvidia",
                code=found[1],
                address=_address(place[1].lower()) if place else "",
                message=line.text[found.start() :].strip("\"'`{}, ")[:MESSAGE_CAP],
            )


def _address(bare: str) -> str:
    return pci_address(bare if "." in bare else f"{bare}.0")


@deduction(needs=(HardwareEvent,), tells=(HardwareEvent,))
def xid_reported(facts: Facts) -> Iterator[Fact]:
    """An Xid for each number and device of which the kernel's log tells nothing."""
    told = {(one.code, "") for one in facts.all(HardwareEvent) if one.kind == "xid"}
    for event in facts.all(HardwareEvent):
        if event.kind == REPORTED and not told & {(event.code, ""), (event.code, event.address)}:
            told.add((event.code, event.address))
            yield replace(event, kind="xid")
