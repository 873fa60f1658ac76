"""The ranks of a world did not find each other.

## What it finds
A measurement that ended before the ranks had met: one could not reach the address at which they meet, or did not come
there in time.

## Why it matters
An engine over several hosts would wait at the same place, and end with a time-out that names no cause.

## What it cannot know
Whether a firewall, a name or an interface stands between them. A host whose own name leads to 127.0.1.1, as Debian and
Ubuntu write into `/etc/hosts`, tells the others an address that is each one's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, CollectiveRank, CollectiveTrouble, CollectiveWorld, Evidence, Facts, Finding, Remedy, check

HEAD = (
    '{"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "launcher": "torchrun", '
    '"size": 16, '
)
STATE = '{"rank": %d, "phase": "%s", "entered": 0, "finished": 0, "pid": 7%d, "state": "", "ended": "%s"}'
MEETING = (
    HEAD
    + '"ranks": [], "results": [], "states": ['
    + STATE % (8, "meeting at 10.1.2.3:29500", 1, "exit code 1")
    + '], "trouble": {"kind": "unreachable", "reason": "meeting at 10.1.2.3:29500", "suspects": [8], "released": '
    "true}}\n"
)
MET = (
    HEAD
    + '"ranks": [{"rank": 0, "host": "a"}], "results": [], "states": ['
    + STATE % (8, "parting", 1, "exit code 0")
    + "]}\n"
)


@check(
    "collectives/rank-unreachable",
    severity="error",
    about="network",
    needs=(CollectiveWorld,),
    uses=(CollectiveRank, CollectiveTrouble),
    words={
        "en": {
            "title": "The ranks did not find each other",
            "summary": "{who} did not get past {reason}",
            "cause": "A firewall closes the port, the address is another interface's or another machine's, a host's "
            "own name "
            "leads to a loopback address (127.0.1.1), or a rank was never started.",
        },
        "zh": {
            "title": "各 rank 未能互相连接",
            "summary": "{who} 未能汇合，停在：{reason}",
            "cause": "防火墙封闭了端口、地址属于其他网卡或其他机器、主机名解析为回环地址（127.0.1.1），或有 rank 根本没"
            "有启动。",
        },
    },
    remedies=(
        Remedy(
            key="reach",
            title={
                "en": "Try the address and port from every host, and see what the hosts' names lead to",
                "zh": "在每台主机上测试该地址与端口，并查看主机名的解析结果",
            },
            commands=(
                "env | grep -E 'MASTER_ADDR|MASTER_PORT|WORLD_SIZE|SOCKET_IFNAME'",
                "getent hosts $(hostname) $MASTER_ADDR",
                'python3 -c \'import socket,os; socket.create_connection((os.environ["MASTER_ADDR"], '
                'int(os.environ["MASTER_PORT"])), 5)\'',
            ),
            safety="safe",
            source="https://docs.vllm.ai/en/latest/usage/troubleshooting/",
        ),
        Remedy(
            key="interface",
            title={"en": "Name the interface that the hosts share", "zh": "指定各主机互通的网卡"},
            commands=("ip -br addr", "export NCCL_SOCKET_IFNAME=INTERFACE GLOO_SOCKET_IFNAME=INTERFACE"),
            safety="safe",
            source="https://github.com/pytorch/pytorch/issues/68726",
        ),
        Remedy(
            key="firewall",
            title={
                "en": "Let the hosts reach each other on all ports: only the first is fixed",
                "zh": "放行主机之间的所有端口：只有第一个端口是固定的",
            },
            commands=("sudo iptables -S | head -30", "sudo firewall-cmd --list-all", "sudo ufw status"),
            safety="manual",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        ),
    ),
    sources=(
        "https://docs.vllm.ai/en/latest/usage/troubleshooting/",
        "https://github.com/pytorch/pytorch/issues/68726",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
    ),
    fires=(MEETING,),
    silent=(MET,),
)
def rank_unreachable(facts: Facts) -> Iterator[Answer]:
    """Each world that did not meet."""
    ranks = {one.rank: one for one in facts.all(CollectiveRank)}
    for trouble in (one for one in facts.all(CollectiveTrouble) if one.kind == "unreachable"):
        who = ", ".join(f"rank {rank}" for rank in trouble.suspects) or "?"
        about = [ranks[rank] for rank in trouble.suspects if rank in ranks]
        yield Finding(
            subject=who,
            values={"who": who, "reason": trouble.reason},
            confidence="medium",
            evidence=(Evidence.of(trouble), *map(Evidence.of, about[:4])),
        )
