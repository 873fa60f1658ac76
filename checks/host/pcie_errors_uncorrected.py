"""PCI Express reported an error of an accelerator or network adapter that could not be corrected.

## What it finds
Lines of advanced error reporting (AER) in the kernel's log with a severity other than corrected: of such a device, or
of any port in a log that also says that a device was lost, or could not be recovered from such an error.

## Why it matters
What was under way is lost. After a fatal one the link is reset and the device is gone from its driver.

## What it cannot know
Which device is below a port: a port is named as such, and tied only to a device of which the log says that it could
not be recovered. Where neither the line
nor the machine's list makes it an accelerator or an adapter for RDMA, as for a disk, it is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    HardwareEvent,
    PciDevice,
    Remedy,
    Text,
    Undecided,
    check,
    device_name,
)

ACCELERATORS = {"nvidia", "amdgpu", "habanalabs", "xe"}
ADAPTERS = {"mlx5_core", "mlx4_core", "bnxt_en"}
"""Drivers, as the kernel names them before an address."""
FABRIC = ("0207", "0c06")
MAKER = "15b3"
UNTOLD = ("pcieport ", "pci ", "0000:", "AER", "DMAR", "AMD-Vi")
"""How a line begins that does not tell what the device is."""
PORT = "pcieport "

LOST = """\
[74889.542031] pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010
[74889.542044] pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, \
id=0010(Receiver ID)
[74889.542125] pcieport 0000:00:02.0:   device [8086:6f04] error status/mask=00000020/00000000
[74889.542184] pcieport 0000:00:02.0:    [ 5] Surprise Down Error    (First)
[74889.542239] nvidia 0000:02:00.0: device has no AER-aware driver
[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.
"""
ROOT_PORT = """\
[ 1000.123456] pcieport 0000:17:01.0: AER: Uncorrected (Non-Fatal) error message received from 0000:17:01.0
[ 1000.123460] pcieport 0000:17:01.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, \
(Requester ID)
[ 1000.123470] pcieport 0000:17:01.0:   device [8086:352a] error status/mask=00004000/00000000
[ 1001.123470] NVRM: Xid (PCI:0000:db:00): 79, pid=1, GPU has fallen off the bus.
"""
UNRECOVERED = """\
[  +0.000001] pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0
[  +0.000004] pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, \
(Requester ID)
[  +0.000898] pcieport 0000:00:03.0:   device [8086:6f08] error status/mask=00004020/00000000
[  +0.000894] pcieport 0000:00:03.0:    [14] CmpltTO                (First)
[  +0.000921] nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)
[  +0.000002] snd_hda_intel 0000:03:00.1: AER: can't recover (no error_detected callback)
[  +0.000041] pcieport 0000:00:03.0: AER: device recovery failed
"""
LAST_LINES = """\
[  +0.000921] nvidia 0000:03:00.0: AER: can't recover (no error_detected callback)
[  +1.050439] pcieport 0000:00:03.0: AER: Root Port link has been reset (0)
[  +0.000041] pcieport 0000:00:03.0: AER: device recovery failed
"""
THUNDERBOLT = """\
Sep 22 09:59:09 pve kernel: thunderbolt 0000:84:00.0: AER: can't recover (no error_detected callback)
Sep 22 09:59:09 pve kernel: xhci_hcd 0000:97:00.0: AER: can't recover (no error_detected callback)
Sep 22 09:59:09 pve kernel: pcieport 0000:80:1b.4: AER: device recovery failed
"""
DISK = """\
[ 1000.123460] nvme 0000:65:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)
[ 1001.123470] NVRM: Xid (PCI:0000:db:00): 79, pid=1, GPU has fallen off the bus.
"""
CORRECTED = """\
[  448.455107] pcieport 0000:00:00.0: AER: Corrected error received: 0000:01:00.0
[  448.469914] mlx5_core 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Transaction Layer, (Receiver ID)
[  448.479792] mlx5_core 0000:01:00.0:   device [15b3:1019] error status/mask=00002000/00000000
"""


@check(
    "host/pcie-errors-uncorrected",
    severity="error",
    about="host",
    needs=(),
    uses=(Accelerator, HardwareEvent, PciDevice, Text),
    words={
        "en": {
            "title": "PCI Express errors that could not be corrected",
            "summary": "{device}: uncorrected error ({codes}), {times}x in the kernel log",
            "cause": "The link or the device broke off: a contact, riser, cable or power supply, or the device itself.",
        },
        "zh": {
            "title": "发生无法纠正的 PCIe 错误",
            "summary": "{device}：内核日志中出现 {times} 次未纠正错误（{codes}）",
            "cause": "链路或设备中断：触点、转接卡、线缆、供电异常，或设备本身故障。",
        },
    },
    remedies=(
        Remedy(
            key="service",
            title={
                "en": "Take the node out of use; power it off and on, seat the card and its power anew; have it "
                "serviced if it comes again",
                "zh": "将节点下线，断电后重新插拔板卡和供电线缆；若再次出现则报修",
            },
            commands=("sudo dmesg | grep -E 'AER|PCIe Bus Error'", "sudo lspci -vv | grep -E '^[0-9a-f]|UESta:'"),
            safety="disruptive",
            verify="sudo dmesg | grep -c 'severity=Uncorrect'",
            source="https://docs.kernel.org/PCI/pcieaer-howto.html",
        ),
    ),
    sources=(
        "https://docs.kernel.org/PCI/pcieaer-howto.html",
        "https://github.com/wilicc/gpu-burn/issues/1",
        "https://github.com/rwth-i6/returnn/issues/1500",
    ),
    fires=(LOST, ROOT_PORT, UNRECOVERED, LAST_LINES),
    silent=(CORRECTED, DISK, THUNDERBOLT),
)
def pcie_errors_uncorrected(facts: Facts) -> Iterator[Answer]:
    """One finding for each device or port."""
    events = facts.all(HardwareEvent)
    errors = [one for one in events if one.kind == "aer" and one.code in ("fatal", "nonfatal")]
    if not errors and not facts.read("kernel-log") and not events:
        yield Undecided(reason="no kernel log was read")
    left = {_named(facts, one): [one] for one in events if one.kind == "aer-unrecovered" and _named(facts, one)}
    below = f" → {', '.join(left)}" if left else ""
    lost = bool(below) or any(one.kind == "gpu-lost" or (one.kind == "xid" and one.code == "79") for one in events)
    found: dict[str, list[HardwareEvent]] = {}
    for event in errors:
        port = f"PCIe port {event.address}{below}" if lost and event.address and event.message.startswith(PORT) else ""
        if subject := port or _named(facts, event):
            found.setdefault(subject, []).append(event)
    found = found or left
    if not found and any(one.message.startswith(UNTOLD) for one in errors):
        yield Undecided(reason=f"what device {errors[0].address} is is not told")
    for subject, told in found.items():
        codes = ", ".join(dict.fromkeys(one.code or "not recovered" for one in told))
        fatal = any(one.code == "fatal" for one in told)
        yield Finding(
            subject=subject,
            values={"device": subject, "times": len(told), "codes": codes},
            confidence="high" if fatal else "medium",
            evidence=tuple(map(Evidence.of, told[:3])),
        )


def _named(facts: Facts, event: HardwareEvent) -> str:
    """What the line or the machine's list says the device is; empty where it is neither accelerator nor adapter."""
    driver = event.message.partition(" ")[0]
    known = any(one.address == event.address for one in facts.all(Accelerator))
    if event.vendor or known or driver in ACCELERATORS:
        return device_name(facts, address=event.address, vendor=event.vendor)
    listed = (one for one in facts.all(PciDevice) if one.address == event.address)
    adapter = any(one.class_id in FABRIC or one.vendor_id == MAKER for one in listed)
    if driver in ADAPTERS or adapter:
        return f"{driver if driver in ADAPTERS else 'adapter'} {event.address}".strip()
    return ""
