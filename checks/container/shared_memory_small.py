"""A container with accelerators is given no more than 64 MiB of shared memory.

## What it finds
A container of an engine, or one that was given devices, that does not share the host's memory (`--ipc=host`): with a
size that was stated and is no more than the default of container runtimes; or, of a command that starts an engine with
several ranks, with no size at all.

## Why it matters
Collective libraries and the engine's workers keep their segments in `/dev/shm`: a start over several devices fails or
hangs when it is full.

## What it cannot know
Whether something else is mounted on `/dev/shm` (`--tmpfs`, a volume), or whether the daemon's default was raised: hence
medium confidence where no size was stated.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Container, Evidence, Facts, Finding, LaunchArguments, Remedy, Undecided, check

DEFAULT_BYTES = 64 * 2**20
RANKS = ("tensor-parallel-size", "tp-size", "pipeline-parallel-size", "pp-size", "data-parallel-size", "dp-size")
ENGINES = ("vllm", "sglang", "lmdeploy", "mindie", "tritonserver", "trtllm", "text-generation-inference")

HOST_IPC = """\
sudo docker run --gpus all -v "/home/opc/models/Meta-Llama-3.1-405B-Instruct-AWQ-INT4:/mnt/model" -p 8000:8000 \
--env "TRANSFORMERS_OFFLINE=1" --env "HF_DATASETS_OFFLINE=1" --ipc=host vllm/vllm-openai:latest \
--tensor-parallel-size 8
"""
PRIVATE = HOST_IPC.replace(" --ipc=host", "")
STATED = HOST_IPC.replace("--ipc=host", "--shm-size=64m")


@check(
    "container/shared-memory-small",
    severity="warning",
    about="container",
    needs=(Container,),
    uses=(LaunchArguments,),
    words={
        "en": {
            "title": "The container has too little shared memory for several ranks",
            "summary": "{container.en} is started with {size.en} of /dev/shm and without the host's",
            "cause": "Neither --ipc=host nor a larger --shm-size is given, so that the default holds: 64 MiB.",
        },
        "zh": {
            "title": "容器的共享内存不足以运行多个 rank",
            "summary": "{container.zh} 启动时 /dev/shm 为 {size.zh}，且未共享主机 IPC",
            "cause": "既没有 --ipc=host，也没有更大的 --shm-size，因此使用容器运行时的默认值 64 MiB。",
        },
    },
    remedies=(
        Remedy(
            key="docker",
            title={
                "en": "Start it with the host's shared memory, or with more",
                "zh": "使用主机共享内存或更大的共享内存启动",
            },
            commands=("docker run --ipc=host …", "docker run --shm-size=16g …"),
            safety="disruptive",
            verify="docker exec CONTAINER df -h /dev/shm",
            source="https://docs.vllm.ai/en/v0.4.2/serving/deploying_with_docker.html",
        ),
    ),
    sources=(
        "https://docs.vllm.ai/en/v0.4.2/serving/deploying_with_docker.html",
        "https://github.com/vllm-project/vllm/pull/1125",
        "https://github.com/pytorch/pytorch/issues/1158",
        "https://github.com/vllm-project/vllm-ascend/pull/3519",
    ),
    explains=(
        "host/shared-memory-small",
        "collectives/rank-died",
        "collectives/call-failed",
    ),
    fires=(PRIVATE, STATED),
    silent=(HOST_IPC,),
)
def shared_memory_small(facts: Facts) -> Iterator[Answer]:
    """Look at the containers that compute."""
    ranked = {one.image for one in facts.all(LaunchArguments) if _ranks(one) > 1}
    judged = False
    for container in facts.all(Container):
        if container.inside or container.runtime == "kubernetes" or not _computes(container):
            continue
        judged = True
        stated = container.shm_bytes
        small = stated is not None and stated <= DEFAULT_BYTES
        unstated = stated is None and container.image in ranked and "/dev/shm" not in container.mounts
        if not _shares(container) and (small or unstated):
            name, size = (
                container.name or container.image,
                f"{(DEFAULT_BYTES if stated is None else stated) // 2**20} MiB",
            )
            yield Finding(
                values={
                    "container.en": name or "the container",
                    "container.zh": name or "容器",
                    "size.en": f"{size} (the default)" if stated is None else size,
                    "size.zh": f"{size}（默认值）" if stated is None else size,
                },
                subject=container.name and f"container {container.name}",
                confidence="high" if small else "medium",
                evidence=(Evidence.of(container),),
            )
    if not judged:
        yield Undecided(reason="no container of an engine, and none with devices, was told from outside")


def _computes(container: Container) -> bool:
    return bool(container.gpus or container.devices) or any(name in container.image for name in ENGINES)


def _shares(container: Container) -> bool:
    """Whether its shared memory is the host's, or another container's."""
    return container.ipc == "host" or container.ipc.startswith("container:") or "/dev/shm" in container.mounts


def _ranks(launch: LaunchArguments) -> int:
    sizes = (value for name, value in launch.flags if name in RANKS and value.isdecimal())
    return max(map(int, sizes), default=1)
