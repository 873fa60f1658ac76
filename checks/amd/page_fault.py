"""A program on an AMD device reached for memory that it may not.

## What it finds
The page faults that amdgpu logs, whole or some lines of one: one finding for each device, with the processes it names.

## Why it matters
The process is ended, or hangs; the same as a segmentation fault, on the device.

## What it cannot know
Which kernel it was. A fault without a process comes from the driver or from transfers between devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, device_name

VLLM = """\
[Fri Apr 17 19:56:43 2026] amdgpu 0000:65:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:200)
[Fri Apr 17 19:56:43 2026] amdgpu 0000:65:00.0: amdgpu:  Process VLLM::EngineCor pid 7304 thread VLLM::EngineCor pid \
7304
[Fri Apr 17 19:56:43 2026] amdgpu 0000:65:00.0: amdgpu:   in page starting at address 0x00007ff512a02000 from client 10
"""
RETRY = """\
[19277.981083] amdgpu 0000:3d:00.0: amdgpu: [mmhub0] retry page fault (src_id:0 ring:0 vmid:3 pasid:32790)
[19277.981250] amdgpu 0000:3d:00.0: amdgpu:  for process python3.12 pid 6071 thread python3.12 pid 6071)
[19277.981413] amdgpu 0000:3d:00.0: amdgpu:   in page starting at address 0x0000709843601000 from IH client 0x12 (VMC)
"""
PARTS = """\
[Tue Sep  9 02:30:28 2025] amdgpu 0000:66:00.0: amdgpu:  for process python3 pid 132532 thread python3 pid 132532)
[Tue Sep  9 02:30:28 2025] amdgpu 0000:c6:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x00341051
"""
CLIENT = """\
[428915.922919] amdgpu 0000:83:00.0: amdgpu: \t Faulty UTCL2 client ID: CPC (0x5)
[428915.922922] amdgpu 0000:83:00.0: amdgpu: \t MORE_FAULTS: 0x0
"""
MAPPING = "[Tue Sep 19 15:03:01 2023] amdgpu 0000:03:00.0: amdgpu: \t MAPPING_ERROR: 0x0\n"
PAGE = "[  797.904847] amdgpu 0000:03:00.0:   in page starting at address 0x000000000000d000 from client 27\n"
STATUS = "GCVM_L2_PROTECTION_FAULT_STATUS:0x00000B32\n"
RING = """\
maj 08 19:27:35 host-1 kernel: amdgpu 0000:c2:00.0: ring gfx_0.0.0 timeout, signaled seq=166926, emitted seq=166928
maj 08 19:27:35 host-1 kernel: amdgpu 0000:c2:00.0:  Process llama-server pid 12519 thread llama-server pid 12519
"""
ECC = "[Sat Jan  7 14:25:56 2023] amdgpu 0000:e3:00.0: amdgpu: SRAM ECC is active.\n"


@check(
    "amd/page-fault",
    severity="warning",
    about="amd",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "A program made an AMD device fault on a memory address",
            "summary": "{device}: page fault, {count}x in the kernel log{process.en}",
            "cause": "A kernel of the process reached outside its memory: a fault in the engine's kernels for this "
            "model and device, or peer-to-peer transfers that the machine does not allow.",
        },
        "zh": {
            "title": "程序在 AMD 设备上触发了缺页错误",
            "summary": "{device}：内核日志中有 {count} 次缺页错误{process.zh}",
            "cause": "该进程的某个 kernel 越界访问显存：推理引擎针对该模型和设备的 kernel 有缺陷，或机器不允许点对点"
            "传输。",
        },
    },
    remedies=(
        Remedy(
            key="find-kernel",
            title={
                "en": "Find the kernel: start again with serialised launches and without graphs",
                "zh": "定位出错的 kernel：以串行方式、关闭图捕获重新启动",
            },
            commands=("AMD_SERIALIZE_KERNEL=3 vllm serve … --enforce-eager",),
            safety="manual",
            verify="sudo dmesg | grep -i 'page fault'",
        ),
        Remedy(
            key="newer",
            title={
                "en": "Try the engine's newest ROCm image, and an attention back end other than the default",
                "zh": "尝试推理引擎最新的 ROCm 镜像，以及非默认的注意力后端",
            },
            safety="manual",
            verify="sudo dmesg | grep -i 'page fault'",
            source="https://github.com/ROCm/legacy-rocm-build/issues/6157",
        ),
    ),
    sources=(
        "https://github.com/ROCm/legacy-rocm-build/issues/6157",
        "https://github.com/ROCm/legacy-rocm-build/issues/4021",
        "https://github.com/sgl-project/sglang/issues/10195",
        "https://github.com/ROCm/legacy-rocm-build/issues/2766",
        "https://github.com/ROCm/legacy-rocm-build/issues/2480",
        "https://github.com/ROCm/tensorflow-upstream/issues/998",
        "https://github.com/ROCm/legacy-rocm-build/issues/6269",
    ),
    explains=("device/job-hung",),
    fires=(VLLM, RETRY, PARTS, CLIENT, MAPPING, PAGE, STATUS),
    silent=(ECC, RING),
)
def page_fault(facts: Facts) -> Iterator[Answer]:
    """Gather the events, device by device."""
    told: dict[str, list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        if event.kind == "page-fault":
            told.setdefault(event.address, []).append(event)
    for address, events in told.items():
        device = device_name(facts, address=address, vendor="amd")
        processes = ", ".join([*dict.fromkeys(one.process for one in events if one.process)][:3])
        yield Finding(
            values={
                "device": device or "GPU",
                "count": len(events),
                "process.en": processes and f"; process {processes}",
                "process.zh": processes and f"，进程 {processes}",
            },
            subject=device,
            evidence=tuple(map(Evidence.of, events[:1] if len(events) == 1 else [events[0], events[-1]])),
        )
    if not told and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")
