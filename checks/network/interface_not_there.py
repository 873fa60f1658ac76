"""A variable makes a collective library use a network interface that is not there.

## What it finds
`NCCL_SOCKET_IFNAME` and `HCCL_SOCKET_IFNAME` (prefixes, exact names after `=`) of which none fits an interface, and a
name in `GLOO_SOCKET_IFNAME` or `TP_SOCKET_IFNAME` (whole names) that no interface has. A list that excludes (`^`) is
right for NCCL and HCCL, and for Gloo a name that nobody has.

## Why it matters
The library finds no address to bind to, and the process group is not made.

## What it cannot know
Whether the interface leads to the other nodes; and of a pasted list whether it is whole, hence medium confidence there:
it has `lo` and two more, or `ip` numbers it from 1 without a gap.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    Listing,
    NetworkInterface,
    Remedy,
    Setting,
    Undecided,
    check,
    expression,
)

PREFIXES = ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME")
NUMBER = expression(r"\W*([0-9]{1,6}): ")
NAMES = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")

IP_ADDR = """\
(base) root@host:~# ip addr
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: ens8f0np0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc mq master bond0 state UP group default qlen 1000
    altname enp151s0f0np0
3: ens8f1np1: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 1500 qdisc mq master bond0 state UP group default qlen 1000
    altname enp151s0f1np1
4: ens16f0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN group default qlen 1000
    altname enp50s0f0
"""
TWO = """\
$ ip addr
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
    inet 10.1.2.3/24 brd 10.1.2.255 scope global eth0
"""
LIVE = (
    '{"schema": "diag/interfaces/1", "interfaces": [{"name": "eth0", "state": "up", "mtu": 1400, "speed_mbps": null, '
    '"addressed": true}, {"name": "lo", "state": "unknown", "mtu": 65536, "speed_mbps": null, "addressed": false}]}\n'
)


@check(
    "network/interface-not-there",
    severity="error",
    about="network",
    needs=(NetworkInterface, Setting),
    uses=(Listing,),
    words={
        "en": {
            "title": "A variable names a network interface that is not there",
            "summary": "{variable}={value}, but the interfaces are {names}",
            "cause": "The name was copied from another machine or guide, or the container sees other interfaces than "
            "the host.",
        },
        "zh": {
            "title": "环境变量指定的网络接口不存在",
            "summary": "{variable}={value}，而现有接口为 {names}",
            "cause": "接口名取自其他机器或文档，或者容器内看到的接口与主机不同。",
        },
    },
    remedies=(
        Remedy(
            key="name",
            title={
                "en": "Name the interface that has the address the other nodes reach",
                "zh": "改为持有可被其他节点访问的地址的接口",
            },
            commands=("ip -br addr", "export {variable}=INTERFACE"),
            safety="manual",
            verify="ip -br addr show INTERFACE",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
        Remedy(
            key="unset",
            title={
                "en": "Or take it out where it is set (shell, container, manifest) and let the library choose",
                "zh": "或者在设置它的地方（shell、容器或 manifest）删除该变量，由库自行选择",
            },
            commands=("unset {variable}",),
            safety="manual",
            verify="env | grep SOCKET_IFNAME",
            source="https://github.com/NVIDIA/nccl/issues/286",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        "https://github.com/NVIDIA/nccl/issues/1837",
        "https://github.com/aws-samples/aws-do-eks/pull/51",
        "https://www.hiascend.com/document/detail/zh/CANNCommunityEdition/83RC1/maintenref/envvar/envref_07_0075.html",
        "https://github.com/Alibaba-NLP/DeepResearch/issues/107",
    ),
    explains=("collectives/rank-unreachable", "collectives/call-failed"),
    fires=(
        IP_ADDR + "export NCCL_SOCKET_IFNAME=eth0\n",
        "export NCCL_SOCKET_IFNAME=eth7\n" + TWO,
        LIVE + "export GLOO_SOCKET_IFNAME=^lo,docker,veth,eni\n",
        LIVE + "export HCCL_SOCKET_IFNAME==enp67s0f5\n",
    ),
    silent=(
        IP_ADDR + "export NCCL_SOCKET_IFNAME=ens8,eth\n",
        "export NCCL_SOCKET_IFNAME=eth\n" + TWO,
        LIVE + "export NCCL_SOCKET_IFNAME=^lo,docker,veth,eni\nexport GLOO_SOCKET_IFNAME=eth0\n",
    ),
)
def interface_not_there(facts: Facts) -> Iterator[Answer]:
    """Compare the names asked for with those there are."""
    told = sorted({one.name for one in facts.all(NetworkInterface)})
    whole = facts.whole("NetworkInterface")
    asked = {one.name: one for one in facts.all(Setting) if one.name in (*PREFIXES, *NAMES) and one.value}
    if not whole and ("lo" not in told or (len(told) < 3 and not _numbered(facts))):
        yield Undecided(reason="the list of interfaces may be cut")
        return
    for setting in asked.values():
        if not _there(setting, told):
            values = {"variable": setting.name, "value": setting.value, "names": ", ".join(told)}
            evidence = (Evidence.of(setting), *map(Evidence.of, facts.all(NetworkInterface)[:3]))
            yield Finding(
                subject=setting.name,
                values={**values},
                confidence="high" if whole else "medium",
                evidence=evidence,
            )


def _numbered(facts: Facts) -> bool:
    """Whether the interfaces of a paste are numbered from 1 (`lo`) on without a gap, as `ip` lists all of them."""
    numbers = [NUMBER.match(one.origin.quote) for one in facts.all(NetworkInterface)]
    told = sorted({int(one[1]) for one in numbers if one})
    return len(told) > 1 and all(numbers) and told == [*range(1, len(told) + 1)]


def _there(setting: Setting, told: list[str]) -> bool:
    """Whether the variable's value leads to an interface."""
    words = [word.strip().partition(":")[0] for word in setting.value.lstrip("=").split(",")]
    if setting.name in NAMES:
        return all(word in told for word in setting.value.split(","))
    if setting.value.startswith("^"):
        return True
    if setting.value.startswith("="):
        return any(word in told for word in words)
    return any(name.startswith(word) for word in words for name in told if word)
