"""The kernel moves memory between NUMA nodes by itself, on a machine with AMD accelerators.

## What it finds
`kernel.numa_balancing` that is not 0, as the setting or as AMD's kernel library reports it, with AMD accelerators;
not where the NUMA nodes are told and there is one.

## Why it matters
AMD asks for 0 on machines with its accelerators: its own library warns that balancing "may cause errors", and the
performance of collectives and of loading suffers.

## What it cannot know
How much a launch suffers.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Answer, Evidence, Facts, Finding, NumaNode, Remedy, Setting, Undecided, check, devices

AITER = (
    "(APIServer pid=53764) [aiter] WARNING: NUMA balancing is enabled, which may cause errors. It is recommended to "
    "disable NUMA balancing by running \"sudo sh -c 'echo 0 > /proc/sys/kernel/numa_balancing'\" for more details: "
    "https://rocm.docs.amd.com/en/latest/how-to/system-optimization/mi300x.html#disable-numa-auto-balancing\n"
)
MI300X = """\
PyTorch version: 2.6.0.dev20240918+rocm6.2
Is debug build: False
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: 6.2.41133-dd7f95766
Is CUDA available: True
GPU models and configuration: AMD Instinct MI300X (gfx942:sramecc+:xnack-)
Architecture:                         x86_64
CPU(s):                               128
NUMA node(s):                         2
NUMA node0 CPU(s):                    0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,\
50,52,54,56,58,60,62,64,66,68,70,72,74,76,78,80,82,84,86,88,90,92,94,96,98,100,102,104,106,108,110,112,114,\
116,118,120,122,124,126
NUMA node1 CPU(s):                    1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43,45,47,49,\
51,53,55,57,59,61,63,65,67,69,71,73,75,77,79,81,83,85,87,89,91,93,95,97,99,101,103,105,107,109,111,113,115,\
117,119,121,123,125,127
"""
ON = "$ sysctl -a | grep numa_balancing\nkernel.numa_balancing = 1\n"
OFF = "kernel.numa_balancing = 0\nkernel.numa_balancing_scan_delay_ms = 1000\n"


@check(
    "host/numa-balancing-beside-amd",
    severity="warning",
    about="amd",
    needs=(Setting,),
    uses=(Accelerator, NumaNode),
    words={
        "en": {
            "title": "Automatic NUMA balancing is on beside AMD accelerators",
            "summary": "kernel.numa_balancing is {value}; AMD asks for 0",
            "cause": "It is the default of most distributions. The kernel unmaps pages to see who uses them, which "
            "stalls the threads that feed the devices and the copies to them.",
        },
        "zh": {
            "title": "使用 AMD 加速器的机器开启了自动 NUMA 平衡",
            "summary": "kernel.numa_balancing 为 {value}，AMD 要求设为 0",
            "cause": "这是多数发行版的默认设置。内核通过取消页面映射来观察访问者，"
            "会使向设备提交任务的线程以及数据拷贝停顿。",
        },
    },
    remedies=(
        Remedy(
            key="off",
            title={
                "en": "Switch it off, and keep it off over a restart",
                "zh": "将其关闭，并在重启后保持关闭",
            },
            commands=(
                "sudo sysctl kernel.numa_balancing=0",
                "echo kernel.numa_balancing=0 | sudo tee /etc/sysctl.d/90-numa-balancing.conf",
            ),
            safety="safe",
            verify="cat /proc/sys/kernel/numa_balancing",
            source="https://docs.sglang.io/platforms/amd_gpu.html",
        ),
    ),
    sources=(
        "https://docs.sglang.io/platforms/amd_gpu.html",
        "https://github.com/ROCm/amdsmi/issues/81",
        "https://github.com/ROCm/legacy-rocm-build/pull/3416",
    ),
    explains=("collectives/below-baseline", "collectives/below-typical"),
    fires=(AITER, MI300X + ON),
    silent=(MI300X + OFF,),
)
def numa_balancing_beside_amd(facts: Facts) -> Iterator[Answer]:
    """Look at the setting, and whether the machine is one of AMD's."""
    setting = next((one for one in facts.all(Setting) if one.name == "kernel.numa_balancing"), None)
    nodes = {one.node for one in facts.all(NumaNode) if one.cpus}
    told_by_amd = setting is not None and "NUMA balancing is enabled, which" in setting.origin.quote
    of_amd = told_by_amd or any(one.vendor == "amd" and one.seen_by in ("tool", "torch") for one in devices(facts))
    if setting is None or not of_amd:
        yield Undecided(reason="kernel.numa_balancing and AMD accelerators are not both told")
    elif setting.value != "0" and len(nodes) != 1:
        yield Finding(
            values={"value": setting.value},
            confidence="high" if nodes or told_by_amd else "medium",
            evidence=(Evidence.of(setting),),
        )
