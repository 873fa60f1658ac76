"""The launch wants more ranks on this machine than it has devices.

## What it finds
Tensor, pipeline, context and data parallelism of the command, multiplied, above the number of devices that the vendor's
tool or torch lists, or that a variable leaves visible.

## Why it matters
The engine ends with "World size … is larger than the number of available GPUs", waits for a cluster that is not there,
or puts two ranks on one device, which the collective library refuses.

## What it cannot know
Devices of other hosts: a command that names several (`--nnodes`, Ray, an address) is left undecided. Devices that a
pasted table left out at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    LaunchArguments,
    Partition,
    Remedy,
    Setting,
    Undecided,
    check,
)

LIST = """\
$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000001)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000002)
"""
FOUR = "$ vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4\n"
HIDDEN = "$ CUDA_VISIBLE_DEVICES=1 vllm serve Qwen/Qwen3-32B -tp 2\n"
TWO = "$ vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2\n"
ATTENTION = (
    "$ python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size 2 --dp-size 2 --enable-dp-attention\n"
)
MULTIPLY = {
    "vllm": (
        "tensor-parallel-size",
        "pipeline-parallel-size",
        "prefill-context-parallel-size",
        "data-parallel-size",
    ),
    "sglang": ("tp-size", "pp-size", "dp-size"),
}
SEVERAL = (
    *("nnodes", "node-rank", "headless", "data-parallel-address", "data-parallel-rank", "data-parallel-start-rank"),
    *("data-parallel-size-local", "data-parallel-external-lb", "data-parallel-hybrid-lb", "master-addr"),
    *("dist-init-addr", "use-ray", "worker-use-ray", "device", "config"),
)
"""Flags with which the command alone does not tell how many ranks run here."""
CHOOSING = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


@check(
    "engine/more-ranks-than-devices",
    severity="error",
    about="engine",
    needs=(Accelerator, LaunchArguments),
    uses=(Partition, Setting),
    words={
        "en": {
            "title": "The launch wants more devices than there are",
            "summary": "the command asks for {ranks} ranks ({product}) and this machine has {devices} devices for them",
            "cause": "Each rank takes a device of its own; the command was written for a larger machine, or several.",
        },
        "zh": {
            "title": "启动命令需要的设备多于实际可用的设备",
            "summary": "命令需要 {ranks} 个 rank（{product}），而本机只有 {devices} 个可用设备",
            "cause": "每个 rank 独占一个设备；该命令是为更大的机器或多机编写的。",
        },
    },
    remedies=(
        Remedy(
            key="fewer",
            title={
                "en": "Ask for at most {devices} ranks, or name the other hosts (--nnodes, or a Ray cluster)",
                "zh": "最多使用 {devices} 个 rank，或指定其他主机（--nnodes 或 Ray 集群）",
            },
            safety="manual",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/config/parallel.py",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/managers/data_parallel_controller.py",
    ),
    fires=(LIST + FOUR, LIST + HIDDEN),
    silent=(LIST + TWO, LIST + ATTENTION),
)
def more_ranks_than_devices(facts: Facts) -> Iterator[Answer]:
    """Multiply the sizes of each launch and count the devices."""
    devices, evidence = _devices(facts)
    launches = [one for one in facts.all(LaunchArguments) if one.subcommand == "serve" and one.engine in MULTIPLY]
    if not launches or not devices:
        yield Undecided(reason="no command that starts a server was told beside a list of devices")
        return
    for launch in launches:
        sizes = _sizes(launch)
        if not sizes:
            yield Undecided(reason="the command does not tell how many ranks run on this machine")
        elif prod(sizes.values()) > devices:
            product = " x ".join(f"{name} {size}" for name, size in sizes.items())
            yield Finding(
                subject=launch.model,
                values={"ranks": prod(sizes.values()), "product": product, "devices": devices},
                confidence="medium",
                evidence=(Evidence.of(launch), *evidence),
            )


def _sizes(launch: LaunchArguments) -> dict[str, int]:
    """The sizes that multiply to the ranks on this machine; none where the command leaves them open."""
    flags = dict(launch.flags)
    backends = (flags.get("distributed-executor-backend", ""), flags.get("data-parallel-backend", ""))
    if any(name in flags for name in SEVERAL) or not {"ray", "external_launcher"}.isdisjoint(backends):
        return {}
    names = MULTIPLY[launch.engine]
    if "enable-dp-attention" in flags:
        names = tuple(name for name in names if name != "dp-size")
    given = {name: flags[name] for name in names if name in flags}
    sizes = {name: int(value) for name, value in given.items() if value.isdecimal() and int(value)}
    return sizes if len(sizes) == len(given) else {}


def _devices(facts: Facts) -> tuple[int, tuple[Evidence, ...]]:
    """How many devices one maker's longest list has, less those that a variable hides; 0 where no list is whole."""
    lists: dict[tuple[str, str], dict[int, Accelerator]] = {}
    for one in facts.all(Accelerator):
        if one.seen_by in ("tool", "torch") and one.index is not None:
            lists.setdefault((one.vendor, one.seen_by), {}).setdefault(one.index, one)
    listed = max(lists.values(), key=len, default={})
    if sorted(listed) != list(range(len(listed))) or facts.first(Partition):
        return 0, ()
    settings = facts.environment()
    variable = next((settings[name] for name in CHOOSING if name in settings), None)
    evidence = tuple(Evidence.of(one) for one in list(listed.values())[-1:])
    words = variable.value.split(",") if variable else []
    if variable and words and all(word.strip().isdecimal() for word in words):
        return min(len(words), len(listed)), (*evidence, Evidence.of(variable))
    return len(listed), evidence
