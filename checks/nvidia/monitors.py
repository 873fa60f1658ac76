"""Xids as monitors tell them: those of Kubernetes, of the cloud, and exporters of metrics.

| who | how |
|---|---|
| NVIDIA's device plugin, and those made from it | `XidCriticalError: Xid=69 on Device=GPU-…` |
| a condition of the node (GKE) | `XidCriticalError True … {"31":true}` |
| a condition or event of the node (EKS) | `NvidiaXID79Error` |
| gpud | `XID 74 (NVLINK Error) detected on PCI:0000:04:00` |
| DCGM | `Detected XID 79 for GPU 3`, `XID error 79 detected` |
| metrics | `DCGM_FI_DEV_XID_ERRORS{gpu="0",…} 31`, `nvidia_smi_xid_errors_total{…,xid="79"} 1` |

Each is told once for each code and device of a text. A metric says what came last, not when.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, HardwareEvent, Recognise, expression, pci_address, probe

SAID = (
    expression(r"XidCriticalError: Xid=(?P<code>[0-9]{1,4})\b"),
    expression(r"XidCriticalError\s+True\b.{1,200}\{\W{0,3}(?P<code>[0-9]{1,4})\W{1,4}true"),
    expression(r"\bNvidiaXID(?P<code>[0-9]{1,4})(?:Error|Warning)\b"),
    expression(
        r"\bXID (?P<code>[0-9]{1,4})(?:\.[0-9]{1,3})? ?\(.{1,160}detected on "
        r"(?:GPU )?(?:PCI:)?(?P<address>[0-9a-fA-F:.]*)"
    ),
    expression(r"\bDetected XID (?P<code>[0-9]{1,4}) for GPU [0-9]"),
    expression(r"\bX(?:ID|id)(?: error)?:? (?P<code>[0-9]{1,4}) (?:was )?detected\b"),
    expression(r"GPU had an? (?:un)?contained error \(XID (?P<code>[0-9]{1,4})\)"),
    expression(r"DCGM_FI_DEV_XID_ERRORS\{.{0,600}\} (?P<code>[1-9][0-9]{0,3})(?:\.0)?\s*$"),
    expression(r"nvidia_smi_xid_errors_total\{.{0,400}xid=.(?P<code>[0-9]{1,4})\b.{1,200}\} [1-9]"),
)
"""Each form in which a code is told."""
SIGNS = (
    "XidCriticalError",
    "NvidiaXID",
    "XID ",
    "Xid error",
    "DCGM_FI_DEV_XID_ERRORS{",
    "nvidia_smi_xid_errors_total{",
)


@probe(
    "nvidia/monitors",
    tells=(HardwareEvent,),
    recognise=Recognise(
        SIGNS,
        "|".join(one.pattern.replace("?P<code>", "").replace("?P<address>", "") for one in SAID),
        each=True,
        lines=20,
    ),
)
def monitors(capture: Capture) -> Iterator[Fact]:
    """Each code, once for each device."""
    told: set[tuple[str, str]] = set()
    for line in capture.lines():
        found = next((match for one in SAID if (match := one.search(line.text))), None)
        if not found or "NVRM: " in line.text:
            continue
        address = _address(found.groupdict().get("address") or "")
        if (found["code"], address) not in told:
            told.add((found["code"], address))
            yield HardwareEvent(
                origin=capture.origin(line),
                kind="xid",
                vendor="nvidia",
                code=found["code"],
                address=address,
                message=line.text.strip()[:240],
            )


def _address(address: str) -> str:
    bare = address.lower().rstrip(".:")
    return pci_address(bare if "." in bare else f"{bare}.0") if ":" in bare else ""
