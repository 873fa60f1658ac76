"""The firmware of a network adapter no longer answers its driver.

## What it finds
The driver's own words that the health of the device is compromised: the counter that the firmware turns stands still.

## Why it matters
Nothing passes through the adapter, although its port may still show as active.

## What it cannot know
Why: a fault of the firmware, of the PCI Express link, or a reset that somebody asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check

SILENT = "mlx5_core 0000:d2:00.0: poll_health:825: device's health compromised - reached miss count.\n"
WELL = """\
[   10.643316] mlx5_core 0004:01:00.0: firmware version: 16.27.2048
[   11.097374] mlx5_core 0004:01:00.0: Port module event: module 0, Cable plugged
"""


@check(
    "network/adapter-silent",
    severity="error",
    about="network",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "A network adapter's firmware does not answer",
            "summary": "{address}: the driver reports its health compromised, {times}x in the kernel log",
            "cause": "The firmware stopped by a fault of its own, or the adapter is lost on the bus.",
        },
        "zh": {
            "title": "网卡固件无应答",
            "summary": "{address}：驱动报告设备健康状态异常（{times} 次）",
            "cause": "固件因自身错误停止运行，或网卡已从总线上丢失。",
        },
    },
    remedies=(
        Remedy(
            key="restart",
            title={
                "en": "Take the node out of use and power it off and on; then bring the firmware up to date",
                "zh": "将节点下线并断电重启，然后更新固件",
            },
            commands=("sudo dmesg | grep {address}", "sudo mlxfwmanager --query"),
            safety="disruptive",
            verify="ibstat",
            source="https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",
        ),
    ),
    sources=("https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",),
    explains=("network/port-down",),
    fires=(SILENT,),
    silent=(WELL,),
)
def adapter_silent(facts: Facts) -> Iterator[Answer]:
    """One finding for each adapter."""
    found: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "nic-health":
            found.setdefault(event.address, []).append(event)
    if not found and not facts.read("kernel-log"):
        yield Undecided(reason="no kernel log was read")
    for address, events in found.items():
        values: dict[str, str | int] = {"address": address or "mlx5_core", "times": len(events)}
        yield Finding(subject=address, values={**values}, evidence=tuple(map(Evidence.of, events[-2:])))
