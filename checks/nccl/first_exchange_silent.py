"""A log ends where the ranks have joined and exchange data for the first time.

## What it finds
The last lines of a log of several ranks are NCCL's of a communicator that was made (`Init COMPLETE`, its ways),
a first generation that stands at 0 %, or vLLM's test of direct transfers: nothing follows but waiting.

## Why it matters
Ranks that hang there mostly hang for good: transfers from device to device are announced and do not arrive.

## What it cannot know
Whether the log was cut there, and goes on in truth. A log of which more is there is never told of.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Capture,
    Evidence,
    Fact,
    Facts,
    Finding,
    Recognise,
    Remedy,
    Text,
    check,
    expression,
    probe,
)

LAST, MORE, NONE_DONE = "nccl-joined-last", "nccl-joined-more", "generation-none-done"
LINES = 60
OPENS = expression(r"nranks (?:[2-9]|[0-9]{2,6})\b.{0,200}Init COMPLETE|generating GPU P2P access cache in ")
NOTHING_DONE = expression(r"Processed prompts: {1,4}0%\|")
QUIET = expression(
    r"^\W*$|NCCL INFO|Init COMPLETE|Processed prompts: {1,4}0%|(?:generat|read)ing GPU P2P access cache"
    r"|No available shared memory broadcast block|[Cc]ustom allreduce is disabled|is using nccl==|Found nccl from "
    r"|Waiting for |Sleeping for|^\^C|^\W*(?:it hangs|hangs|stuck)\b|卡住"
)

HANGS = """\
host:1122:1186 [1] NCCL INFO Connected all trees
host:849:1185 [0] NCCL INFO comm 0x55a968d59160 rank 0 nranks 2 cudaDev 0 busId 3000 commId 0xdf38d22419fae72b \
localSize 192 used 134323280 bytes - Init COMPLETE
host:1122:1186 [1] NCCL INFO comm 0x557519a97630 rank 1 nranks 2 cudaDev 1 busId c3000 commId 0xdf38d22419fae72b \
localSize 192 used 134323280 bytes - Init COMPLETE
host:1122:1663 [1] NCCL INFO Channel 32 : 1[c3000] -> 0[3000] via SHM/direct/direct comm 0x557519a97630 nRanks 02
"""
OVERLAY = """\
host:1336:1336 [3] NCCL INFO TUNER/Plugin: Using internal tuner plugin.
host:1336:1336 [3] NCCL INFO ncclCommInitRank comm 0x3ee7d680 rank 15 nranks 20 cudaDev 3 nvmlDev 3 busId a4000 commId \
0xa9929a515b8ef6f6 - Init COMPLETE
[2025-02-11 18:41:41 TP15] Custom allreduce is disabled because this process group spans across nodes.
"""
TESTED = """\
INFO 09-23 17:49:51 pynccl.py:63] vLLM is using nccl==2.20.5
INFO 09-23 17:49:51 custom_all_reduce_utils.py:203] generating GPU P2P access cache in \
/home/user/.cache/vllm/gpu_p2p_access_cache_for_0,1.json
"""
# Lines of several reports.
NONE_GENERATED = """\
node05:3662916:3663010 [1] NCCL INFO comm 0x5555b6a32e10 rank 1 nranks 2 cudaDev 1 nvmlDev 7 busId 9e000 commId \
0x194370b6111a740b - Init COMPLETE
INFO 07-10 17:40:09 distributed_gpu_executor.py:56] # GPU blocks: 31800, # CPU blocks: 9362
Processed prompts:   0%|          | 0/1000 [00:00<?, ?it/s, est. speed input: 0.00 toks/s, output: 0.00 toks/s]
"""
GENERATES = NONE_GENERATED + "Processed prompts: 100%|##########| 1000/1000 [00:42<00:00, 23.5it/s]\n"
GOES_ON = """\
host:146:146 [0] NCCL INFO comm 0x1a374220 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId a000 commId 0x6fbfd5d1beb402af - \
Init COMPLETE
host:147:147 [1] NCCL INFO comm 0xe6eac50 rank 1 nranks 4 cudaDev 1 nvmlDev 1 busId b000 commId 0x6fbfd5d1beb402af - \
Init COMPLETE
vLLM NCCL is successful!
"""
ALONE = """\
host:140:39062 [0] NCCL INFO comm 0x7f558bec9670 rank 0 nranks 1 cudaDev 0 nvmlDev 0 - Init COMPLETE
"""


@probe(
    "nccl/joined",
    tells=(Text,),
    recognise=Recognise(
        literals=("Init COMPLETE", "generating GPU P2P access cache"),
        pattern=OPENS.pattern,
        lines=LINES,
    ),
)
def joined(capture: Capture) -> Iterator[Fact]:
    """Whether anything but waiting follows."""
    if any(OPENS.search(line.text) for line in capture.lines()):
        yield _told(capture, LAST)


@probe(
    "vllm/generation",
    tells=(Text,),
    recognise=Recognise(literals=("Processed prompts: ",), pattern=NOTHING_DONE.pattern, lines=LINES),
)
def generation(capture: Capture) -> Iterator[Fact]:
    """Whether a generation that was begun ever moves on."""
    if any(NOTHING_DONE.search(line.text) for line in capture.lines()):
        yield _told(capture, NONE_DONE)


def _told(capture: Capture, last: str) -> Text:
    lines = list(capture.lines())
    quiet = len(lines) <= LINES and all(QUIET.search(line.text) for line in lines)
    return Text(origin=capture.origin(lines[0]), kinds=(last if quiet else MORE,))


def unread(facts: Facts) -> str:
    """Why the question does not arise: no log of ranks that join was read."""
    told = any({LAST, MORE, NONE_DONE} & set(one.kinds) for one in facts.all(Text))
    return "" if told or facts.read("collective-log") else "no log of a collective library here"


@check(
    "nccl/first-exchange-silent",
    severity="warning",
    about="nccl",
    needs=(),
    uses=(Text,),
    applies=unread,
    words={
        "en": {
            "title": "The log ends where the devices first exchange data",
            "summary": "The ranks have joined, and nothing follows",
            "cause": "If the program stands here, the ranks found each other and the first data between the devices "
            "never arrive. Inside a machine, direct transfers over PCI Express are announced and do not work (IOMMU, "
            "ACS, a virtual machine); between machines, the interface that was taken does not lead to the other side. "
            "If the log was cut here, this means nothing.",
        },
        "zh": {
            "title": "日志在设备首次交换数据处结束",
            "summary": "各 rank 已完成汇合，此后没有任何输出",
            "cause": "若程序停在此处：各 rank 已互相找到，但设备间的首批数据始终没有到达。机内是经 PCI Express 的直接"
            "传输看似可用而实际不通（IOMMU、ACS、虚拟机）；机间是所选网卡无法到达对端。若只是日志在此处被截断，则没有"
            "意义。",
        },
    },
    remedies=(
        Remedy(
            key="without-direct-transfers",
            title={"en": "See whether it runs without direct transfers", "zh": "关闭设备间直接传输，看能否运行"},
            commands=(
                "NCCL_P2P_DISABLE=1 vllm serve MODEL --disable-custom-all-reduce",
                "NCCL_P2P_DISABLE=1 python -m sglang.launch_server --model-path MODEL --disable-custom-all-reduce",
            ),
            safety="safe",
            source="https://github.com/vllm-project/vllm/issues/5484",
        ),
        Remedy(
            key="iommu-and-acs",
            title={
                "en": "It does: switch the IOMMU's translation and ACS off, for direct transfers to work",
                "zh": "若可以运行：关闭 IOMMU 地址转换与 ACS，使直接传输可用",
            },
            commands=(
                "grep -oE '(intel_|amd_)?iommu=[^ ]*' /proc/cmdline",
                "sudo lspci -vvv | grep ACSCtl",
            ),
            safety="manual",
            source="https://docs.nvidia.com/deeplearning/nccl/archives/nccl_2262/user-guide/docs/_sources/"
            "troubleshooting.rst.txt",
        ),
        Remedy(
            key="interface",
            title={
                "en": "Between machines: name the interface, and try without RDMA",
                "zh": "跨机时：指定网卡，并尝试关闭 RDMA",
            },
            commands=("export NCCL_SOCKET_IFNAME=INTERFACE", "export NCCL_IB_DISABLE=1"),
            safety="safe",
            source="https://docs.vllm.ai/en/latest/usage/troubleshooting/",
        ),
        Remedy(
            key="where-ranks-stand",
            title={"en": "See where each rank stands", "zh": "查看各 rank 停在何处"},
            commands=("pip install py-spy", "py-spy dump --pid PID"),
            safety="safe",
            source="https://docs.vllm.ai/en/latest/usage/troubleshooting/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/5484",
        "https://github.com/vllm-project/vllm/issues/10150",
        "https://github.com/sgl-project/sglang/issues/3516",
        "https://github.com/vllm-project/vllm/issues/8735",
    ),
    explains=("engine/worker-does-not-answer",),
    fires=(HANGS, OVERLAY, TESTED, NONE_GENERATED),
    silent=(GOES_ON, ALONE, GENERATES),
)
def first_exchange_silent(facts: Facts) -> Iterator[Answer]:
    """The last place where ranks joined, if nothing follows it."""
    places = [one for one in facts.all(Text) if {LAST, MORE, NONE_DONE} & set(one.kinds)]
    last = max(places, key=lambda one: one.origin.line or 0, default=None)
    several = any({LAST, MORE} & set(one.kinds) for one in places) and facts.read("collective-log")
    if last and (LAST in last.kinds or (NONE_DONE in last.kinds and several)):
        yield Finding(evidence=(Evidence.of(last),), confidence="low")
