"""An active RoCE port has no GID that reaches beyond its link, while another port of the machine has.

## What it finds
RoCE ports whose table of GIDs has no row of RoCE v2 with an address other than a link-local one (`fe80:`), beside ports
that have such a row. Ports that `NCCL_IB_HCA` leaves out, and those that are not active, are not judged.

## Why it matters
NCCL takes every active port it is not told to leave out; over this one the nodes cannot reach each other, and the
launch ends in a timeout.

## What it cannot know
Whether the port is for something else. On a flat network link-local addresses may do. Hence medium confidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Gid, NetworkPort, Remedy, Setting, Undecided, check

ONE_WITHOUT_ADDRESS = """\
$ show_gids
DEV     PORT    INDEX   GID                                     IPv4            VER     DEV
---     ----    -----   ---                                     ------------    ---     ---
mlx5_0  1       0       fe80:0000:0000:0000:0000:00ff:fe00:0001                 v1      ens1f0
mlx5_0  1       1       fe80:0000:0000:0000:0000:00ff:fe00:0001                 v2      ens1f0
mlx5_1  1       0       fe80:0000:0000:0000:0000:00ff:fe00:0002                 v1      ens1f1
mlx5_1  1       1       fe80:0000:0000:0000:0000:00ff:fe00:0002                 v2      ens1f1
mlx5_1  1       2       0000:0000:0000:0000:0000:ffff:0ac8:001c 10.200.0.28     v1      ens1f1
mlx5_1  1       3       0000:0000:0000:0000:0000:ffff:0ac8:001c 10.200.0.28     v2      ens1f1
"""
ALL_WITH_ADDRESS = """\
$ show_gids | grep v2
mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:c0a8:0101 192.168.1.1     v2      ens30f0np0
mlx5_1  1       3       0000:0000:0000:0000:0000:ffff:c0a8:0201 192.168.2.1     v2      ens30f1np1
"""


@check(
    "network/gid-missing",
    severity="warning",
    about="network",
    needs=(Gid,),
    uses=(NetworkPort, Setting),
    words={
        "en": {
            "title": "A RoCE port has no address that others reach",
            "summary": "{device} port {port}{interface.en} has no RoCE v2 GID beyond its link; {others} ports have one",
            "cause": "The network interface of the port has no IP address: the GIDs of RoCE are made from it.",
        },
        "zh": {
            "title": "RoCE 端口没有可被其他节点访问的地址",
            "summary": "{device} 端口 {port}{interface.zh}没有可路由的 RoCE v2 GID，另有 {others} 个端口有",
            "cause": "该端口的网络接口未配置 IP 地址，而 RoCE 的 GID 由 IP 地址生成。",
        },
    },
    remedies=(
        Remedy(
            key="address",
            title={
                "en": "Give the interface its address, as on the other ports",
                "zh": "参照其他端口为该接口配置地址",
            },
            commands=("ip -br addr show {interface}",),
            safety="manual",
            verify="show_gids | grep {device}",
            source="https://github.com/NVIDIA/nccl/issues/769",
        ),
        Remedy(
            key="leave-out",
            title={
                "en": "Or leave the port out",
                "zh": "或者不使用该端口",
            },
            commands=("export NCCL_IB_HCA=^={device}",),
            safety="manual",
            verify="NCCL_DEBUG=INFO prints `NET/IB : Using` without {device}",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/769",
        "https://github.com/getainode/ainode/releases/tag/v0.5.11",
        "https://github.com/uccl-project/uccl/pull/803",
    ),
    explains=("collectives/call-failed",),
    fires=(ONE_WITHOUT_ADDRESS,),
    silent=(ALL_WITH_ADDRESS, ONE_WITHOUT_ADDRESS + "export NCCL_IB_HCA==mlx5_1:1\n"),
)
def gid_missing(facts: Facts) -> Iterator[Answer]:
    """Compare the tables of the ports."""
    tables = _tables(facts)
    reached = {place for place, rows in tables.items() if any(map(_reaches, rows))}
    if not tables:
        yield Undecided(reason="no table of a RoCE port is told")
    elif not reached:
        yield Undecided(reason="no port has a GID beyond its link: whether RoCE is meant to be used is not known")
    for (device, port), rows in tables.items():
        if reached and (device, port) not in reached:
            values: dict[str, str | int] = {"device": device, "port": port, "others": len(reached)}
            interface = rows[0].interface
            values["interface"] = interface or "INTERFACE"
            values["interface.en"] = interface and f" ({interface})"
            values["interface.zh"] = f"（{interface}）" if interface else " "
            yield Finding(
                subject=f"{device} port {port}",
                values={**values},
                confidence="medium",
                evidence=tuple(map(Evidence.of, rows[:4])),
            )


def _reaches(row: Gid) -> bool:
    return row.kind == "RoCE v2" and not row.gid.startswith("fe80:")


def _tables(facts: Facts) -> dict[tuple[str, int], list[Gid]]:
    """The tables of ports that speak RoCE, are not known to be down, and are not left out."""
    ports = {(one.device, one.port): one for one in facts.all(NetworkPort) if one.layer or one.state}
    chosen = next((one.value for one in facts.all(Setting) if one.name == "NCCL_IB_HCA"), "")
    tables: dict[tuple[str, int], list[Gid]] = {}
    for row in facts.all(Gid):
        known = ports.get((row.device, row.port))
        ethernet = known.layer == "Ethernet" if known and known.layer else bool(row.interface)
        active = not known or known.state.upper().removeprefix("PORT_") in ("", "ACTIVE")
        if ethernet and active and row.kind and _used(row.device, chosen):
            tables.setdefault((row.device, row.port), []).append(row)
    return tables


def _used(device: str, chosen: str) -> bool:
    """Whether the value of `NCCL_IB_HCA` leaves an adapter in."""
    exact = "=" in chosen[:2]
    words = [word.strip().partition(":")[0] for word in chosen.lstrip("^=").split(",") if word.strip()]
    fits = any(device == word if exact else device.startswith(word) for word in words)
    return fits != chosen.startswith("^") if words else True
