"""An operation between devices gave a wrong result.

## What it finds
A benchmark that compares what arrived with what must arrive, and found elements that differ.

## Why it matters
A model that runs over these devices computes with such numbers: its answers are garbage, or wrong without anybody
noticing.

## What it cannot know
Which device or link did it. Formats of low precision may differ in the last place where a benchmark is too strict;
nccl-tests allows for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Collective, Evidence, Facts, Finding, Remedy, Undecided, check, size_in_words

HEAD = """\
# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 \
graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 103811 on      dgx01 device  0 [0x1b] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 103812 on      dgx01 device  1 [0x43] NVIDIA H100 80GB HBM3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
      262144         65536     float     sum      -1    325.1    0.81    0.81      0    325.3    0.81    0.81      0
"""
WRONG = HEAD + (
    "      524288        131072     float     sum      -1    663.1    0.79    0.79  237858    569.4    0.92    0.92  "
    "238038\n"
)
RIGHT = HEAD + (
    "      524288        131072     float     sum      -1    663.1    0.79    0.79      0    569.4    0.92    0.92    "
    "  0\n"
)


@check(
    "collectives/wrong-result",
    severity="error",
    about="device",
    needs=(Collective,),
    words={
        "en": {
            "title": "Devices exchanged data and got wrong numbers",
            "summary": "{op} between {ranks} ranks: wrong from {size} on, {wrong} elements at worst",
            "cause": "Writes from device to device get lost or arrive late: an IOMMU or ACS that redirects them, a "
            "link or "
            "a device at fault, a protocol that was forced on a platform that does not have it, or a defect of the "
            "library's release.",
        },
        "zh": {
            "title": "设备间通信的结果错误",
            "summary": "{ranks} 个 rank 的 {op}：自 {size} 起结果错误，最多 {wrong} 个元素",
            "cause": "设备间的写入丢失或延迟到达：IOMMU 或 ACS 重定向、链路或设备故障、强制使用了平台不支持的协议，或通"
            "信库版本的"
            "缺陷。",
        },
    },
    remedies=(
        Remedy(
            key="without-direct-transfers",
            title={
                "en": "See whether it is right without direct transfers, and by another protocol",
                "zh": "关闭设备间直接传输或更换协议后，看结果是否正确",
            },
            commands=(
                "NCCL_P2P_DISABLE=1 all_reduce_perf -b 8 -e 128M -f 2 -g {ranks}",
                "NCCL_PROTO=SIMPLE all_reduce_perf -b 8 -e 128M -f 2 -g {ranks}",
            ),
            safety="safe",
            source="https://github.com/NVIDIA/nccl/issues/1184",
        ),
        Remedy(
            key="iommu-and-acs",
            title={
                "en": "It is: take the IOMMU's translation and ACS off the way between the devices",
                "zh": "若正确：关闭设备间路径上的 IOMMU 地址转换与 ACS",
            },
            commands=("grep -oE '(intel_|amd_)?iommu=[^ ]*' /proc/cmdline", "sudo lspci -vvv | grep ACSCtl"),
            safety="manual",
            source="https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2262/user-guide/docs/_sources/"
            "troubleshooting.rst.txt",
        ),
        Remedy(
            key="pairs",
            title={
                "en": "It is wrong all the same: run it between two devices at a time to find the one",
                "zh": "仍然错误：两两测试设备以定位故障设备",
            },
            commands=("CUDA_VISIBLE_DEVICES=0,1 all_reduce_perf -b 8 -e 128M -f 2 -g 2",),
            safety="safe",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl/issues/1184",
        "https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2262/user-guide/docs/_sources/troubleshooting.rst.txt",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
    ),
    fires=(WRONG,),
    silent=(RIGHT,),
)
def wrong_result(facts: Facts) -> Iterator[Answer]:
    """The sizes of each operation whose result was compared and differs."""
    told = facts.all(Collective)
    if all(one.correct is None and one.wrong is None for one in told):
        yield Undecided(reason="no result was compared with what it must be")
    wrong = [one for one in told if one.correct is False or (one.wrong or 0) > 0]
    for op, ranks in dict.fromkeys((one.op, one.ranks) for one in wrong):
        alike = sorted((one for one in wrong if (one.op, one.ranks) == (op, ranks)), key=lambda one: one.bytes)
        counted = max((one.wrong or 0 for one in alike), default=0)
        yield Finding(
            subject=op,
            values={
                "op": op,
                "ranks": ranks or "?",
                "size": size_in_words(alike[0].bytes),
                "wrong": counted or "some",
            },
            evidence=tuple(map(Evidence.of, alike[:3])),
        )
