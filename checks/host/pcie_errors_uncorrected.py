"""PCI Express reported an error of an accelerator or network adapter that could not be corrected.

## What it finds
Lines of advanced error reporting (AER) in the kernel's log with a severity other than corrected: of such a device, or
of any port in a log that also says that a device was lost.

## Why it matters
What was under way is lost. After a fatal one the link is reset and the device is gone from its driver.

## What it cannot know
Which device is below a port: a port is named as such. Where neither the line nor the machine's list tells what it is,
and no device was lost, it is not judged.
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

ADAPTERS = ("0207", "0c06", "0200", "0280")
DRIVERS = ("nvidia ", "amdgpu ", "mlx5_core ", "mlx4_core ", "habanalabs ", "xe ")

LOST = """\
[74889.542031] pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010
[74889.542044] pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, \
id=0010(Receiver ID)
[74889.542125] pcieport 0000:00:02.0:   device [8086:6f04] error status/mask=00000020/00000000
[74889.542184] pcieport 0000:00:02.0:    [ 5] Surprise Down Error    (First)
[74889.542239] nvidia 0000:02:00.0: device has no AER-aware driver
[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.
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
            "summary": "{device}: {times} uncorrected errors ({codes})",
            "cause": "The link or the device broke off: a contact, riser, cable or power supply, or the device itself.",
        },
        "zh": {
            "title": "发生无法纠正的 PCIe 错误",
            "summary": "{device}：{times} 次未纠正错误（{codes}）",
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
    ),
    fires=(LOST,),
    silent=(CORRECTED,),
)
def pcie_errors_uncorrected(facts: Facts) -> Iterator[Answer]:
    """One finding for each device or port."""
    events = facts.all(HardwareEvent)
    errors = [one for one in events if one.kind == "aer" and one.code in ("fatal", "nonfatal")]
    if not errors and not any("kernel-log" in one.kinds for one in facts.all(Text)) and not events:
        yield Undecided(reason="no kernel log was read")
    known = {one.address for one in facts.all(Accelerator)}
    known |= {one.address for one in facts.all(PciDevice) if one.class_id in ADAPTERS}
    lost = [one for one in events if one.kind == "gpu-lost" or (one.kind == "xid" and one.code == "79")]
    found: dict[str, list[HardwareEvent]] = {}
    for event in errors:
        if lost or event.vendor or event.message.startswith(DRIVERS) or event.address in known:
            found.setdefault(event.address, []).append(event)
    if errors and not found:
        yield Undecided(reason=f"what device {errors[0].address} is is not told")
    for address, told in found.items():
        device = device_name(facts, address=address, vendor=told[0].vendor) or address or "-"
        codes = ", ".join(dict.fromkeys(one.code for one in told))
        fatal = lost or any(one.code == "fatal" for one in told)
        values: dict[str, str | int] = {"device": device, "times": len(told), "codes": codes}
        evidence = (*map(Evidence.of, told[:3]), *map(Evidence.of, lost[:1]))
        yield Finding(subject=device, values={**values}, confidence="high" if fatal else "medium", evidence=evidence)
