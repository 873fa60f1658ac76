"""A process may lock little memory, on a machine with an adapter that does RDMA.

## What it finds
A limit of locked memory (`ulimit -l`) of 64 MiB or less, where a port of such an adapter is up or its state is not
told. Without such a port a small limit is normal and nothing is found.

## Why it matters
RDMA pins the memory it sends from. The collective library cannot register its buffers and the launch over several nodes
fails: "Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory".

## What it cannot know
Whether the engine is started from this shell or by something with other limits (systemd, a container, Slurm), and
whether it will use the adapter: on one node it need not. Root outside a container is not bound by the limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from diag.api import Answer, Container, Evidence, Facts, Finding, NetworkPort, Remedy, Setting, Undecided, User, check

ENOUGH = 64 * 2**20
"""Bytes: the larger of the defaults that distributions give; what really suffices grows with the number of peers."""
OBSERVED = 8192 * 2**10
"""The limit at which a maintainer's thread shows the failure."""
BYTES = {"KiB": 2**10, "B": 1}

PORT = """\
# rdma link show
link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev p1p1
link mlx5_1/1 state ACTIVE physical_state LINK_UP netdev p1p2
"""
PORT_DOWN = """\
CA 'mlx5_10'
    CA type: MT4129
    Number of ports: 1
    Firmware version: 28.39.1002
    Hardware version: 0
    Port 1:
        State: Down
        Physical state: Polling
        Rate: 10
        Base lid: 868
        LMC: 0
        SM lid: 334
        Capability mask: 0xa751e848
        Link layer: InfiniBand
"""
ULIMIT_64 = """\
$ ulimit -a
core file size          (blocks, -c) 0
data seg size           (kbytes, -d) unlimited
scheduling priority             (-e) 0
pending signals                 (-i) 1030810
max locked memory       (kbytes, -l) 64
max memory size         (kbytes, -m) unlimited
open files                      (-n) 1024
stack size              (kbytes, -s) 8192
max user processes              (-u) 1030810
"""
ULIMIT_UNLIMITED = """\
$ ulimit -a
core file size          (blocks, -c) 0
data seg size           (kbytes, -d) unlimited
pending signals                 (-i) 1031351
max locked memory       (kbytes, -l) unlimited
open files                      (-n) 4096
max user processes              (-u) 4096
"""
PROC_8_MIB = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             96365                96365                processes
Max open files            20000                20000                files
Max locked memory         8388608              8388608              bytes
"""


@check(
    "host/memlock-small",
    severity="warning",
    about="host",
    needs=(NetworkPort,),
    uses=(Container, Setting, User),
    words={
        "en": {
            "title": "The limit of locked memory is too small for RDMA",
            "summary": "a process may lock {mib} MiB; {device} is up, and RDMA needs this limit to be unlimited",
            "cause": "RDMA pins the memory it registers. The default limit of a shell, a unit or a container is "
            "far below what collective libraries register, so that a launch over several nodes fails with 'Cannot "
            "allocate memory'.",
        },
        "zh": {
            "title": "锁定内存上限过小，RDMA 无法正常使用",
            "summary": "进程最多只能锁定 {mib} MiB 内存；{device} 已启用，RDMA 要求该上限为 unlimited",
            "cause": "RDMA 注册内存时需要将其锁定。shell、systemd 单元或容器的默认上限远小于集合通信库所需，"
            "跨节点启动会以 “Cannot allocate memory” 失败。",
        },
    },
    remedies=(
        Remedy(
            key="container",
            title={
                "en": "Start the container without the limit",
                "zh": "启动容器时取消该限制",
            },
            commands=("docker run --ulimit memlock=-1 …",),
            safety="disruptive",
            verify="ulimit -l",
            source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html",
        ),
        Remedy(
            key="host",
            title={
                "en": "On the host: lift the limit for users, then log in again (a systemd unit needs "
                "LimitMEMLOCK=infinity)",
                "zh": "在主机上：为用户取消该限制，然后重新登录（systemd 单元需设置 LimitMEMLOCK=infinity）",
            },
            commands=(
                r"printf '* soft memlock unlimited\n* hard memlock unlimited\n' | "
                "sudo tee /etc/security/limits.d/rdma.conf",
            ),
            safety="manual",
            verify="ulimit -l",
            source="https://docs.redhat.com/zh-cn/documentation/Red_Hat_Enterprise_Linux/7/html/networking_guide/"
            "sec-relaxing_memlock_restrictions_for_users",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl-tests/issues/206",
        "https://github.com/openucx/ucx/issues/8229",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/runtime_and_mpi_issues.html",
    ),
    explains=("collectives/call-failed",),
    fires=(PORT + ULIMIT_64, PORT + PROC_8_MIB),
    silent=(PORT + ULIMIT_UNLIMITED, PORT_DOWN + ULIMIT_64),
)
def memlock_small(facts: Facts) -> Iterator[Answer]:
    """Compare the limit with what a shell has by default, where a port is up."""
    ports = [one for one in facts.all(NetworkPort) if not one.state or "active" in one.state.lower()]
    if not ports:
        return
    limits = [one for one in facts.all(Setting) if one.kind == "limit" and one.name == "memlock"]
    told = [(size, one) for one in limits if (size := _bytes(one)) is not None]
    if _is_root(facts):
        yield Undecided(reason="root is not bound by the limit, and whoever starts the engine may be another user")
    elif not told:
        yield Undecided(reason="the limit of locked memory is not told")
    elif (smallest := min(told, key=lambda one: one[0]))[0] <= ENOUGH:
        size, limit = smallest
        port = next((one for one in ports if one.state), ports[0])
        agreed = all(one[0] <= ENOUGH for one in told)
        sure: Literal["high", "medium"] = "high" if port.state and size <= OBSERVED else "medium"
        yield Finding(
            values={"mib": f"{size / 2**20:.4g}", "device": port.device},
            confidence=sure if agreed else "low",
            evidence=(Evidence.of(limit), Evidence.of(port)),
        )


def _bytes(limit: Setting) -> float | None:
    if limit.value == "unlimited":
        return float("inf")
    scale = BYTES.get(limit.unit)
    return int(limit.value) * scale if scale and limit.value.isdecimal() else None


def _is_root(facts: Facts) -> bool:
    """Whether it was root who asked, with all rights that root has on a host."""
    inside = any(one.inside for one in facts.all(Container))
    return not inside and any(one.uid == 0 for one in facts.all(User))
