"""The kernel logged an Xid that a program causes: a kernel of the process did something illegal.

## What it finds
Xid events for which NVIDIA's catalogue sends one to the program first (13, 31, 43, 69, …): one finding for each
code, with its devices and how often.

## Why it matters
The process was ended, often without a word in its own log about where; the engine dies, the GPU stays usable.

## What it cannot know
Which kernel it was. In rare cases the hardware is at fault: one that keeps to a single GPU, whatever runs there, is to
be diagnosed.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    EventCode,
    Evidence,
    Facts,
    Finding,
    HardwareEvent,
    Remedy,
    Text,
    Undecided,
    check,
    device_names,
)

CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"

OUT_OF_RANGE = """\
kern  :warn  : 2025-01-21T04:41:44,283575+00:00 NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, \
Graphics SM Warp Exception on (GPC 9, TPC 1, SM 1): Out Of Range Address
"""
MMU_FAULT = """\
[Fri Jan 29 23:42:34 2021] NVRM: Xid (PCI:0000:db:00): 31, pid=13641, Ch 00000008, intr 00000000. MMU Fault: ENGINE \
GRAPHICS GPCCLIENT_T1_10 faulted @ 0x7fd7_90743000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ
"""
STOPPED = """\
[Wed Jul 31 23:14:18 2024] NVRM: Xid (PCI:0000:00:05): 43, pid=1045242, name=pt_main_thread, Ch 00000008
[Wed Jul 31 23:15:26 2024] NVRM: Xid (PCI:0000:00:05): 43, pid=1084984, name=pt_main_thread, Ch 00000008
"""
PLUGIN = """\
2020/08/10 19:09:42 XidCriticalError: Xid=69 on Device=GPU-7540a9b3-eeb9-1214-1526-f93c9ea826a8, the device will go \
unhealthy.
"""
CONDITION = """\
  XidCriticalError     True    Mon, 23 Jun 2025 18:45:43 +0000   Mon, 23 Jun 2025 18:44:57 +0000   {"31":true}       \
           6e43a052-e544-467b-a972-63d7cd2ce80a
"""
OFF_THE_BUS = (
    "[6781741.548779] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
)
KILLED = "[Sat Oct 12 18:35:32 2024] NVRM: Xid (PCI:0000:61:00): 45, pid=1496200, name=distprovers-gpu, Ch 0000000a\n"


@check(
    "nvidia/xid-application",
    severity="warning",
    about="nvidia",
    needs=(),
    uses=(HardwareEvent, EventCode, Text),
    words={
        "en": {
            "title": "A program made a GPU fault",
            "summary": "{device}: Xid {code} ({name}), reported {count}x{process.en}",
            "cause": "A kernel of the process reached for memory it may not, or ran an illegal instruction. The "
            "usual suspects are the engine's own kernels and the attention or quantisation library for this model "
            "and GPU; the GPU itself only where the fault stays with it whatever runs.",
        },
        "zh": {
            "title": "程序在 GPU 上触发了错误",
            "summary": "{device}：报告了 {count} 次 Xid {code}（{name}）{process.zh}",
            "cause": "该进程的某个 kernel 访问了非法内存或执行了非法指令。首先怀疑推理引擎自身的 kernel，"
            "以及该模型和 GPU 所用的注意力或量化库；只有当错误始终跟随同一块 GPU 时才怀疑硬件。",
        },
    },
    remedies=(
        Remedy(
            key="find-kernel",
            title={
                "en": "Find the kernel: start the engine again with synchronous launches, without graphs, and read "
                "its traceback",
                "zh": "定位出错的 kernel：以同步方式、关闭图捕获重新启动推理引擎，查看其回溯",
            },
            commands=("CUDA_LAUNCH_BLOCKING=1 vllm serve … --enforce-eager",),
            safety="manual",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
        Remedy(
            key="newer",
            title={
                "en": "Try the newest release of the engine and its kernel libraries, or another attention back end",
                "zh": "尝试推理引擎及其 kernel 库的最新版本，或更换注意力后端",
            },
            safety="manual",
            verify="sudo dmesg | grep -i xid",
            source="https://github.com/vllm-project/vllm/issues/5901",
        ),
        Remedy(
            key="same-device",
            title={
                "en": "If it stays with one GPU whatever runs: diagnose that GPU on the idle machine",
                "zh": "若无论运行什么都只在同一块 GPU 上出现：在空闲机器上诊断该 GPU",
            },
            commands=("dcgmi diag -r 3",),
            safety="disruptive",
            verify="sudo dmesg | grep -i xid",
            source=CATALOGUE,
        ),
    ),
    sources=(
        CATALOGUE,
        "https://github.com/vllm-project/vllm/issues/5901",
        "https://github.com/pytorch/pytorch/issues/51382",
        "https://github.com/akash-network/support/issues/244",
        "https://github.com/NVIDIA/k8s-device-plugin/issues/189",
        "https://github.com/GoogleCloudPlatform/container-engine-accelerators/pull/497",
    ),
    explains=("nvidia/recovery-action-pending",),
    fires=(OUT_OF_RANGE, MMU_FAULT, STOPPED, PLUGIN, CONDITION),
    silent=(OFF_THE_BUS, KILLED),
)
def xid_application(facts: Facts) -> Iterator[Answer]:
    """Look up each code in the vendor's catalogue."""
    rows = {one.code: one for one in facts.all(EventCode) if one.kind == "xid" and one.blames == "application"}
    told: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "xid" and event.code in rows:
            told.setdefault(event.code, []).append(event)
    for code, events in told.items():
        devices = device_names(facts, (one.address for one in events), "nvidia")
        processes = ", ".join([*dict.fromkeys(one.process for one in events if one.process)][:3])
        values: dict[str, str | int | float] = {
            "device": devices or "GPU",
            "code": code,
            "name": rows[code].name,
            "count": len(events),
        }
        values["process.en"] = processes and f"; process {processes}"
        values["process.zh"] = processes and f"，进程 {processes}"
        yield Finding(
            values={"device": devices or "GPU", **values}, subject=devices, evidence=Evidence.of_events(events)
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
