"""This container or host has no network interface but the loopback.

## What it finds
The kernel's own list of interfaces holds the loopback, and beside it at most what the kernel makes by itself (tunnels,
dummies) and nobody can be reached through.

## Why it matters
No model can be downloaded and no second node reached; and some collective libraries (Kunlun's, Intel's) refuse to start
even on one machine, because they look for a card to bind to.

## What it cannot know
Whether the process to be started shares this network. A list that was pasted may be cut and is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Listing, NetworkInterface, Remedy, Undecided, check, expression

OWN = expression(r"lo\d*|(?:sit|gre|gretap|erspan|tunl|ip6tnl|ip6gre|ip_vti|ip6_vti|ifb|dummy|teql|bonding_masters)\d*")
"""What the kernel makes by itself."""

ALONE = (
    '{"schema": "diag/interfaces/1", "interfaces": [{"name": "lo", "state": "unknown", "mtu": 65536, '
    '"speed_mbps": null, "addressed": false}, {"name": "sit0", "state": "down", "mtu": 1480, "speed_mbps": null, '
    '"addressed": false}]}'
)
WITH_ETH0 = (
    '{"schema": "diag/interfaces/1", "interfaces": [{"name": "eth0", "state": "up", "mtu": 1400, "speed_mbps": null, '
    '"addressed": true}, {"name": "ifb0", "state": "down", "mtu": 1500, "speed_mbps": null, "addressed": false}, '
    '{"name": "lo", "state": "unknown", "mtu": 65536, "speed_mbps": null, "addressed": false}]}'
)


@check(
    "network/loopback-alone",
    severity="warning",
    about="network",
    needs=(NetworkInterface,),
    uses=(Listing,),
    words={
        "en": {
            "title": "There is no network interface but the loopback",
            "summary": "the interfaces are {names}: nothing outside can be reached",
            "cause": "The container was started with `--network none`, or its network was not set up.",
        },
        "zh": {
            "title": "除回环接口外没有任何网络接口",
            "summary": "现有接口为 {names}，无法访问外部网络",
            "cause": "容器以 `--network none` 启动，或其网络未配置成功。",
        },
    },
    remedies=(
        Remedy(
            key="bridge",
            title={
                "en": "Start the container with a network; an internal one is enough for a single machine",
                "zh": "为容器配置网络后重新启动；单机运行使用内部网络即可",
            },
            commands=("docker network create --internal serving", "docker run --network serving …"),
            safety="disruptive",
            verify="ls /sys/class/net",
            source="https://github.com/uxlfoundation/oneCCL/issues/157",
        ),
    ),
    sources=(
        "https://github.com/uxlfoundation/oneCCL/issues/157",
        "https://github.com/NVIDIA/nccl/issues/210",
        "https://github.com/intel/cc-oci-runtime/issues/953",
    ),
    explains=("collectives/rank-unreachable", "collectives/call-failed"),
    fires=(ALONE,),
    silent=(WITH_ETH0,),
)
def loopback_alone(facts: Facts) -> Iterator[Answer]:
    """Look for an interface that leads somewhere."""
    told = facts.all(NetworkInterface)
    if any(not OWN.fullmatch(one.name) for one in told):
        return
    if not facts.whole("NetworkInterface"):
        yield Undecided(reason="the list of interfaces may be cut")
        return
    names = ", ".join(sorted({one.name for one in told}))
    yield Finding(values={"names": names}, evidence=tuple(map(Evidence.of, told[:3])))
