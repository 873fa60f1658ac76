"""The kernel moves memory between NUMA nodes by itself, on a machine with accelerators on several nodes' sides.

## What it finds
`kernel.numa_balancing` that is not 0, where there are two NUMA nodes with CPUs or more and an accelerator. On a machine
with AMD accelerators another check says it, as a warning.

## Why it matters
To see which node uses a page the kernel takes its mapping away for a moment. Threads that feed a device stall for
milliseconds, and loading large models onto devices was seen to stop.

## What it cannot know
How much a launch suffers: it is the default of most distributions, and engines that run on the CPUs may gain by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, NumaNode, Remedy, Setting, Undecided, check, devices

LSCPU_2 = """\
Architecture:                         x86_64
CPU(s):                               208
NUMA node(s):                         2
NUMA node0 CPU(s):                    0-103
NUMA node1 CPU(s):                    104-207
"""
LSCPU_1 = """\
Architecture:                            x86_64
CPU(s):                                  2
NUMA node(s):                            1
NUMA node0 CPU(s):                       0,1
"""
GPU = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)\n"
ON = "$ sysctl -a | grep numa_balancing\nkernel.numa_balancing = 1\n"
OFF = "kernel.numa_balancing = 0\nkernel.numa_balancing_scan_delay_ms = 1000\n"


def _elsewhere(facts: Facts) -> str:
    """Whether the other check judges this machine."""
    of_amd = any(one.vendor == "amd" and one.seen_by in ("tool", "torch") for one in devices(facts))
    return "this machine has AMD accelerators: host/numa-balancing-beside-amd judges it" if of_amd else ""


@check(
    "host/numa-balancing-on",
    severity="info",
    about="host",
    needs=(Accelerator, Setting),
    uses=(NumaNode,),
    applies=_elsewhere,
    words={
        "en": {
            "title": "The kernel's automatic NUMA balancing is on",
            "summary": "kernel.numa_balancing is {value} on a machine with {nodes} NUMA nodes; 0 is asked for where "
            "latency matters",
            "cause": "It is the default of most distributions. The kernel unmaps pages to see who uses them, which "
            "stalls the threads that feed the devices.",
        },
        "zh": {
            "title": "内核自动 NUMA 平衡处于开启状态",
            "summary": "kernel.numa_balancing 为 {value}，机器有 {nodes} 个 NUMA 节点；对时延敏感的负载应设为 0",
            "cause": "这是多数发行版的默认设置。内核通过取消页面映射来观察访问者，会使向设备提交任务的线程停顿。",
        },
    },
    remedies=(
        Remedy(
            key="off",
            title={
                "en": "Switch it off until the next restart, and measure",
                "zh": "临时关闭（重启后恢复）并测量效果",
            },
            commands=("sudo sysctl kernel.numa_balancing=0",),
            safety="safe",
            verify="cat /proc/sys/kernel/numa_balancing",
            source="https://github.com/deepseek-ai/DeepEP/pull/644",
        ),
    ),
    sources=(
        "https://github.com/deepseek-ai/DeepEP/issues/624",
        "https://github.com/deepseek-ai/DeepEP/pull/644",
        "https://github.com/ollama/ollama/issues/6425",
        "https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html",
    ),
    fires=(LSCPU_2 + GPU + ON,),
    silent=(LSCPU_2 + GPU + OFF, LSCPU_1 + GPU + ON),
)
def numa_balancing_on(facts: Facts) -> Iterator[Answer]:
    """Look at the setting where it can cost something."""
    setting = next((one for one in facts.all(Setting) if one.name == "kernel.numa_balancing"), None)
    nodes = {one.node for one in facts.all(NumaNode) if one.cpus}
    if setting is None or (setting.value != "0" and not nodes):
        yield Undecided(reason="kernel.numa_balancing and the NUMA nodes are not both told")
    elif setting.value != "0" and len(nodes) > 1:
        yield Finding(values={"value": setting.value, "nodes": len(nodes)}, evidence=(Evidence.of(setting),))
