"""A measurement of exchange between devices ran with one rank alone.

## What it finds
The output of a benchmark whose world has one rank: nothing was exchanged, and its bandwidth is told as 0.

## Why it matters
It ends without an error and looks like a result. Nothing was measured of the links.

## What it cannot know
Whether one rank was meant. Several such tables in one output are the sign that it was not: processes that were started
together and did not find each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Collective,
    Evidence,
    Facts,
    Finding,
    Remedy,
    check,
)

WITHOUT_MPI = """\
mpirun -host localhost,172.31.20.228 -np 2 /home/user/nccl-tests/build/all_reduce_perf -b 1250M -e 1250M -g 1
# nThread 1 nGpus 1 minBytes 1310720000 maxBytes 1310720000 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   1320 on ip-172-31-20-228 device  0 [0x00] Tesla V100-SXM2-16GB
#
#                                                       out-of-place                       in-place
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1310720000     327680000     float     sum   3430.9  382.04    0.00  0e+00     0.39  3367728.4    0.00  0e+00
"""
TWO = """\
# nThread 1 nGpus 2 minBytes 33554432 maxBytes 33554432 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid  29565 on      server device  0 [0x01] A40
#   Rank  1 Pid  29565 on      server device  1 [0x25] A40
#
#                                                       out-of-place                       in-place
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
    33554432       8388608     float     sum   1640.0   20.46   20.46  0e+00   1641.0   20.45   20.45  0e+00
"""


def unmeasured(facts: Facts) -> str:
    """Why the question does not arise: nothing was to be measured."""
    return "" if facts.first(Collective) else "no exchange between devices was measured here"


@check(
    "collectives/one-rank",
    severity="warning",
    about="device",
    needs=(),
    uses=(Collective,),
    applies=unmeasured,
    words={
        "en": {
            "title": "The benchmark measured one device alone",
            "summary": "{tool} ran with one rank: nothing was exchanged, and its bandwidth says nothing",
            "cause": "The program was built without MPI, so that each process that mpirun or srun started is a world "
            "of its "
            "own; or it was started for one device.",
        },
        "zh": {
            "title": "基准测试只在单个设备上运行",
            "summary": "{tool} 只有一个 rank：没有发生通信，其带宽没有意义",
            "cause": "程序编译时未启用 MPI，mpirun 或 srun 启动的每个进程各自成为一个独立的 world；或只为单个设备启"
            "动。",
        },
    },
    remedies=(
        Remedy(
            key="mpi",
            title={
                "en": "Build it with MPI, the one that starts it, and see that all ranks are listed",
                "zh": "用启动它的那一份 MPI 重新编译，并确认列出了所有 rank",
            },
            commands=(
                "make clean; make MPI=1 MPI_HOME=/usr/lib/x86_64-linux-gnu/openmpi",
                "mpirun -np 8 all_reduce_perf -g 1",
            ),
            safety="safe",
            verify="mpirun -np 2 all_reduce_perf -b 8 -e 8 -g 1 | grep Rank",
            source="https://github.com/NVIDIA/nccl-tests/issues/17",
        ),
        Remedy(
            key="one-process",
            title={
                "en": "Or let one process drive all devices of the machine",
                "zh": "或由一个进程驱动本机所有设备",
            },
            commands=("all_reduce_perf -b 8 -e 8G -f 2 -g 8",),
            safety="safe",
            source="https://github.com/NVIDIA/nccl-tests",
        ),
    ),
    sources=(
        "https://github.com/NVIDIA/nccl-tests/issues/17",
        "https://github.com/NVIDIA/nccl-tests/issues/71",
        "https://github.com/NVIDIA/nccl-tests/issues/107",
        "https://github.com/NVIDIA/nccl-tests/issues/294",
    ),
    fires=(WITHOUT_MPI,),
    silent=(TWO,),
)
def one_rank(facts: Facts) -> Iterator[Answer]:
    """The first measurement of each program that had one rank, where it measured between several nowhere."""
    several = {one.tool for one in facts.all(Collective) if one.ranks != 1}
    alone = {one.tool: one for one in reversed(facts.all(Collective)) if one.ranks == 1}
    for tool, first in ((tool, first) for tool, first in alone.items() if tool not in several):
        yield Finding(subject=tool, values={"tool": tool}, evidence=(Evidence.of(first),))
