"""A process may run on the CPUs of one NUMA node only, and devices sit on another.

## What it finds
An affinity (`Cpus_allowed_list`) that has no CPU of a NUMA node on which the bus shows an accelerator.

## Why it matters
The workers of the devices on that node run on CPUs far from them: each copy to and from the device, and each launch of
a kernel, crosses the link between the sockets.

## What it cannot know
Whether the launch uses those devices; whoever starts one rank for each node may bind each to its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    NumaNode,
    PciDevice,
    Remedy,
    Setting,
    Undecided,
    check,
)

LSCPU = """\
Architecture:                         x86_64
CPU(s):                               208
NUMA node(s):                         2
NUMA node0 CPU(s):                    0-103
NUMA node1 CPU(s):                    104-207
"""
BUS = """\
{"schema": "diag/pci/1", "devices": [{"address": "0000:1a:00.0", "vendor_id": "10de", "device_id": "2330", \
"class_id": "0302", "numa_node": 0}, {"address": "0000:9d:00.0", "vendor_id": "10de", "device_id": "2330", \
"class_id": "0302", "numa_node": 1}]}
"""
ALLOWED_NODE_0 = "Cpus_allowed_list:\t0-103\n"
ALLOWED_ALL = "Cpus_allowed_list:\t0-207\n"


@check(
    "host/affinity-leaves-node-out",
    severity="warning",
    about="host",
    needs=(NumaNode, PciDevice),
    uses=(Accelerator, Setting),
    words={
        "en": {
            "title": "The affinity leaves out the CPUs next to some devices",
            "summary": "processes may run on CPUs {allowed}; {devices} sit on NUMA node {node} with CPUs {cpus}",
            "cause": "A job scheduler, a container or numactl bound the process to the CPUs of another NUMA node.",
        },
        "zh": {
            "title": "CPU 亲和性排除了部分设备所在的 NUMA 节点",
            "summary": "进程只能在 CPU {allowed} 上运行，而 {devices} 位于 NUMA 节点 {node}（CPU {cpus}）",
            "cause": "作业调度系统、容器或 numactl 将进程绑定到了另一 NUMA 节点的 CPU 上。",
        },
    },
    remedies=(
        Remedy(
            key="all",
            title={
                "en": "Start the engine with CPUs of every node that has a device it uses",
                "zh": "启动引擎时包含其所用设备所在各节点的 CPU",
            },
            commands=("taskset -c {allowed},{cpus} <command>",),
            safety="disruptive",
            verify="grep Cpus_allowed_list /proc/self/status",
            source="https://github.com/NVIDIA/pyxis/issues/40",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/pyxis/issues/40",
        "https://github.com/huggingface/text-generation-inference/issues/1874",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical", "collectives/ranks-uneven"),
    fires=(LSCPU + BUS + ALLOWED_NODE_0,),
    silent=(LSCPU + BUS + ALLOWED_ALL,),
)
def affinity_leaves_node_out(facts: Facts) -> Iterator[Answer]:
    """Look for a node with devices and without an allowed CPU."""
    held = next((one for one in facts.all(Setting) if (one.kind, one.name) == ("limit", "cpus_allowed")), None)
    placed = [one for one in facts.all(PciDevice) if one.numa_node is not None and one.address in _addresses(facts)]
    if held is None or not placed:
        yield Undecided(reason="the CPUs a process may use and the NUMA nodes of the devices are not both told")
        return
    allowed = _listed(held.value)
    for node in facts.all(NumaNode):
        near = [one for one in placed if one.numa_node == node.node]
        if near and node.cpus and not allowed & _listed(node.cpus):
            names = ", ".join(one.address for one in near)
            yield Finding(
                values={"allowed": held.value, "devices": names, "node": node.node, "cpus": node.cpus},
                subject=f"NUMA node {node.node}",
                confidence="medium",
                evidence=(Evidence.of(held), Evidence.of(node), *map(Evidence.of, near[:2])),
            )


def _addresses(facts: Facts) -> set[str]:
    return {one.address for one in facts.all(Accelerator) if one.address}


def _listed(text: str) -> set[int]:
    """The CPUs that a list of the kernel names."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            cpus.update(range(int(first), min(int(last or first), 10**5) + 1))
    return cpus
