"""A variable makes a collective library use an interface that leads to no other host.

## What it finds
`NCCL_SOCKET_IFNAME`, `HCCL_SOCKET_IFNAME`, `BKCL_SOCKET_IFNAME` (prefixes, exact names after `=`), `GLOO_SOCKET_IFNAME`
or `TP_SOCKET_IFNAME` of which every interface that fits is a bridge or tunnel of this host alone: of Docker, libvirt or
a container network. The loopback is one as well where ranks are on several hosts.

## Why it matters
Each host offers the others an address that is its own: they wait for each other until a time-out, or connect to
themselves.

## What it cannot know
Whether somebody routes such a network between hosts on purpose. A prefix is judged by the interfaces that are told.
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
    LaunchArguments,
    NetworkInterface,
    Remedy,
    Setting,
    Undecided,
    check,
    expression,
    several_hosts,
)

PREFIXES = ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", "BKCL_SOCKET_IFNAME")
NAMES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
LOCAL = expression(r"docker\d*|virbr\d{1,3}(?:-nic)?|br-[0-9a-f]{12}|veth\w{1,20}|cni\d{1,2}|lxcbr\d|podman\d|cbr\d")
LOOP = expression(r"lo\d{0,2}")

DOCKER = "export NCCL_SOCKET_IFNAME=docker0\nexport NCCL_IB_DISABLE=1\n"
LOOPBACK = "export MASTER_ADDR=10.1.2.3\nexport GLOO_SOCKET_IFNAME=lo\n"
ONE_HOST = "export MASTER_ADDR=127.0.0.1\nexport GLOO_SOCKET_IFNAME=lo\n"
EXCLUDED = "export NCCL_SOCKET_IFNAME=^docker0,lo\nexport GLOO_SOCKET_IFNAME=ens8f0np0\n"


@check(
    "network/interface-local",
    severity="warning",
    about="network",
    needs=(Setting,),
    uses=(CollectiveTrouble, CollectiveWorld, LaunchArguments, NetworkInterface),
    words={
        "en": {
            "title": "A variable names a network interface that leads to no other host",
            "summary": "{variable}={value} makes the ranks meet over {names}",
            "cause": "The name of the first interface was copied, or a prefix fits one that containers use.",
        },
        "zh": {
            "title": "环境变量指定的网络接口无法到达其他主机",
            "summary": "{variable}={value} 使各 rank 经 {names} 通信",
            "cause": "复制了第一个接口的名称，或前缀匹配到了容器使用的接口。",
        },
    },
    remedies=(
        Remedy(
            key="name",
            title={
                "en": "Name the interface whose address the other hosts reach, or leave these out",
                "zh": "改为其他主机可到达的接口，或排除这些接口",
            },
            commands=("ip -br addr", "export {variable}=INTERFACE", "export NCCL_SOCKET_IFNAME=^docker,lo,virbr"),
            safety="manual",
            verify="ip -br addr show INTERFACE",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html",
        "https://github.com/stas00/ml-engineering/blob/744d01e18b79/network/debug/README.md",
    ),
    explains=("collectives/rank-unreachable", "collectives/rank-silent", "collectives/call-failed"),
    fires=(DOCKER, LOOPBACK),
    silent=(ONE_HOST, EXCLUDED),
)
def interface_local(facts: Facts) -> Iterator[Answer]:
    """Each variable, and the interfaces that it leads to."""
    settings = facts.environment()
    asked = [settings[name] for name in (*PREFIXES, *NAMES) if name in settings and settings[name].value]
    if not asked:
        yield Undecided(reason="no variable names an interface")
    several = several_hosts(facts)
    for setting in asked:
        names = _taken(setting, sorted({one.name for one in facts.all(NetworkInterface)}))
        if names and all(LOCAL.fullmatch(name) or (several and LOOP.fullmatch(name)) for name in names):
            yield Finding(
                subject=setting.name,
                values={"variable": setting.name, "value": setting.value, "names": ", ".join(names)},
                confidence="high" if several else "medium",
                evidence=(Evidence.of(setting),),
            )


def _taken(setting: Setting, told: list[str]) -> list[str]:
    """The interfaces that a value leads to: those told that fit, else the words themselves."""
    if setting.value.startswith("^"):
        return []
    exact = setting.value.startswith("=") or setting.name in NAMES
    words = [word.strip().partition(":")[0] for word in setting.value.lstrip("=").split(",") if word.strip()]
    fitting = [name for name in told for word in words if name == word or (not exact and name.startswith(word))]
    return fitting or words
