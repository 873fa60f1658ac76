"""`NCCL_IB_HCA` names adapters for RDMA that are not there.

## What it finds
A token of the variable (a prefix, after `=` an exact name, with a port after `:`) that fits none of the machine's
adapters. Lists that exclude (`^`) are not judged.

## Why it matters
NCCL passes over what it does not find; where nothing is left it sends over TCP, at a fraction of the bandwidth.

## What it cannot know
Whether the list is meant for several kinds of nodes. What is pasted may show some adapters only: it is judged where the
kernel's own list was read.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Listing, NetworkPort, Remedy, Setting, Undecided, check

ONE = (
    '{"schema": "diag/infiniband/1", "present": true, "ports": [{"device": "mlx5_0", "port": "1", '
    '"firmware": "28.41.1000", "board": "MT_0000000838", "interface": "", "state": "4: ACTIVE", '
    '"phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand"}, {"device": "mlx5_bond_0", '
    '"port": "1", "firmware": "32.38.3056", "board": "MT_0000000884", "interface": "", "state": "4: ACTIVE", '
    '"phys_state": "5: LinkUp", "rate": "200 Gb/sec (2X NDR)", "link_layer": "Ethernet"}]}\n'
)


@check(
    "network/adapter-missing",
    severity="warning",
    about="network",
    needs=(NetworkPort, Setting),
    uses=(Listing,),
    words={
        "en": {
            "title": "NCCL_IB_HCA names adapters that are not there",
            "summary": "NCCL_IB_HCA={value}: {missing} fits none of {names}; {left} of its names fit",
            "cause": "The list was made for another machine, or adapters are missing here or not passed into the "
            "container. NCCL passes over them without a word; where none fits it uses TCP.",
        },
        "zh": {
            "title": "NCCL_IB_HCA 指定的网卡不存在",
            "summary": "NCCL_IB_HCA={value}：{missing} 与现有网卡 {names} 均不匹配；其余 {left} 项匹配",
            "cause": "列表取自其他机器，或本机缺少该网卡、网卡未映射到容器中。NCCL 会静默忽略；全部不匹配则改用 TCP。",
        },
    },
    remedies=(
        Remedy(
            key="name",
            title={
                "en": "Name the adapters of this machine, exactly",
                "zh": "使用本机网卡的精确名称",
            },
            commands=("ls /sys/class/infiniband", "export NCCL_IB_HCA==ADAPTER:1,…"),
            safety="manual",
            verify="NCCL_DEBUG=INFO prints `NET/IB : Using` with the adapters",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ),
    ),
    sources=("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",),
    fires=(ONE + "export NCCL_IB_HCA=mlx5_100,mlx5_0\n", ONE + "export NCCL_IB_HCA==mlx5_bond\n"),
    silent=(
        ONE + "export NCCL_IB_HCA=mlx5\n",
        ONE + "export NCCL_IB_HCA==mlx5_0:1,mlx5_bond_0:1\n",
        ONE + "export NCCL_IB_HCA=^=mlx5_1,mlx5_4\n",
    ),
)
def adapter_missing(facts: Facts) -> Iterator[Answer]:
    """Compare the names asked for with those there are."""
    names = sorted({one.device for one in facts.all(NetworkPort)})
    if not facts.whole("NetworkPort"):
        yield Undecided(reason="whether these are all adapters is not told")
        return
    asked = {
        one.value: one for one in facts.all(Setting) if one.name == "NCCL_IB_HCA" and one.value[:1] not in ("", "^")
    }
    for setting in asked.values():
        exact = setting.value.startswith("=")
        words = [word.strip().partition(":")[0] for word in setting.value.lstrip("=").split(",") if word.strip()]
        missing = [
            word for word in words if not any(name == word if exact else name.startswith(word) for name in names)
        ]
        if missing:
            values = {"value": setting.value, "missing": ", ".join(missing), "names": ", ".join(names)}
            yield Finding(
                values={**values, "left": len(words) - len(missing)},
                evidence=(Evidence.of(setting), *map(Evidence.of, facts.all(NetworkPort)[:2])),
            )
