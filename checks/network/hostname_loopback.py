"""The machine's own name leads to a loopback address, where ranks are on several hosts.

## What it finds
A table of hosts that has the machine's own name at `127.…`, no variable that names Gloo's interface, and a sign of
several hosts: `MASTER_ADDR` of another one, a launch over several nodes, ranks that did not find each other.

## Why it matters
Gloo looks its own name up and offers the others the address that it finds. Each of them connects to itself: the process
group fails with "connection refused", or waits for ever.

## What it cannot know
What a name server says. Ranks on one host may well meet on the loopback.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    CollectiveTrouble,
    CollectiveWorld,
    Evidence,
    Facts,
    Finding,
    HostName,
    LaunchArguments,
    Remedy,
    Setting,
    check,
    several_hosts,
)

NAMED = "GLOO_SOCKET_IFNAME"

TABLE = "127.0.0.1\tlocalhost\n127.0.1.1\tnode1\n"
SEVERAL = TABLE + "export MASTER_ADDR=10.1.2.3\nexport WORLD_SIZE=16\n"
LIVE = '{"schema": "diag/interfaces/1", "interfaces": [], "own_name": "127.0.1.1"}\nexport MASTER_ADDR=10.1.2.3\n'
ALONE = TABLE + "export MASTER_ADDR=127.0.0.1\n"
INTERFACE = SEVERAL + "export GLOO_SOCKET_IFNAME=ens8f0np0\n"


@check(
    "network/hostname-loopback",
    severity="warning",
    about="network",
    needs=(HostName,),
    uses=(CollectiveTrouble, CollectiveWorld, LaunchArguments, Setting),
    words={
        "en": {
            "title": "The host's own name leads to a loopback address",
            "summary": "the host's own name leads to {address}: ranks on other hosts are told an address of their own",
            "cause": "Debian and Ubuntu write the name at 127.0.1.1 into /etc/hosts, and some containers at 127.0.0.1.",
        },
        "zh": {
            "title": "本机主机名解析为回环地址",
            "summary": "本机主机名指向 {address}：其他主机上的 rank 会连接到它们自己",
            "cause": "Debian 与 Ubuntu 会在 /etc/hosts 中把主机名写到 127.0.1.1，某些容器则写到 127.0.0.1。",
        },
    },
    remedies=(
        Remedy(
            key="interface",
            title={
                "en": "Name the interface that the hosts share, on each of them",
                "zh": "在每台主机上指定互通的网卡",
            },
            commands=("ip -br addr", "export GLOO_SOCKET_IFNAME=INTERFACE"),
            safety="safe",
            source="https://github.com/aws-samples/aws-do-eks/pull/69",
        ),
        Remedy(
            key="table",
            title={
                "en": "Or put the address that the others reach into the table of hosts",
                "zh": "或在 /etc/hosts 中写入其他主机可到达的地址",
            },
            commands=("getent hosts $(hostname)", "sudo sed -i 's/^127.0.1.1 /ADDRESS /' /etc/hosts"),
            safety="manual",
            verify="getent hosts $(hostname)",
            source="https://github.com/pytorch/pytorch/pull/8664",
        ),
    ),
    sources=(
        "https://github.com/pytorch/pytorch/pull/8664",
        "https://github.com/pytorch/pytorch/issues/68726",
        "https://github.com/aws-samples/aws-do-eks/pull/69",
    ),
    explains=("collectives/rank-unreachable", "collectives/call-failed", "collectives/gloo-peers-unreachable"),
    fires=(SEVERAL, LIVE),
    silent=(ALONE, INTERFACE),
)
def hostname_loopback(facts: Facts) -> Iterator[Answer]:
    """Where the name leads, and whether that matters here."""
    found = next((one for one in facts.all(HostName) if one.leads == "loopback"), None)
    settings = facts.environment()
    if found is None or NAMED in settings or not several_hosts(facts):
        return
    yield Finding(values={"address": found.address}, confidence="medium", evidence=(Evidence.of(found),))
