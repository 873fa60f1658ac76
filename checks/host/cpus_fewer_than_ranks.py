"""An engine may run on fewer CPUs than it has processes.

## What it finds
The CPUs that are left by the quota of the control group (`cpu.max`, `cpu.cfs_quota_us`), by its set of CPUs, by the
affinity of the process and by the machine, where they are fewer than the accelerators and two.

## Why it matters
vLLM starts a process for each device, one that schedules in a busy loop and one that serves requests. With fewer CPUs
than processes they wait for each other, and the devices wait for them.

## What it cannot know
How many of the devices the launch will use, and whether the engine is started from this shell. It counts logical CPUs,
of which two may share a core: enough of them does not mean that all is well.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Accelerator,
    Answer,
    Evidence,
    Fact,
    Facts,
    Finding,
    Host,
    Remedy,
    Setting,
    Undecided,
    check,
    devices,
)

BESIDE = 2
"""The server and the scheduler."""
SETS = {
    ("cgroup", "cpuset.cpus.effective"): "container",
    ("cgroup", "cpuset.cpus"): "container",
    ("limit", "cpus_allowed"): "affinity",
}

GPUS_8 = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
GPU 2: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
GPU 3: NVIDIA A100-SXM4-80GB (UUID: GPU-00000000-0000-0000-0000-000000000000)
"""
SET_4 = """\
# cat /sys/fs/cgroup/cpuset.cpus.effective
0-3
"""
ALLOWED_2 = """\
$ srun -l --ntasks-per-node=1 grep Cpus_allowed_list /proc/self/status
0: Cpus_allowed_list:   0,6
"""
ALLOWED_16 = """\
Cpus_allowed:\t0000ffff
Cpus_allowed_list:\t0-15
Mems_allowed_list:\t0
"""
QUOTA_NONE = """\
$ cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us
-1
$ cat /sys/fs/cgroup/cpu/cpu.cfs_period_us
100000
"""


@check(
    "host/cpus-fewer-than-ranks",
    severity="warning",
    about="host",
    needs=(Accelerator,),
    uses=(Host, Setting),
    words={
        "en": {
            "title": "An engine may run on fewer CPUs than it has processes",
            "summary": "{told} leaves {cpus} CPU(s); an engine on {devices} device(s) has at least {wanted} processes",
            "cause": "The container, the job or the machine has few CPUs. The scheduler's process runs in a busy loop; "
            "with fewer CPUs than processes they wait for each other while the devices stand idle.",
        },
        "zh": {
            "title": "推理引擎可用的 CPU 少于其进程数",
            "summary": "{told} 仅留下 {cpus} 个 CPU；在 {devices} 个设备上引擎至少有 {wanted} 个进程",
            "cause": "容器、作业或机器的 CPU 过少。调度进程以忙循环运行，"
            "CPU 少于进程数时各进程相互等待，设备则处于空闲。",
        },
    },
    remedies=(
        Remedy(
            key="container",
            title={
                "en": "Start the container with more CPUs (in Kubernetes: resources.limits.cpu)",
                "zh": "以更多 CPU 启动容器（Kubernetes 中为 resources.limits.cpu）",
            },
            commands=("docker run --cpus=<number> …",),
            safety="disruptive",
            verify="nproc; cat /sys/fs/cgroup/cpu.max",
            source="https://github.com/vllm-project/vllm/pull/33940",
        ),
        Remedy(
            key="affinity",
            title={
                "en": "Ask the scheduler of jobs for more CPUs, or start the engine without the affinity",
                "zh": "向作业调度系统申请更多 CPU，或在不设亲和性的情况下启动引擎",
            },
            commands=("srun --cpus-per-task=<number> …",),
            safety="disruptive",
            verify="grep Cpus_allowed_list /proc/self/status",
            source="https://github.com/NVIDIA/pyxis/issues/40",
        ),
        Remedy(
            key="machine",
            title={
                "en": "Use a machine with more CPUs, or fewer devices of this one",
                "zh": "使用 CPU 更多的机器，或减少使用的设备",
            },
            safety="manual",
            verify="nproc",
            source="https://github.com/vllm-project/vllm/pull/33940",
        ),
    ),
    sources=("https://github.com/vllm-project/vllm/pull/33940", "https://github.com/NVIDIA/pyxis/issues/40"),
    fires=(GPUS_8 + SET_4, GPUS_8 + ALLOWED_2),
    silent=(GPUS_8 + ALLOWED_16 + QUOTA_NONE,),
)
def cpus_fewer_than_ranks(facts: Facts) -> Iterator[Answer]:
    """Compare what is left by the tightest of the limits with the processes of an engine."""
    count = len([one for one in devices(facts) if one.seen_by in ("tool", "torch")])
    left = list(_left(facts))
    if not count or not left:
        yield Undecided(reason="the devices and the CPUs that a process may use are not both told")
        return
    cpus, name, key, fact = min(left, key=lambda one: one[0])
    if cpus < count + BESIDE:
        yield Finding(
            values={"told": name, "cpus": f"{cpus:g}", "devices": count, "wanted": count + BESIDE},
            confidence="medium",
            remedies=(key,),
            evidence=(Evidence.of(fact),),
        )


def _left(facts: Facts) -> Iterator[tuple[float, str, str, Fact]]:
    """How many CPUs each limit leaves, its name, the remedy for it and the fact that tells it."""
    told: dict[tuple[str, str], Setting] = {(one.kind, one.name): one for one in facts.all(Setting)}
    for place, key in SETS.items():
        if (held := told.get(place)) and (cpus := _listed(held.value)):
            yield cpus, held.name, key, held
    quota, period = (told.get(("cgroup", name)) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    both = told.get(("cgroup", "cpu.max"))
    for held, text in ((both, both and both.value), (quota, period and quota and f"{quota.value} {period.value}")):
        numbers = [int(word) for word in (text or "").split() if word.isdecimal()]
        if held and len(numbers) == 2 and numbers[0] and numbers[1]:
            yield numbers[0] / numbers[1], held.name, "container", held
    for host in facts.all(Host):
        if host.cpus:
            yield host.cpus, "CPU(s)", "machine", host


def _listed(text: str) -> int:
    """How many CPUs a list of the kernel names (`0-3,8`), none where it is no such list."""
    total = 0
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return 0
        total += int(last or first) - int(first) + 1
    return total
