"""`/dev/shm` is at the container default of 64 MiB or below it.

## What it finds
The size of the file system mounted on `/dev/shm`, as `df` prints it or as its mount options limit it, where it is no
larger than the default a container runtime gives.

## Why it matters
Collective libraries and the workers of an engine keep their shared segments there; the first tensor-parallel start
fails or hangs when it is full.

## What it cannot know
How much the launch needs: a single-device server may run for ever in 64 MiB. Hence a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, Mount, Remedy, Undecided, check

DEFAULT_BYTES = 64 * 2**20

DF_64M = """\
$ df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
shm              64M     0   64M   0% /dev/shm
"""
DF_24G = """\
$ df -h /dev/shm
Filesystem      Size  Used Avail Use% Mounted on
tmpfs            24G     0   24G   0% /dev/shm
"""
MOUNT_24G = """\
/dev/vda on / type ext4 (rw,relatime,discard,resv_strict,resuid=65534,resgid=65534)
tmpfs on /dev/shm type tmpfs (rw,relatime,size=24684092k)
"""


@check(
    "host/shared-memory-small",
    severity="warning",
    about="host",
    needs=(Mount,),
    words={
        "en": {
            "title": "/dev/shm is too small for several ranks",
            "summary": "/dev/shm holds {mib} MiB; several ranks on one host need more",
            "cause": "The container was started with the runtime's default of 64 MiB for /dev/shm, in which the "
            "collective library and the engine's workers keep their shared segments.",
        },
        "zh": {
            "title": "/dev/shm 过小，不足以支持多个 rank",
            "summary": "/dev/shm 仅 {mib} MiB，单机多 rank 运行需要更大空间",
            "cause": "容器以默认的 64 MiB /dev/shm 启动，而集合通信库和推理引擎的工作进程都要使用它。",
        },
    },
    remedies=(
        Remedy(
            key="start-with-more",
            title={
                "en": "Start the container with more shared memory",
                "zh": "以更大的共享内存重新启动容器",
            },
            commands=("docker run --shm-size=16g …",),
            safety="disruptive",
            verify="df -h /dev/shm",
            source="https://github.com/pytorch/ci-infra/pull/490",
        ),
        Remedy(
            key="mount-memory",
            title={
                "en": "In Kubernetes, mount a memory-backed emptyDir on /dev/shm",
                "zh": "在 Kubernetes 中将基于内存的 emptyDir 挂载到 /dev/shm",
            },
            safety="disruptive",
            verify="df -h /dev/shm",
            source="https://github.com/pytorch/ci-infra/pull/490",
        ),
    ),
    sources=("https://github.com/pytorch/ci-infra/pull/490",),
    explains=("collectives/rank-died", "collectives/call-failed"),
    fires=(DF_64M,),
    silent=(DF_24G, MOUNT_24G),
)
def shared_memory_small(facts: Facts) -> Iterator[Answer]:
    """Compare the mount with the default of container runtimes."""
    sized = [one for one in facts.all(Mount) if one.path == "/dev/shm" and one.size_bytes is not None]
    if not sized:
        yield Undecided(reason="the size of /dev/shm is not told")
    for size in dict.fromkeys(one.size_bytes or 0 for one in sized):
        if size <= DEFAULT_BYTES:
            same = next(one for one in sized if one.size_bytes == size)
            yield Finding(values={"mib": size // 2**20}, evidence=(Evidence.of(same),))
