"""A launch wants several GPUs, and those that there are are divided into parts (MIG).

## What it finds
A launch whose tensor and pipeline parallelism need more than one device, on a machine where fewer devices than that are
undivided.

## Why it matters
A process sees one part of a divided GPU and no more; the workers fail with "invalid device ordinal", or NCCL finds two
ranks on one device.

## What it cannot know
The engine's default where the launch does not name a size, and machines beyond this one.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Reading,
    Remedy,
    Undecided,
    check,
    count,
    devices,
)

THREAD = "https://github.com/pytorch/pytorch/pull/92315"
SIZES = ("tensor-parallel-size", "tp-size", "pipeline-parallel-size", "pp-size")
NODES = ("nnodes", "node-rank")
"""Flags of a launch over several machines, of which one alone is known here."""

H200 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:83:00.0 Off |                   On |
| N/A   28C    P0             78W /  700W |      55MiB / 143771MiB |     N/A      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
"""
TWO = "$ vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2\n"
ONE = "$ vllm serve Qwen/Qwen3-8B --tensor-parallel-size 1\n"


@check(
    "device/partitioned-for-launch",
    severity="error",
    about="device",
    needs=(LaunchArguments, Reading),
    words={
        "en": {
            "title": "The launch wants several GPUs, and they are divided into MIG parts",
            "summary": "the launch wants {wanted} devices; {whole} undivided, {divided} divided into MIG parts",
            "cause": "A process sees one MIG part; tensor and pipeline parallelism over parts are not possible.",
        },
        "zh": {
            "title": "启动需要多块 GPU，但 GPU 已被切分为 MIG 分片",
            "summary": "启动需要 {wanted} 个设备；未切分 {whole} 个，已切分为 MIG 分片 {divided} 个",
            "cause": "一个进程只能看到一个 MIG 分片；无法在分片之间做张量并行或流水线并行。",
        },
    },
    remedies=(
        Remedy(
            key="whole",
            title={
                "en": "End all work on these GPUs and turn MIG off (this removes their parts)",
                "zh": "结束这些 GPU 上的所有任务并关闭 MIG（会删除其分片）",
            },
            commands=("sudo nvidia-smi -mig 0",),
            safety="disruptive",
            verify="nvidia-smi --query-gpu=index,mig.mode.current --format=csv",
            source=THREAD,
        ),
        Remedy(
            key="one-part",
            title={
                "en": "Or launch a model that fits into one part, without parallelism",
                "zh": "或启动单个分片即可容纳的模型，且不使用并行",
            },
            commands=("CUDA_VISIBLE_DEVICES=MIG-… vllm serve … --tensor-parallel-size 1",),
            safety="manual",
            verify="nvidia-smi",
            source=THREAD,
        ),
    ),
    sources=(THREAD,),
    fires=(H200 + TWO,),
    silent=(H200 + ONE,),
)
def partitioned_for_launch(facts: Facts) -> Iterator[Answer]:
    """Compare what the launch wants with the devices that are undivided."""
    modes = {one.address or str(one.index): one for one in facts.all(Reading) if one.name == "mig.mode"}
    divided = [one for one in modes.values() if one.value == "Enabled"]
    if not modes:
        yield Undecided(reason="no tool told whether the devices are divided")
        return
    whole = max(len([one for one in devices(facts) if one.vendor == "nvidia"]), len(modes)) - len(divided)
    for launch in facts.all(LaunchArguments):
        wanted = _wanted(launch)
        if divided and wanted > max(whole, 1):
            yield Finding(
                values={"wanted": wanted, "whole": whole, "divided": len(divided)},
                evidence=(Evidence.of(launch), *map(Evidence.of, divided[:3])),
            )
            return


def _wanted(launch: LaunchArguments) -> int:
    """The devices of one machine that the launch asks for, 1 where it does not tell."""
    flags = dict(launch.flags)
    wanted = 1
    for name in SIZES:
        wanted *= count(flags.get(name, "")) or 1
    return 1 if any(name in flags for name in NODES) else wanted
