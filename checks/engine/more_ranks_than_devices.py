"""The launch wants more ranks on this machine than it has devices.

## What it finds
Tensor, pipeline, context and data parallelism of the command, multiplied, above the number of devices that the vendor's
tool or torch lists, that a variable leaves visible, or that the container of the command is given.

## Why it matters
The engine ends with "World size … is larger than the number of available GPUs", waits for a cluster that is not there,
or puts two ranks on one device, which the collective library refuses.

## What it cannot know
Devices of other hosts: a command that names several (`--nnodes`, Ray, an address) is left undecided. Whether a pasted
table was torn: it counts as a whole list only where the processes stand below it, or where a tool was run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from diag.api import (
    Accelerator,
    Answer,
    Container,
    DeviceProcess,
    Evidence,
    Fact,
    Facts,
    Finding,
    LaunchArguments,
    Partition,
    Remedy,
    Setting,
    Text,
    Undecided,
    Vendor,
    check,
    count,
)

LIST = """\
$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000001)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000002)
"""
FOUR = "$ vllm serve Qwen/Qwen3-32B --tensor-parallel-size 4\n"
FEWER = "$ CUDA_VISIBLE_DEVICES=1 vllm serve Qwen/Qwen3-32B -tp 2\n"
UUIDS = "$ CUDA_VISIBLE_DEVICES=GPU-aaaa,GPU-bbbb vllm serve a/b -tp 4\n"
ROW = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H100 80GB HBM3           On | 00000000:18:00.0 Off |                    0 |
| N/A   32C    P0              72W /  700W |       4MiB /  81559MiB |      0%      Default |
|                                         |                        |             Disabled |
"""
END = """\
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""
DOCKER = (
    "docker run --gpus '\"device=0,1\"' --shm-size 32g vllm/vllm-openai:v0.9.1 --model Qwen/Qwen3-32B "
    "--tensor-parallel-size 4\n"
)
COUNTED = "docker run --gpus 2 --ipc=host vllm/vllm-openai:v0.9.1 --model Qwen/Qwen3-32B --tensor-parallel-size 4\n"
ENOUGH = COUNTED.replace("--gpus 2", "--gpus all").replace("-size 4", "-size 2")
KUNLUN = """\
Wed Jun 25 19:45:10 2025
+-----------------------------------------------------------------------------+
| XPU-SMI               Driver Version: 5.0.21.21    XPU-RT Version: 5.0.21   |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
|   0  P800 OAM           N/A   | 00000000:03:00.0 N/A |                    0 |
| N/A   37C  N/A     88W / 400W |      0MiB / 98304MiB |      0%      Default |
|                               |      0MiB /    96MiB |             Disabled |
+-------------------------------+----------------------+----------------------+
vllm serve /models/Qwen3-32B --tensor-parallel-size 8
XPU_VISIBLE_DEVICES=0,1,2,3
"""
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
TOOLS = ("nvidia-smi", "npu-smi", "kunlun/xpu-smi", "rocm-smi", "amd-smi", "hy-smi", "mx-smi", "hl-smi", "mthreads-gmi")
"""Captures of tools that were run here, which are never torn."""
UNIQUE = "GPU-"
HIDDEN = "-1"
"""What ends a list of visible devices."""


@check(
    "engine/more-ranks-than-devices",
    severity="error",
    about="engine",
    needs=(Accelerator, LaunchArguments),
    uses=(Container, DeviceProcess, Partition, Setting, Text, Vendor),
    words={
        "en": {
            "title": "The launch wants more devices than there are",
            "summary": "the command asks for {ranks} ranks ({product}) and has {devices} devices for them",
            "cause": "Each rank takes a device of its own; the command was written for a larger machine, or several.",
        },
        "zh": {
            "title": "启动命令需要的设备多于实际可用的设备",
            "summary": "命令需要 {ranks} 个 rank（{product}），而它只有 {devices} 个可用设备",
            "cause": "每个 rank 独占一个设备；该命令是为更大的机器或多机编写的。",
        },
    },
    remedies=(
        Remedy(
            key="size",
            title={
                "en": "Ask for {fits} ranks (the number must divide the model's attention heads)",
                "zh": "使用 {fits} 个 rank（须能整除模型的注意力头数）",
            },
            commands=("--{flag} {fits}",),
            safety="safe",
            verify='python -c "import torch; print(torch.cuda.device_count())"',
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling/",
        ),
        Remedy(
            key="product",
            title={
                "en": "Ask for {fits} ranks in all, so that {product} multiply to no more",
                "zh": "总共使用 {fits} 个 rank，即调小 {product} 使其乘积不超过该数",
            },
            safety="manual",
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling/",
        ),
        Remedy(
            key="grant",
            title={
                "en": "Or let the process have {ranks} devices ({limit} leaves it {devices})",
                "zh": "或让进程使用 {ranks} 个设备（{limit} 目前只给出 {devices} 个）",
            },
            safety="manual",
        ),
        Remedy(
            key="hosts",
            title={
                "en": "If there are other hosts: name them (--nnodes, or a Ray cluster)",
                "zh": "若还有其他主机：在命令中指定（--nnodes 或 Ray 集群）",
            },
            safety="manual",
            source="https://docs.vllm.ai/en/latest/serving/parallelism_scaling/",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/blob/main/vllm/config/parallel.py",
        "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/managers/data_parallel_controller.py",
    ),
    fires=(LIST + FOUR, LIST + FEWER, LIST + UUIDS, ROW + END + TWO, ROW + DOCKER, ROW + END + COUNTED, KUNLUN),
    silent=(LIST + TWO, LIST + ATTENTION, LIST + ENOUGH),
)
def more_ranks_than_devices(facts: Facts) -> Iterator[Answer]:
    """Multiply the sizes of each launch and compare them with the fewest devices that anything leaves it."""
    launches = [one for one in facts.all(LaunchArguments) if one.subcommand == "serve" and one.engine in MULTIPLY]
    bounds = {} if facts.first(Partition) else {one.origin: _bounds(facts, one) for one in launches}
    if not any(bounds.values()):
        yield Undecided(reason="no command that starts a server was told beside a whole list of devices")
        return
    for launch in launches:
        sizes = _sizes(launch)
        devices, limit, shown = min(bounds[launch.origin], key=lambda one: one[0], default=(0, "", []))
        if not sizes or not devices:
            yield Undecided(reason="it is not told how many ranks run on this machine, or how many devices they have")
        elif prod(sizes.values()) > devices:
            yield _finding(launch, sizes, devices, limit, shown)
        elif all(one[1] for one in bounds[launch.origin]):
            yield Undecided(reason="no whole list tells whether the devices that the launch may use are there")


def _finding(launch: LaunchArguments, sizes: dict[str, int], devices: int, limit: str, shown: list[Fact]) -> Finding:
    large = [name for name, size in sizes.items() if size > 1]
    return Finding(
        subject=launch.model,
        values={
            "ranks": prod(sizes.values()),
            "product": " x ".join(f"{name} {size}" for name, size in sizes.items()),
            "devices": devices,
            "fits": 1 << (devices.bit_length() - 1),
            "flag": large[0],
            "limit": limit,
        },
        confidence="medium",
        remedies=("size" if len(large) == 1 else "product", "grant" if limit else "hosts"),
        evidence=(Evidence.of(launch), *map(Evidence.of, shown)),
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
    sizes = {name: ranks for name, value in given.items() if (ranks := count(value))}
    return sizes if len(sizes) == len(given) else {}


def _bounds(facts: Facts, launch: LaunchArguments) -> list[tuple[int, str, list[Fact]]]:
    """Each number of devices that the launch has at most, what sets it (nothing where the machine does), and where."""
    lists: dict[tuple[str, str, str], dict[int, Accelerator]] = {}
    for one in facts.all(Accelerator):
        if one.seen_by in ("tool", "torch") and one.index is not None:
            lists.setdefault((one.vendor, one.seen_by, one.origin.capture), {}).setdefault(one.index, one)
    listed = max(lists.values(), key=len, default={})
    whole = sorted(listed) == list(range(len(listed))) and _closed(facts, list(listed.values()))
    last = list(listed.values())[-1:]
    bounds: list[tuple[int, str, list[Fact]]] = [(len(listed), "", [*last])] if listed and whole else []
    for granted in (_visible(facts, launch, last[0].vendor if last else ""), _given(facts, launch)):
        bounds += [granted] if granted else []
    return bounds


def _closed(facts: Facts, listed: list[Accelerator]) -> bool:
    """Whether a list is no table, or one that goes on below its devices, so that none was torn off."""
    if not any("|" in one.origin.quote for one in listed):
        return True
    last = max((one.origin for one in listed), key=lambda origin: origin.line)
    below = [one.origin for one in facts.all(Text) if "device-processes" in one.kinds]
    below += [one.origin for one in facts.all(DeviceProcess)]
    return last.capture in TOOLS or any(one.capture == last.capture and last.line < one.line for one in below)


def _visible(facts: Facts, launch: LaunchArguments, vendor: str) -> tuple[int, str, list[Fact]] | None:
    """How many devices the strongest of the maker's variables that is set leaves visible."""
    settings: dict[str, tuple[str, Fact]] = {
        one.name: (one.value, one) for one in facts.all(Setting) if one.kind == "environment"
    }
    settings |= {name: (value, launch) for name, value in launch.environment}
    row = next((one for one in facts.all(Vendor) if one.vendor == vendor), None)
    name = next((one for one in row.visible if one in settings), "") if row else ""
    value, fact = settings.get(name, ("", launch))
    words = [word.strip() for word in value.split(",")]
    words = words[: words.index(HIDDEN)] if HIDDEN in words else words
    if not words or not all(word.isdecimal() or word.startswith(UNIQUE) for word in words):
        return None
    return len(set(words)), name, [] if fact is launch else [fact]


def _given(facts: Facts, launch: LaunchArguments) -> tuple[int, str, list[Fact]] | None:
    """How many devices the container of the command is given; a number alone may be an id, unless its line tells."""
    same = [one for one in facts.all(Container) if one.image and one.image == launch.image and not one.inside]
    same = [one for one in same if one.origin.capture == launch.origin.capture]
    nearest = min(same, key=lambda one: abs(one.origin.line - launch.origin.line), default=None)
    ids = nearest.gpus.split(",") if nearest else []
    if not nearest or not all(word.isdecimal() or word.startswith(UNIQUE) for word in ids):
        return None
    quote = nearest.origin.quote
    if len(ids) > 1 or not ids[0].isdecimal() or "device=" in quote:
        return len(ids), "--gpus", [nearest]
    if nearest.runtime == "kubernetes" or "--gpus" in quote:
        return int(ids[0]), "limits" if nearest.runtime == "kubernetes" else "--gpus", [nearest]
    return None
