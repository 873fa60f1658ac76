"""Packets of a port for RDMA are smaller than the adapter can make them.

## What it finds
An active port whose payload (`active_mtu`) is below the largest it could have (`max_mtu`): 1024 of 4096 on RoCE is
what an interface with the usual 1500 bytes gives.

## Why it matters
Small packets cost a few percent of bandwidth; and where two nodes have different ones, some versions of NCCL hang.

## What it cannot know
What the switches between the nodes carry, and what the other nodes have. Hence information only.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, NetworkPort, Remedy, Undecided, check

SMALL = """\
ibv_devinfo -d mlx5_1
hca_id: mlx5_1
        transport:                      InfiniBand (0)
        fw_ver:                         22.36.1010
        board_id:                       MT_0000000359
        phys_port_cnt:                  1
                port:   1
                        state:                  PORT_ACTIVE (4)
                        max_mtu:                4096 (5)
                        active_mtu:             1024 (3)
                        link_layer:             Ethernet
"""
SMALL_AND_DOWN = """\
hca_id: mlx5_12
        fw_ver:                         22.38.1900
        phys_port_cnt:                  1
                port:   1
                        state:                  PORT_DOWN (1)
                        max_mtu:                4096 (5)
                        active_mtu:             1024 (3)
                        link_layer:             Ethernet

hca_id: mlx5_2
        fw_ver:                         28.42.1000
        phys_port_cnt:                  1
                port:   1
                        state:                  PORT_ACTIVE (4)
                        max_mtu:                4096 (5)
                        active_mtu:             4096 (5)
                        link_layer:             Ethernet
"""


@check(
    "network/mtu-below",
    severity="info",
    about="network",
    needs=(NetworkPort,),
    words={
        "en": {
            "title": "RDMA packets are smaller than they could be",
            "summary": "{ports}: {mtu} bytes of payload a packet, {most} are possible",
            "cause": "On RoCE the payload follows the MTU of the network interface: 1500 allow 1024, 4200 and more "
            "allow 4096. On InfiniBand the subnet manager chooses it.",
        },
        "zh": {
            "title": "RDMA 报文小于可用的最大值",
            "summary": "{ports}：每个报文载荷 {mtu} 字节，最大可为 {most} 字节",
            "cause": "RoCE 载荷取决于接口 MTU：1500 对应 1024，4200 及以上对应 4096；InfiniBand 由子网管理器决定。",
        },
    },
    remedies=(
        Remedy(
            key="raise",
            title={
                "en": "On RoCE, raise the interface's MTU on every node and switch alike",
                "zh": "对 RoCE，在所有节点和交换机上统一提高接口 MTU",
            },
            commands=("sudo ip link set dev INTERFACE mtu 4200",),
            safety="disruptive",
            verify="ibv_devinfo | grep -E 'hca_id|active_mtu'",
            source="https://github.com/NVIDIA/dgx-spark-playbooks/pull/103",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/dgx-spark-playbooks/pull/103",
        "https://github.com/NVIDIA/nccl/issues/1524",
        "https://github.com/NVIDIA/nccl/pull/2135",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(SMALL,),
    silent=(SMALL_AND_DOWN,),
)
def mtu_below(facts: Facts) -> Iterator[Answer]:
    """Compare each active port's payload with the largest."""
    told = [one for one in facts.all(NetworkPort) if one.mtu and one.mtu_max]
    active = [one for one in told if one.state.upper().removeprefix("PORT_") == "ACTIVE"]
    if not active:
        yield Undecided(reason="no packet size of an active port is told")
    small: dict[tuple[int, int], dict[str, NetworkPort]] = {}
    for port in active:
        if (port.mtu or 0) < (port.mtu_max or 0):
            small.setdefault((port.mtu or 0, port.mtu_max or 0), {})[f"{port.device} port {port.port}"] = port
    for (mtu, most), ports in small.items():
        names = ", ".join(ports)
        values: dict[str, str | int] = {"ports": names, "mtu": mtu, "most": most}
        yield Finding(subject=names, values={**values}, evidence=tuple(map(Evidence.of, ports.values())))
