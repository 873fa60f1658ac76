"""A port for RDMA runs at a lower rate than its like, or InfiniBand fell back to its first speed.

## What it finds
An active port whose rate is below that of at least two others of the same layer, firmware and board, where it is the
only such one or below half of theirs; and an active InfiniBand port at 10 Gb/s or less.

## Why it matters
A collective goes at the pace of its slowest rail.

## What it cannot know
Whether the port is cabled like that on purpose, such as one for storage. Hence no more than medium confidence for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, NetworkPort, Remedy, Undecided, check, replace

FALLBACK = 10.0
"""Gb/s of four lanes at the first speed of InfiniBand (SDR)."""

PORT = (
    '{"device": "%s", "port": "1", "firmware": "%s", "board": "%s", "interface": "", "state": "4: ACTIVE", '
    '"phys_state": "5: LinkUp", "rate": "%s", "link_layer": "InfiniBand"}'
)
DOCUMENT = '{"schema": "diag/infiniband/1", "present": true, "ports": [%s]}'
NDR = ("28.41.1000", "MT_0000000838", "400 Gb/sec (4X NDR)")
TWO_NDR = [PORT % ("mlx5_0", *NDR), PORT % ("mlx5_1", *NDR)]
ONE_OF_TWO_LANES = DOCUMENT % ", ".join(
    [*TWO_NDR, PORT % ("mlx5_4", "28.41.1000", "MT_0000000838", "200 Gb/sec (2X NDR)")]
)
ONE_OF_ANOTHER_CARD = DOCUMENT % ", ".join(
    [*TWO_NDR, PORT % ("mlx5_bond_0", "32.38.3056", "MT_0000000884", "200 Gb/sec (2X NDR)")]
)
SDR = """\
Infiniband device 'mlx5_11' port 1 status:
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 10 Gb/sec (4X SDR)
\tlink_layer:\t InfiniBand
"""
SDR_BUT_DOWN = """\
Infiniband device 'mlx5_0' port 1 status:
\tstate:\t\t 4: ACTIVE
\tphys state:\t 5: LinkUp
\trate:\t\t 100 Gb/sec (4X EDR)
\tlink_layer:\t Ethernet

Infiniband device 'mlx5_11' port 1 status:
\tstate:\t\t 1: DOWN
\tphys state:\t 3: Disabled
\trate:\t\t 10 Gb/sec (4X SDR)
\tlink_layer:\t InfiniBand
"""


@check(
    "network/port-slow",
    severity="warning",
    about="network",
    needs=(NetworkPort,),
    words={
        "en": {
            "title": "A port for RDMA is slower than the others",
            "summary": "{device} port {port} runs at {rate} Gb/s; expected {expected} Gb/s",
            "cause": "The link came up with fewer lanes or at a lower speed: a cable or module that cannot do more, a "
            "bad lane, or a port of the switch that is set so.",
        },
        "zh": {
            "title": "RDMA 端口速率低于其他端口",
            "summary": "{device} 端口 {port} 速率为 {rate} Gb/s，预期 {expected} Gb/s",
            "cause": "链路以较少的通道数或较低的速率建立：线缆或光模块不支持、某条通道故障，或交换机端口如此配置。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={
                "en": "See what the cable and the other side can do, and change the cable",
                "zh": "检查线缆与对端支持的速率，并更换线缆",
            },
            commands=("sudo mlxlink -d {device} -m", "ibstatus {device}"),
            safety="safe",
            verify="ibstatus {device}",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html",
        "https://github.com/NVIDIA/nccl/issues/1935",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical", "collectives/curve-collapses"),
    fires=(ONE_OF_TWO_LANES, SDR),
    silent=(ONE_OF_ANOTHER_CARD, SDR_BUT_DOWN),
)
def port_slow(facts: Facts) -> Iterator[Answer]:
    """Compare the rates of ports that are alike."""
    ports = [one for one in _ports(facts) if one.rate_gbps and one.state.upper().removeprefix("PORT_") == "ACTIVE"]
    if not ports:
        yield Undecided(reason="no rate of an active port is told")
    for port in ports:
        like = [one.rate_gbps or 0 for one in ports if _kind(one) == _kind(port)]
        best, rate = max(like), port.rate_gbps or 0
        slower = sum(one < best for one in like)
        uneven = any(_kind(port)[1:]) and like.count(best) > max(1, slower) and (slower == 1 or rate < best / 2)
        if rate < best and uneven:
            yield _finding(port, f"{best:g}")
        elif port.layer == "InfiniBand" and rate <= FALLBACK:
            yield _finding(port, f"> {FALLBACK:g}")


def _finding(port: NetworkPort, expected: str) -> Finding:
    values: dict[str, str | int] = {"device": port.device, "port": port.port, "expected": expected}
    values["rate"] = f"{port.rate_gbps:g}"
    subject = f"{port.device} port {port.port}"
    return Finding(subject=subject, values={**values}, confidence="medium", evidence=(Evidence.of(port),))


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
