"""A port for RDMA is down while its like on the same machine are up.

## What it finds
A port that is not active among ports of the same layer, firmware and board of which at least twice as many are active;
and any port that `NCCL_IB_HCA` names and that is not active. A port that this variable leaves out is not judged.

## Why it matters
A rail without its port sends the traffic of its accelerators over another's, or the launch fails.

## What it cannot know
Whether a port is meant to be used: of cards with two ports the second is often without a cable. Of a kind of which
less than two thirds are active nothing is said, and a machine on which no port is active is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, NetworkPort, Remedy, Setting, Undecided, check, replace

ROCE_TWO_OF_EIGHT_DOWN = """\
CA 'mlx5_0'
\tCA type: MT4129
\tFirmware version: 28.39.1002
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: Ethernet
CA 'mlx5_10'
\tCA type: MT4129
\tFirmware version: 28.39.1002
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: Ethernet
CA 'mlx5_11'
\tCA type: MT4129
\tFirmware version: 28.39.1002
\tPort 1:
\t\tState: Down
\t\tPhysical state: Polling
\t\tRate: 40
\t\tLink layer: Ethernet
"""
NAMED_AND_DOWN = """\
export NCCL_IB_HCA==mlx5_11
$ ibstatus
Infiniband device 'mlx5_11' port 1 status:
\tbase lid:\t 0xffff
\tsm lid:\t\t 0x0
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
\trate:\t\t 10 Gb/sec (4X SDR)
\tlink_layer:\t InfiniBand
"""
SECOND_CARD_UNUSED = """\
CA 'mlx5_0'
\tCA type: MT4129
\tFirmware version: 28.39.1002
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
CA 'mlx5_1'
\tCA type: MT4125
\tFirmware version: 22.38.1002
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 100
\t\tLink layer: Ethernet
CA 'mlx5_10'
\tCA type: MT4129
\tFirmware version: 28.39.1002
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tLink layer: InfiniBand
CA 'mlx5_2'
\tCA type: MT4125
\tFirmware version: 22.38.1002
\tPort 1:
\t\tState: Down
\t\tPhysical state: Disabled
\t\tRate: 40
\t\tLink layer: Ethernet
"""
LEFT_OUT = "export NCCL_IB_HCA==mlx5_0,mlx5_10\n" + ROCE_TWO_OF_EIGHT_DOWN


@check(
    "network/port-down",
    severity="warning",
    about="network",
    needs=(NetworkPort,),
    uses=(Setting,),
    words={
        "en": {
            "title": "A port for RDMA is down",
            "summary": "{device} port {port} is {state}{physical.en}; {up} ports like it are active",
            "cause": "The cable, its module, the port of the switch or the subnet manager; `Disabled` means that the "
            "port was switched off, `Polling` that it finds no other side.",
        },
        "zh": {
            "title": "RDMA 端口未连通",
            "summary": "{device} 端口 {port} 状态为 {state}{physical.zh}，同类端口有 {up} 个处于 Active",
            "cause": "线缆、光模块、交换机端口或子网管理器异常；Disabled 表示端口被关闭，Polling 表示未检测到对端。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "Look at the port, its cable and its other side",
                "zh": "检查该端口、线缆以及对端",
            },
            commands=("ibstat {device}", "sudo mlxlink -d {device} -m"),
            safety="safe",
            verify="ibstat {device} {port}",
            source="https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/link-state-detection",
        ),
        Remedy(
            key="leave-out",
            title={
                "en": "Until it is repaired, leave the port out of the collective library's choice",
                "zh": "修复之前，让集合通信库不使用该端口",
            },
            commands=("export NCCL_IB_HCA=^={device}:{port}",),
            safety="manual",
            verify="NCCL_DEBUG=INFO prints `NET/IB : Using` without {device}",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/nvsentinel/components/nic-health-monitor/link-state-detection",
        "https://github.com/leptonai/gpud/pull/482",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical", "collectives/rank-silent"),
    fires=(ROCE_TWO_OF_EIGHT_DOWN, NAMED_AND_DOWN),
    silent=(SECOND_CARD_UNUSED, LEFT_OUT),
)
def port_down(facts: Facts) -> Iterator[Answer]:
    """Compare each port with its like."""
    ports = [one for one in _ports(facts) if one.state]
    chosen = next((one for one in facts.all(Setting) if one.name == "NCCL_IB_HCA" and one.value[:1] != "^"), None)
    if not ports:
        yield Undecided(reason="no state of a port is told")
    for port in ports:
        up = sum(_active(one) for one in ports if _kind(one) == _kind(port))
        down = sum(not _active(one) for one in ports if _kind(one) == _kind(port))
        named = chosen is not None and _named(port, chosen)
        if _active(port) or (chosen is not None and not named):
            continue
        if named or (up > 1 and up >= 2 * down):
            values: dict[str, str | int] = {"device": port.device, "port": port.port, "state": _state(port), "up": up}
            evidence = (Evidence.of(port), *((Evidence.of(chosen),) if chosen and named else ()))
            yield Finding(
                subject=f"{port.device} port {port.port}",
                values={**values, **_physical(port)},
                confidence="high" if named or port.layer == "InfiniBand" else "medium",
                evidence=evidence,
            )
    if ports and chosen is None and not any(map(_active, ports)):
        yield Undecided(reason="no port is active: whether any is meant to be used is not known")


def _ports(facts: Facts) -> list[NetworkPort]:
    """One for each port, with what all sources told of it, the last word first."""
    joined: dict[tuple[str, int], NetworkPort] = {}
    for port in facts.all(NetworkPort):
        known = joined.get((port.device, port.port))
        missing = {name: value for name, value in (known.told() if known else {}).items() if name not in port.told()}
        joined[port.device, port.port] = replace(port, **missing)
    return list(joined.values())


def _kind(port: NetworkPort) -> tuple[str, str, str]:
    return port.layer, port.firmware, port.board


def _state(port: NetworkPort) -> str:
    return port.state.upper().removeprefix("PORT_")


def _active(port: NetworkPort) -> bool:
    return _state(port) == "ACTIVE"


def _named(port: NetworkPort, chosen: Setting) -> bool:
    """Whether the variable's list of prefixes, or of names after `=`, has the port."""
    exact = chosen.value.startswith("=")
    for word in chosen.value.lstrip("=").split(","):
        name, _, number = word.strip().partition(":")
        number = number.partition(":")[0]
        matches = port.device == name if exact else port.device.startswith(name)
        if name and matches and number in ("", str(port.port)):
            return True
    return False


def _physical(port: NetworkPort) -> dict[str, str]:
    """The state of the link itself, where it was told."""
    told = port.physical_state
    return {"physical.en": told and f" ({told})", "physical.zh": told and f"（{told}）"}
