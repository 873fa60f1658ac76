"""A network adapter reports that its cable or module is bad.

## What it finds
The driver's own event of an error of the module: too hot, shorted, unsupported, not readable.

## Why it matters
The adapter switches the port off to protect the module, and the rail is gone in the middle of a run.

## What it cannot know
Whether the module was changed since.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check

TOO_HOT = (
    "kernel: [123.456794] mlx5_core 0000:5c:00.0: Port module event[error]: module 0, Cable error, High Temperature\n"
)
PLUGGED = """\
[   11.097374] mlx5_core 0004:01:00.0: Port module event: module 0, Cable plugged
[   11.484789] mlx5_core 0004:01:00.1: Port module event: module 1, Cable unplugged
"""


@check(
    "network/module-fault",
    severity="warning",
    about="network",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "A network adapter's cable or module is bad",
            "summary": "{adapter}: {fault}, {times}x in the kernel log",
            "cause": "An active optical module without enough air gets too hot; others are not supported, or broken.",
        },
        "zh": {
            "title": "网卡的线缆或光模块异常",
            "summary": "{adapter}：{fault}（{times} 次）",
            "cause": "有源光模块散热不足而过热，或模块不受支持、已损坏。",
        },
    },
    remedies=(
        Remedy(
            key="module",
            title={
                "en": "Read the module, give it air, or put a passive copper cable in its place",
                "zh": "读取模块状态，改善散热，或改用无源铜缆",
            },
            commands=("sudo mlxlink -d {address} -m",),
            safety="manual",
            verify="sudo dmesg | grep 'Port module event'",
            source="https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",
        "https://github.com/torvalds/linux/blob/ac9c34d1e45a4c25174ced4fc0cfc33ff3ed08c7/drivers/net/ethernet/mellanox/mlx5/core/events.c",
    ),
    fires=(TOO_HOT,),
    silent=(PLUGGED,),
)
def module_fault(facts: Facts) -> Iterator[Answer]:
    """One finding for each adapter and fault."""
    found: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "port-module":
            found.setdefault((event.address, event.code), []).append(event)
    if not found and not facts.read("kernel-log"):
        yield Undecided(reason="no kernel log was read")
    for (address, code), events in found.items():
        fault = code.replace("-", " ")
        values: dict[str, str | int] = {"address": address or "ADDRESS", "fault": fault, "times": len(events)}
        values["adapter"] = f"mlx5_core {address}".strip()
        evidence = tuple(map(Evidence.of, events[-2:]))
        yield Finding(subject=f"{address} {fault}".strip(), values={**values}, evidence=evidence)
