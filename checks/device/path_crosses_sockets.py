"""Tensor parallelism runs over devices whose path leads from one processor socket to another.

## What it finds
A launch with tensor parallelism over two or more devices, a matrix in which some pair of the devices it will take is
joined by way of both sockets (SYS), and no pair of them by a fast link.

## Why it matters
Each layer ends with an all-reduce; across sockets it has a fraction of the bandwidth, and the first tokens are late.

## What it cannot know
Which devices the launch takes where a variable names them by UUID: the first ones are assumed. Where no device has a
fast link there may be no better choice. Hence information only.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Link,
    Remedy,
    Setting,
    Undecided,
    check,
    count,
    expression,
)

FAST = expression(r"NV\d{1,3}|XGMI|HCCS\w{0,4}")
FAR = ("SYS", "SOC")
FLAGS = ("tensor-parallel-size", "tp-size", "tp")

MATRIX = """\
        GPU0    GPU1    GPU2    GPU3    NIC0    NIC1    NIC2    NIC3    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NODE    SYS     SYS     NODE    NODE    SYS     SYS     0-31    0               N/A
GPU1    NODE     X      SYS     SYS     NODE    NODE    SYS     SYS     0-31    0               N/A
GPU2    SYS     SYS      X      NODE    SYS     SYS     NODE    NODE    32-63   1               N/A
GPU3    SYS     SYS     NODE     X      SYS     SYS     NODE    NODE    32-63   1               N/A
"""


@check(
    "device/path-crosses-sockets",
    severity="info",
    about="device",
    needs=(LaunchArguments, Link),
    uses=(Setting,),
    words={
        "en": {
            "title": "Tensor parallelism crosses the processor sockets",
            "summary": "{flag}={size} takes devices {taken}, of which {pairs} are joined across sockets",
            "cause": "The devices hang on different processors and have no fast link; what they exchange goes over PCI "
            "Express and the link between the sockets.",
        },
        "zh": {
            "title": "张量并行跨越 CPU 插槽",
            "summary": "{flag}={size} 使用设备 {taken}，其中 {pairs} 跨 CPU 插槽互联",
            "cause": "这些设备连接在不同的处理器上且没有高速互联，数据交换需经过 PCIe 与处理器间链路。",
        },
    },
    remedies=(
        Remedy(
            key="choose",
            title={
                "en": "Take devices of one socket, or split by pipeline or data parallelism between the sockets",
                "zh": "使用同一插槽的设备，或在插槽之间改用流水线并行或数据并行",
            },
            commands=("nvidia-smi topo -m",),
            safety="manual",
            verify="nvidia-smi topo -m",
            source="https://github.com/vllm-project/vllm/issues/4238",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/issues/4238", "https://github.com/NVIDIA/nccl/issues/1617"),
    fires=(MATRIX + "vllm serve m --tensor-parallel-size 4\n",),
    silent=(MATRIX + "vllm serve m --tensor-parallel-size 2\n",),
)
def path_crosses_sockets(facts: Facts) -> Iterator[Answer]:
    """Look at the pairs among the devices that the launch takes."""
    links = {(one.first, one.second): one for one in facts.all(Link) if one.second.startswith("GPU")}
    if not links:
        yield Undecided(reason="no matrix of links between devices is told")
    told = set[int]()
    for launch in facts.all(LaunchArguments):
        flag, size = next(
            ((name, ranks) for name, value in launch.flags if name in FLAGS and (ranks := count(value))), ("", 1)
        )
        if not links or size < 2 or size in told:
            continue
        told.add(size)
        there = range(len({one.first for one in links.values()} | {one.second for one in links.values()}))
        taken = [f"GPU{number}" for number in (_visible(facts, launch) or there)[:size]]
        among = [one for (first, second), one in links.items() if first in taken and second in taken]
        far = [one for one in among if one.kind in FAR]
        if far and not any(FAST.fullmatch(one.kind) for one in among):
            pairs = ", ".join(f"{one.first}-{one.second}" for one in far[:4])
            values: dict[str, str | int] = {"flag": flag, "size": size, "taken": " ".join(taken), "pairs": pairs}
            evidence = (Evidence.of(launch), *map(Evidence.of, far[:3]))
            yield Finding(subject=f"tp {size}", values={**values}, evidence=evidence)


def _visible(facts: Facts, launch: LaunchArguments) -> list[int]:
    """The devices that a variable lets the launch see, empty where none does."""
    told = {one.name: one.value for one in facts.all(Setting) if one.kind == "environment"} | dict(launch.environment)
    words = told.get("CUDA_VISIBLE_DEVICES", "").split(",")
    numbers = [count(word) for word in words]
    return [number for number in numbers if number is not None] if None not in numbers else []
