"""The link of a network adapter goes down again and again.

## What it finds
Three or more times that the kernel's log says of one adapter that its link is down; of the interface and of the port
for RDMA, which say it each, the one that says it more often counts. Once or twice is what a boot, a switch that
restarts or a change of mode leaves.

## Why it matters
While the link is down, what is in flight over it is lost: a collective stands or the launch dies with a timeout.

## What it cannot know
Over how long: the log's ring may hold weeks. And whether the other side was taken down on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check

OFTEN = 3

FLAPPING = """\
[ 4435.115811] mlx5_core 0000:53:00.0 enp83s0f0np0: Link down
[ 4435.195065] bond0: (slave enp83s0f0np0): link status definitely down, disabling slave
[ 4441.768101] mlx5_core 0000:53:00.0 enp83s0f0np0: Link up
[ 4441.769587] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link ACTIVE
[ 4443.968257] mlx5_core 0000:53:00.0 enp83s0f0np0: Link down
[ 4443.974372] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link DOWN
[ 4450.318539] mlx5_core 0000:53:00.0 enp83s0f0np0: Link up
[ 4450.918521] mlx5_core 0000:53:00.0 enp83s0f0np0: Link down
[ 4450.934787] mlx5_core 0000:53:00.0 mlx5_3: Port: 1 Link DOWN
"""
TWICE = """\
[139.741] mlx5_core 0000:01:00.0 enp1s0f0np0: Link down
[140.030] mlx5_core 0000:01:00.1 enp1s0f1np1: Link down
[142.217] mlx5_core 0000:01:00.0 enp1s0f0np0: Link up
[222.136] mlx5_core 0000:01:00.1 enp1s0f1np1: Link down
[362.514] mlx5_core 0000:01:00.1 enp1s0f1np1: Link up
"""
ONCE_EACH = """\
[18865.729882] ixgbe 0000:05:00.0 enp5s0: NIC Link is Up 10 Gbps, Flow Control: RX/TX
[18865.848172] mlx5_core 0000:01:00.0 enp1s0f0np0: Link down
[18866.057990] mlx5_core 0000:01:00.1 enp1s0f1np1: Link down
"""


@check(
    "network/link-flapping",
    severity="warning",
    about="network",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "A network link goes down again and again",
            "summary": "{address}: the link went down {times} times{last.en}",
            "cause": "A cable or module that is loose, too hot or bad, or a port of the switch that restarts.",
        },
        "zh": {
            "title": "网络链路反复断开",
            "summary": "{address}：链路断开 {times} 次{last.zh}",
            "cause": "线缆或光模块松动、过热或损坏，或者交换机端口反复重启。",
        },
    },
    remedies=(
        Remedy(
            key="cable",
            title={
                "en": "Look at module, temperature and error counters; change the cable",
                "zh": "检查光模块、温度与错误计数，并更换线缆",
            },
            commands=("ls /sys/bus/pci/devices/{address}/net", "sudo mlxlink -d {address} -m -c"),
            safety="safe",
            verify="sudo dmesg | grep -c '{address}.*Link down'",
            source="https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/syslog-detection-and-correlation.md",
        "https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/link-state-detection",
        "https://github.com/NVIDIA/nccl/pull/2183",
    ),
    explains=(
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/curve-collapses",
        "collectives/rank-silent",
    ),
    fires=(FLAPPING,),
    silent=(ONCE_EACH, TWICE),
)
def link_flapping(facts: Facts) -> Iterator[Answer]:
    """Count the times by adapter."""
    downs: dict[tuple[str, bool], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "link-down" and event.address:
            downs.setdefault((event.address, "Link DOWN" in event.message), []).append(event)
    if not downs and not facts.read("kernel-log"):
        yield Undecided(reason="no kernel log was read")
    for (address, of_port), events in downs.items():
        more = downs.get((address, not of_port), ())
        if len(events) >= OFTEN and (len(events), not of_port) >= (len(more), of_port):
            last = events[-1].at
            values: dict[str, str | int] = {"address": address, "times": len(events)}
            values |= {"last.en": last and f", last at {last}", "last.zh": last and f"，最近一次在 {last}"}
            yield Finding(subject=address, values={**values}, evidence=tuple(map(Evidence.of, events[-3:])))
