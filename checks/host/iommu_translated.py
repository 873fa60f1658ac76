"""The IOMMU translates what accelerators send to each other over PCI Express.

## What it finds
On bare metal with two or more accelerators: the IOMMU groups of the accelerators have a translating domain (`DMA`,
`DMA-FQ`), or the kernel's log gives Translated as the default and shows that there is an IOMMU. Devices of which every
pair has a fast link of its own (NVLink, HCCS) are left out, but for AMD's, whose library asks for passthrough.

## Why it matters
Peer transfers then make a detour over the root complex, are refused, or are lost: a launch over several devices is
slow, hangs, or computes with wrong data.

## What it cannot know
Whether the software uses peer transfers at all. The warning that RCCL prints about a missing `iommu=pt` proves nothing:
the IOMMU may be off, or the kernel may pass through by default.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Link,
    Platform,
    Remedy,
    Setting,
    Undecided,
    check,
    devices,
    expression,
)

GROUP = expression(r"iommu_groups/\d{1,5}/type")
FAST = expression(r"NV\d{1,3}|XGMI|HCCS\w{0,4}")
BYPASSED = ({"iommu": "pt"}, {"iommu": "off"}, {"iommu": "soft"}, {"iommu.passthrough": "1"})

TWO_CARDS = """\
41:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)
61:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1)
"""
LOG = """\
[    1.753566] iommu: Default domain type: Translated
[    1.759175] iommu: DMA domain TLB invalidation policy: lazy mode
[    1.810527] pci 0000:00:01.0: Adding to iommu group 0
[    1.810546] pci 0000:00:01.2: Adding to iommu group 2
"""
LOG_PASSTHROUGH = """\
[    0.718058] iommu: Default domain type: Passthrough (set via kernel command line)
[    0.810331] pci 0000:00:00.2: AMD-Vi: IOMMU performance counters supported
[    0.810507] pci 0000:00:01.0: Adding to iommu group 0
[    0.810526] pci 0000:00:01.1: Adding to iommu group 1
"""
GROUPS = """\
# grep -Hr . /sys/kernel/iommu_groups/*/type
/sys/kernel/iommu_groups/0/type:identity
/sys/kernel/iommu_groups/1/type:identity
/sys/kernel/iommu_groups/10/type:identity
"""


@check(
    "host/iommu-translated",
    severity="warning",
    about="host",
    needs=(Accelerator,),
    uses=(Link, Platform, Setting),
    words={
        "en": {
            "title": "The IOMMU translates transfers between accelerators",
            "summary": "{count} accelerators, and the IOMMU translates ({told})",
            "cause": "The kernel was started without `iommu=pt`, and its default is translation.",
        },
        "zh": {
            "title": "IOMMU 处于地址转换模式，影响加速器之间的传输",
            "summary": "本机有 {count} 个加速器，而 IOMMU 处于转换模式（{told}）",
            "cause": "内核启动参数未包含 `iommu=pt`，而内核默认为转换模式。",
        },
    },
    remedies=(
        Remedy(
            key="passthrough",
            title={
                "en": "Start the kernel with iommu=pt (not on a host that gives the devices to virtual machines "
                "without having tested it there)",
                "zh": "以 iommu=pt 启动内核（若主机将设备直通给虚拟机，请先验证）",
            },
            commands=(
                "sudoedit /etc/default/grub   # add iommu=pt to GRUB_CMDLINE_LINUX",
                "sudo update-grub || sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
                "sudo reboot",
            ),
            safety="disruptive",
            verify="cat /sys/kernel/iommu_groups/*/type | sort | uniq -c",
            source="https://docs.nvidia.com/nim/maxine/lipsync/latest/advanced-usage/multi-gpu.html",
        ),
        Remedy(
            key="no-peer",
            title={
                "en": "Until then, keep the collective library off peer transfers",
                "zh": "在此之前，让集合通信库不使用 P2P 传输",
            },
            commands=("export NCCL_P2P_DISABLE=1",),
            safety="manual",
            verify="NCCL_DEBUG=INFO prints `via SHM` for the channels",
            source="https://github.com/vllm-project/vllm/issues/9920",
        ),
    ),
    sources=(
        "https://docs.nvidia.com/nim/maxine/lipsync/latest/advanced-usage/multi-gpu.html",
        "https://rocm.docs.amd.com/en/latest/conceptual/iommu.html",
        "https://docs.sglang.io/platforms/amd_gpu.html",
        "https://github.com/NVIDIA/nccl/issues/257",
        "https://github.com/vllm-project/vllm/issues/9920",
        "https://github.com/ROCm/rccl/issues/1026",
    ),
    explains=(
        "host/iommu-fault",
        "collectives/below-baseline",
        "collectives/below-typical",
        "collectives/rank-silent",
        "collectives/wrong-result",
    ),
    fires=(
        TWO_CARDS + LOG,
        TWO_CARDS + "# grep -Hr . /sys/kernel/iommu_groups/*/type\n/sys/kernel/iommu_groups/14/type:DMA-FQ\n",
    ),
    silent=(TWO_CARDS + LOG_PASSTHROUGH, TWO_CARDS + GROUPS),
)
def iommu_translated(facts: Facts) -> Iterator[Answer]:
    """Ask the groups, else the kernel's default, else its command line."""
    found = devices(facts)
    if len(found) < 2 or any("virtual" in one.traits or "wsl" in one.traits for one in facts.all(Platform)):
        yield Undecided(reason="judged where two or more accelerators of a real machine are told")
        return
    if not any(one.vendor == "amd" for one in found) and _meshed(facts, len(found)):
        return
    settings = [one for one in facts.all(Setting) if one.kind == "kernel"]
    groups = [one for one in settings if GROUP.fullmatch(one.name)]
    translated = [one for one in groups if one.value.upper().startswith("DMA")]
    chosen = [one for one in settings if one.name == "iommu.passthrough" and "Default domain type" in one.origin.quote]
    if groups and len(translated) in (0, len(groups)):
        proof = translated[:1]
    elif chosen:
        proof = [one for one in chosen if one.value == "0"][:1]
    elif any(
        one.name == name and value in one.value.split()
        for one in settings
        for by in BYPASSED
        for name, value in by.items()
    ):
        return
    else:
        yield Undecided(reason="the types of the IOMMU's domains and the kernel's default are not told")
        return
    for one in proof:
        told = f"{one.name} {one.value}" if one in translated else "Default domain type: Translated"
        values: dict[str, str | int] = {"count": len(found), "told": told}
        yield Finding(values={**values}, confidence="medium", evidence=(Evidence.of(one), Evidence.of(found[0])))


def _meshed(facts: Facts, count: int) -> bool:
    """Whether every pair of the devices has a fast link."""
    fast = {(one.first, one.second) for one in facts.all(Link) if FAST.fullmatch(one.kind)}
    return len(fast) >= count * (count - 1) // 2
