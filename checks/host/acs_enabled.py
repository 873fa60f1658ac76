"""A PCI Express switch above the accelerators sends what they exchange up to the processor.

## What it finds
On bare metal with two or more accelerators: ports of a switch, of eight lanes or more, whose access control services
(ACS) redirect requests and completions.

## Why it matters
Peers on one switch could reach each other in it. Redirected, the transfer goes over the root complex: it is slow, or is
translated by the IOMMU into nothing, and the launch hangs or computes with wrong data.

## What it cannot know
Access control of root ports is not judged: what crosses them passes the processor anyway. Which devices are below a
port a pasted text does not tell, and without root nothing of it can be read. Virtual machines need access control.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    PciDevice,
    Platform,
    Remedy,
    Shell,
    Undecided,
    check,
    devices,
)

BRIDGE = "0604"
SWITCHES = ("PLX Technology", "Broadcom / LSI", "PMC-Sierra", "Microsemi", "Microchip", "Integrated Device Technology")
SWITCH_IDS = ("10b5", "1000", "11f8", "111d")
"""Makers of switches, by the names and numbers in `pci.ids`."""
REDIRECT = {"ReqRedir", "CmpltRedir"}
LANES = 8
"""Narrower ports lead to management, not to an accelerator."""

DEVICES = """\
19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
"""
REDIRECTED = (
    DEVICES
    + """\
17:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
\tKernel driver in use: pcieport
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s (ok), Width x16 (ok)
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl+ DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
"""
)
SWITCHED = REDIRECTED.replace(
    "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+",
    "ACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-",
)
TO_MANAGEMENT = (
    SWITCHED
    + """\
82:01.0 PCI bridge: PMC-Sierra Inc. Device 4128 (prog-if 00 [Normal decode])
\t\tLnkCap:\tPort #1, Speed 16GT/s, Width x2, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x2 (ok)
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
"""
)


@check(
    "host/acs-enabled",
    severity="warning",
    about="host",
    needs=(Accelerator, PciDevice),
    uses=(Platform,),
    words={
        "en": {
            "title": "PCI Express switches redirect transfers between devices to the processor",
            "summary": "{count} switch ports redirect peer transfers (ACS): {ports}",
            "cause": "The firmware, or the kernel because an IOMMU is on, enabled access control on the switch.",
        },
        "zh": {
            "title": "PCIe 交换芯片将设备间传输重定向到处理器",
            "summary": "{count} 个交换端口启用了 ACS 重定向：{ports}",
            "cause": "主板固件启用了 ACS，或内核因 IOMMU 开启而在交换芯片上启用了 ACS。",
        },
    },
    remedies=(
        Remedy(
            key="firmware",
            title={
                "en": "Switch ACS (and VT-d or AMD-Vi, if no virtual machine needs it) off in the board's firmware",
                "zh": "在主板固件中关闭 ACS（若无虚拟机需要，也关闭 VT-d / AMD-Vi）",
            },
            safety="disruptive",
            verify="sudo lspci -vvv | grep ACSCtl",
            source="https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2262/user-guide/docs/_sources/troubleshooting.rst.txt",
        ),
        Remedy(
            key="until-reboot",
            title={
                "en": "Until the next start, clear it on the ports of the switches; devices of virtual machines lose "
                "their isolation",
                "zh": "临时清除交换端口的 ACS（重启后失效）；虚拟机直通设备会失去隔离",
            },
            commands=("for port in {ports}; do sudo setpci -s $port ECAP_ACS+0x6.w=0000; done",),
            safety="disruptive",
            verify="sudo lspci -vvv | grep ACSCtl",
            source="https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2262/user-guide/docs/_sources/troubleshooting.rst.txt",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2262/user-guide/docs/_sources/troubleshooting.rst.txt",
        "https://www.hiascend.com/document/detail/en/mindcluster/730/toolbox/toolboxug/toolboxug_0254.html",
        "https://github.com/intel/compute-runtime/issues/935",
        "https://github.com/NVIDIA/nccl/issues/19",
        "https://docs.nvidia.com/ai-enterprise/planning-resource/optimizing-vm-configuration-ai-inference/latest/appendix.html",
    ),
    explains=(
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/rank-silent",
        "collectives/wrong-result",
    ),
    fires=(REDIRECTED,),
    silent=(SWITCHED, TO_MANAGEMENT),
)
def acs_enabled(facts: Facts) -> Iterator[Answer]:
    """Look at the ports of switches."""
    if len(devices(facts)) < 2 or any({"virtual", "wsl"} & {*one.traits} for one in facts.all(Platform)):
        return
    ports = {one.address: one for one in facts.all(PciDevice) if _wide_switch(one) and one.acs is not None}
    if not ports:
        yield Undecided(reason="access control of the ports of switches is not told: it takes root and `lspci -vvv`")
    redirecting = [one for one in ports.values() if {*(one.acs or ())} >= REDIRECT]
    if redirecting:
        values: dict[str, str | int] = {
            "count": len(redirecting),
            "ports": Shell(shlex.join(one.address for one in redirecting)),
        }
        evidence = tuple(map(Evidence.of, redirecting[:6]))
        yield Finding(values={**values}, confidence="medium", evidence=evidence)


def _wide_switch(port: PciDevice) -> bool:
    maker = port.vendor_id in SWITCH_IDS or port.name.startswith(SWITCHES)
    return port.class_id == BRIDGE and maker and (port.width_max or 0) >= LANES
