"""A user, or a container, may have few processes and threads.

## What it finds
A limit (`ulimit -u`, `pids.max`) below what an engine starts: a process for each device and two more, each of which
starts a thread for each CPU, up to 64, when it loads a linear-algebra library.

## Why it matters
Above the limit threads cannot start: "pthread_create failed … Resource temporarily unavailable", "can't start new
thread".

## What it cannot know
How many threads the engine really starts, and how many others the user has: `ulimit -u` counts those of the user on
the whole machine. Root is not bound by `ulimit -u`, but is by `pids.max`.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Facts,
    Finding,
    Host,
    Remedy,
    Setting,
    Undecided,
    User,
    check,
    devices,
)

BESIDE = 2
"""Processes of an engine beside the one for each device: the server and the scheduler."""
POOL = 64
"""Threads that one library's pool has at most."""
FREE = ("unlimited", "max")

GPUS = """\
GPU 6: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
GPU 7: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
"""
LSCPU = """\
Architecture:                         x86_64
CPU op-mode(s):                       32-bit, 64-bit
CPU(s):                               208
On-line CPU(s) list:                  0-207
Model name:                           Intel(R) Xeon(R) Platinum 8480+
NUMA node(s):                         2
NUMA node0 CPU(s):                    0-103
NUMA node1 CPU(s):                    104-207
"""
LIMIT_9 = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             9                    99                   processes
Max open files            1024                 4096                 files
"""
LIMIT_96365 = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max processes             96365                96365                processes
Max open files            20000                20000                files
"""


@check(
    "host/processes-few",
    severity="warning",
    about="host",
    needs=(Setting,),
    uses=(Accelerator, Host, User),
    words={
        "en": {
            "title": "The limit of processes and threads is too small for an engine",
            "summary": "{name} allows {limit} processes and threads; an engine on {devices} device(s) and {cpus} CPUs "
            "may start {wanted}",
            "cause": "The limit is that of a container runtime, a systemd slice or the user. Every thread counts, "
            "and libraries start one for each CPU in every process.",
        },
        "zh": {
            "title": "进程与线程数上限过小，推理引擎可能无法创建线程",
            "summary": "{name} 仅允许 {limit} 个进程和线程；"
            "在 {devices} 个设备、{cpus} 个 CPU 上引擎可能启动 {wanted} 个",
            "cause": "该上限来自容器运行时、systemd slice 或用户限制。每个线程都计入其中，"
            "而各进程中的库会为每个 CPU 启动一个线程。",
        },
    },
    remedies=(
        Remedy(
            key="fewer",
            title={
                "en": "Let the libraries start fewer threads",
                "zh": "让库启动更少的线程",
            },
            commands=("export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1",),
            safety="safe",
            verify="ulimit -u; cat /sys/fs/cgroup/pids.max",
            source="https://github.com/vllm-project/vllm/issues/5645",
        ),
        Remedy(
            key="more",
            title={
                "en": "Raise the limit where the engine is started",
                "zh": "在启动引擎的地方提高上限",
            },
            commands=("docker run --pids-limit -1 --ulimit nproc=-1 …",),
            safety="disruptive",
            verify="ulimit -u; cat /sys/fs/cgroup/pids.max",
            source="https://github.com/docker/cli/blob/master/docs/reference/commandline/container_run.md",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/5645",
        "https://github.com/MIC-DKFZ/nnUNet/issues/1343",
        "https://github.com/vllm-project/vllm/pull/33940",
    ),
    fires=(GPUS + LSCPU + LIMIT_9,),
    silent=(GPUS + LSCPU + LIMIT_96365,),
)
def processes_few(facts: Facts) -> Iterator[Answer]:
    """Compare the smallest limit with a pool of threads in each process of an engine."""
    cpus, count = facts.field(Host, "cpus"), len(devices(facts))
    bound = [one for one in map(_limit, facts.all(Setting)) if one]
    bound = [one for one in bound if one[1].name != "nproc" or not any(user.uid == 0 for user in facts.all(User))]
    if not bound or not cpus or not count:
        yield Undecided(reason="the limit of processes, the number of CPUs and the devices are not all told")
        return
    limit, setting = min(bound, key=lambda one: one[0])
    wanted = (BESIDE + count) * min(cpus, POOL)
    if limit < wanted:
        values = {"name": setting.name, "limit": setting.value, "devices": count, "cpus": cpus, "wanted": wanted}
        yield Finding(values=values, confidence="medium", evidence=(Evidence.of(setting),))


def _limit(setting: Setting) -> tuple[float, Setting] | None:
    """The number of processes a setting allows, None where it is about something else."""
    named = {("limit", "nproc"), ("cgroup", "pids.max")}
    if (setting.kind, setting.name) not in named or not (setting.value.isdecimal() or setting.value in FREE):
        return None
    return (float("inf") if setting.value in FREE else int(setting.value), setting)
