"""`NCCL_IB_GID_INDEX` points to a row that a port does not have, or that is not RoCE v2.

## What it finds
The row of each RoCE port's table of GIDs that the variable names: it is not there, or it is RoCE v1 while the port has
RoCE v2. Ports that `NCCL_IB_HCA` leaves out, and those that are not active, are not judged.

## Why it matters
NCCL makes its connections with that row: without it the queue pair cannot be set up, and RoCE v1 is not routed.

## What it cannot know
Whether a flat network serves RoCE v1. Rows come and go with the addresses of the interface: row 3 is there once it has
an IPv4 address; in a pod the first rows can belong to the host.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Gid, NetworkPort, Remedy, Setting, Undecided, check

SHOW_GIDS = """\
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
DEVINFO = """\
hca_id: mlx5_bond_0
                port:   1
                        state:                  PORT_ACTIVE (4)
                        link_layer:             Ethernet
\t\t\tphys_state:\t\tLINK_UP (5)
\t\t\tGID[  0]:\t\tfe80:0000:0000:0000:0000:00ff:fe00:0001, RoCE v1
\t\t\tGID[  1]:\t\tfe80::ff:fe00:1, RoCE v2
\t\t\tGID[  2]:\t\t0000:0000:0000:0000:0000:ffff:c800:d106, RoCE v1
\t\t\tGID[  3]:\t\t::ffff:200.0.209.6, RoCE v2
"""


POD = """\
root@host-1:/# show_gids
DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV
---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---
mlx5_0\t1\t4\tfe80:0000:0000:0000:0000:00ff:fe00:0001\t\t\tv1\tnet1
mlx5_0\t1\t5\tfe80:0000:0000:0000:0000:00ff:fe00:0001\t\t\tv2\tnet1
mlx5_0\t1\t6\t0000:0000:0000:0000:0000:ffff:0a98:000c\t10.152.0.12  \tv1\tnet1
mlx5_0\t1\t7\t0000:0000:0000:0000:0000:ffff:0a98:000c\t10.152.0.12  \tv2\tnet1
"""


@check(
    "network/gid-index-wrong",
    severity="warning",
    about="network",
    needs=(Gid, Setting),
    uses=(NetworkPort,),
    words={
        "en": {
            "title": "NCCL_IB_GID_INDEX points to the wrong row",
            "summary": "NCCL_IB_GID_INDEX={index}: on {device} port {port} that row is {held.en}; {rows.en}",
            "cause": "The number was right on another machine: the rows depend on the addresses of the interface.",
        },
        "zh": {
            "title": "NCCL_IB_GID_INDEX 指向错误的 GID 行",
            "summary": "NCCL_IB_GID_INDEX={index}：{device} 端口 {port} 的该行为{held.zh}；{rows.zh}",
            "cause": "该序号适用于其他机器：GID 表的行取决于接口上配置的地址。",
        },
    },
    remedies=(
        Remedy(
            key="unset",
            title={
                "en": "Take it out where it is set (shell, container, manifest): NCCL 2.21 and later find the "
                "RoCE v2 row of each port",
                "zh": "在设置它的地方（shell、容器或 manifest）删除该变量："
                "NCCL 2.21 及以上会为每个端口自动选择 RoCE v2 行",
            },
            commands=("unset NCCL_IB_GID_INDEX",),
            safety="manual",
            verify="show_gids",
            source="https://www.juniper.net/documentation/us/en/software/jvd/jvd-ai-dc-evpn-multitenancy/appendix_d_how_to_run_nccl_tests_using_autoconfigured_ipv6_address.html",
        ),
        Remedy(
            key="leave-out",
            title={
                "en": "Or give the port's interface its address, or leave the port out",
                "zh": "或者为该端口的接口配置地址，或不使用该端口",
            },
            commands=("export NCCL_IB_HCA=^={device}",),
            safety="manual",
            verify="show_gids | grep {device}",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/769",
        "https://github.com/NVIDIA/nccl/issues/1573",
        "https://raw.githubusercontent.com/NVIDIA/nccl/v2.31.2-1/src/transport/net_ib/connect.cc",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    ),
    explains=("collectives/call-failed",),
    fires=(
        SHOW_GIDS + "export NCCL_IB_GID_INDEX=3\n",
        DEVINFO + "export NCCL_IB_GID_INDEX=2\n",
        POD + "export NCCL_IB_GID_INDEX=3\n",
    ),
    silent=(
        DEVINFO + "export NCCL_IB_GID_INDEX=3\n",
        SHOW_GIDS + "export NCCL_IB_GID_INDEX=1\n",
        POD + "export NCCL_IB_GID_INDEX=7\n",
    ),
)
def gid_index_wrong(facts: Facts) -> Iterator[Answer]:
    """Look at the row in each port's table."""
    setting = next((one for one in facts.all(Setting) if one.name == "NCCL_IB_GID_INDEX"), None)
    if setting is None or not setting.value.isdecimal():
        return
    index, tables = int(setting.value), _tables(facts)
    if not tables:
        yield Undecided(reason="no table of a RoCE port is told")
    for (device, port), rows in tables.items():
        row = next((one for one in rows if one.index == index), None)
        second = [one for one in rows if one.kind == "RoCE v2"]
        if row is None and len(second) == len(rows):
            yield Undecided(reason=f"only the RoCE v2 rows of {device} are told")
        elif row is None or (row.kind != "RoCE v2" and second):
            rows_v2 = ", ".join(str(one.index) for one in second)
            values: dict[str, str | int] = {"index": index, "device": device, "port": port}
            values |= {"held.en": row.kind if row else "empty", "held.zh": f" {row.kind}" if row else "空"}
            values["rows.en"] = f"RoCE v2 is in {rows_v2}" if second else "no row is RoCE v2"
            values["rows.zh"] = f"RoCE v2 位于 {rows_v2}" if second else "没有 RoCE v2 行"
            yield Finding(
                subject=f"{device} port {port}",
                values={**values},
                evidence=(Evidence.of(setting), *map(Evidence.of, ((row,) if row else rows[:4]))),
                confidence="high" if row else "medium",
            )


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
