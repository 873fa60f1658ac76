"""A network adapter reads that its slot gives too little power.

## What it finds
The driver's words that it detected insufficient power on the slot, with the watts that the slot advertises.

## Why it matters
An adapter that really has too little switches ports or modules off.

## What it cannot know
Whether the slot really gives less: many boards do not fill in what the slot advertises, and 27 W then stand there on
adapters that run at full speed. On machines with a GB10 the line always stands there and is left out. Hence information
only.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check

BENIGN = "GB10"

LITTLE = "mlx5_core 0000:12:00.0: mlx5_pcie_event:299: Detected insufficient power on the PCIe slot (27W).\n"
ENOUGH = """\
[   11.097626] mlx5_core 0004:01:00.0: mlx5_pcie_event:294:(pid 542): PCIe slot advertised sufficient power (75W).
"""


@check(
    "host/slot-power",
    severity="info",
    about="host",
    needs=(),
    uses=(Accelerator, HardwareEvent, Text),
    words={
        "en": {
            "title": "A network adapter reads too little power on its slot",
            "summary": "{adapter}: the slot advertises too little power{watts.en}",
            "cause": "The slot is meant for smaller cards, or the firmware of the board does not state its power.",
        },
        "zh": {
            "title": "网卡检测到插槽供电不足",
            "summary": "{adapter}：插槽声明的功率不足{watts.zh}",
            "cause": "插槽面向低功耗板卡，或主板固件未正确声明插槽功率。",
        },
    },
    remedies=(
        Remedy(
            key="measure",
            title={
                "en": "Measure the bandwidth; where it is right there is nothing to do, else use another slot",
                "zh": "测量带宽；若正常则无需处理，否则更换插槽",
            },
            commands=("sudo lspci -vv -s {address} | grep SlotPowerLimit", "ib_write_bw --report_gbits"),
            safety="safe",
            verify="ib_write_bw --report_gbits",
            source="https://github.com/NVIDIA/dgx-spark-playbooks/pull/108",
        ),
    ),
    sources=(
        "https://github.com/leptonai/gpud/issues/348",
        "https://github.com/NVIDIA/dgx-spark-playbooks/pull/108",
        "https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",
    ),
    fires=(LITTLE,),
    silent=(ENOUGH,),
)
def slot_power(facts: Facts) -> Iterator[Answer]:
    """One finding for each adapter."""
    found = {one.address: one for one in facts.all(HardwareEvent) if one.kind == "slot-power"}
    if not found and not facts.read("kernel-log"):
        yield Undecided(reason="no kernel log was read")
    if any(BENIGN in one.name for one in facts.all(Accelerator)):
        return
    for address, event in found.items():
        values = {
            "address": address or "ADDRESS",
            "adapter": f"mlx5_core {address}".strip(),
            "watts.en": event.code and f" ({event.code})",
            "watts.zh": event.code and f"（{event.code}）",
        }
        yield Finding(subject=address, values={**values}, confidence="medium", evidence=(Evidence.of(event),))
