"""The kernel killed a process of an engine because memory ran out.

## What it finds
Kills in the kernel's log whose victim bears the name of an engine's process, or is a Python interpreter with 2 GiB in
memory or more: for a group's limit (`memcg`), for the memory of the host, or for that of a NUMA node the process was
bound to.

## Why it matters
The engine's log ends without a word, or says that a worker died; a container ends with exit code 137.

## What it cannot know
When it was, beside the stamp of the line, and what a Python process did that is named no further.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Answer, Evidence, Facts, Finding, HardwareEvent, Remedy, Text, Undecided, check, expression

ENGINES = expression(
    r"(?i)vllm|sglang|ray::|raylet|lmdeploy|mindie|trtllm|tritonserver|text-generation|llama|ollama|mooncake|"
    r"pt_main_thread|torchrun|enginecore"
)
PYTHON = expression(r"python[0-9.]*$")
RESIDENT = expression(r"(?:anon|shmem)-rss:([0-9][0-9,]{0,18})kB")
WORKER = 2 * 2**30
"""Bytes in memory from which on a Python process is taken to be a worker."""
CAUSES = {"memcg": "group", "global": "host"}

GLOBAL_PYTHON = """\
[Sun Mar 30 08:24:00 2025] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,\
task_memcg=/init.scope,task=python,pid=7899,uid=0
[Sun Mar 30 08:24:00 2025] Out of memory: Killed process 7899 (python) total-vm:26,184,840kB, \
anon-rss:153,700,88kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:38964kB oom_score_adj:0
"""
MEMCG_PT = """\
Aug 30 06:58:55.050705 ... kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),\
cpuset=cri-containerd-ec9ee26695deb4cc72bc665efff1cf3a03fdfb12f1303e02fe9252985e084a95.scope,mems_allowed=0-1,\
oom_memcg=/lxc.payload....-lxc/kubepods.slice/kubepods-burstable.slice/\
kubepods-burstable-podeded8c65_6e8e_4c6e_a889_3e427565c740.slice,\
task_memcg=/lxc.payload.ny2g2r5hh3-lxc/kubepods.slice/kubepods-burstable.slice/\
kubepods-burstable-podeded8c65_6e8e_4c6e_a889_3e427565c740.slice/\
cri-containerd-ec9ee26695deb4cc72bc665efff1cf3a03fdfb12f1303e02fe9252985e084a95.scope,\
task=pt_main_thread,pid=461754,uid=0
"""
MEMCG_UWSGI = """\
[ 7063.247407] Memory cgroup out of memory: Killed process 63214 (uwsgi) total-vm:3149468kB, anon-rss:164992kB, \
file-rss:52176kB, shmem-rss:92kB, UID:0 pgtables:1372kB oom_score_adj:986
[ 7063.263325] oom_reaper: reaped process 63214 (uwsgi), now anon-rss:0kB, file-rss:0kB, shmem-rss:92kB
"""
MEMCG_SMALL_PYTHON = """\
May 15 23:01:53 host-1 kernel: [  152.700479] Memory cgroup out of memory: Kill process 4142 (python3) score 68 or \
sacrifice child
May 15 23:01:53 host-1 kernel: [  152.701942] Killed process 4254 (python3) total-vm:11968kB, anon-rss:4288kB, \
file-rss:3972kB, shmem-rss:0kB
"""


@check(
    "host/killed-for-memory",
    severity="warning",
    about="host",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The kernel killed an engine's process because memory ran out",
            "summary": "{process} was killed for want of memory, {count}x in the kernel log{at.en}{code.en}",
            "cause": "The process, or all in its control group, took more memory than there is or than the group may "
            "take. The engine itself could not log it.",
        },
        "zh": {
            "title": "内存耗尽，内核杀死了推理引擎的进程",
            "summary": "{process} 因内存不足被杀死 {count} 次{at.zh}{code.zh}",
            "cause": "该进程或其控制组占用的内存超过了现有内存或控制组上限。引擎自身无法记录此事。",
        },
    },
    remedies=(
        Remedy(
            key="group",
            title={
                "en": "Give the container or job more memory (in Kubernetes: resources.limits.memory)",
                "zh": "为容器或作业分配更多内存（Kubernetes 中为 resources.limits.memory）",
            },
            commands=("docker run --memory=<size> …",),
            safety="disruptive",
            verify="sudo dmesg | grep -i 'out of memory'",
            source="https://github.com/vllm-project/vllm/issues/57469",
        ),
        Remedy(
            key="host",
            title={
                "en": "Free memory of the host: end what else runs, or lower CPU offload, swap space and the number of "
                "loading workers",
                "zh": "释放主机内存：结束其他程序，或减小 CPU offload、swap space 以及加载进程数",
            },
            commands=("free -h", "ps aux --sort=-rss | head"),
            safety="manual",
            verify="free -h",
            source="https://github.com/vectorch-ai/ScaleLLM/issues/38",
        ),
        Remedy(
            key="node",
            title={
                "en": "Do not bind the process to the memory of one NUMA node; spread it over all",
                "zh": "不要将进程绑定到单个 NUMA 节点的内存，改为分布到所有节点",
            },
            commands=("numactl --interleave=all <command>",),
            safety="disruptive",
            verify="numastat -p <pid>",
        ),
    ),
    sources=(
        "https://github.com/vllm-project/vllm/issues/57469",
        "https://github.com/leptonai/gpud/pull/70",
        "https://github.com/vectorch-ai/ScaleLLM/issues/38",
    ),
    fires=(GLOBAL_PYTHON, MEMCG_PT),
    silent=(MEMCG_UWSGI, MEMCG_SMALL_PYTHON),
)
def killed_for_memory(facts: Facts) -> Iterator[Answer]:
    """One finding for each name and each kind of limit."""
    kills: dict[tuple[str, str], list[HardwareEvent]] = {}
    for event in facts.all(HardwareEvent):
        name = re.sub(r"\[[0-9]+\]$", "", event.process)
        if event.kind == "oom-killer" and _engines(event):
            kills.setdefault((name, event.code), []).append(event)
    for (name, code), events in kills.items():
        key = CAUSES.get(code, "node" if code in ("memory-policy", "cpuset") else "")
        yield Finding(
            values={
                "process": name,
                "count": len(events),
                "at.en": events[-1].at and f", last at {events[-1].at}",
                "at.zh": events[-1].at and f"，最近一次在 {events[-1].at}",
                "code.en": code and f" (limit: {code})",
                "code.zh": code and f"（限制类型：{code}）",
            },
            subject=name,
            confidence="high" if ENGINES.search(name) else "medium",
            remedies=(key,) if key else (),
            evidence=tuple(map(Evidence.of, events[-3:])),
        )
    if not kills and not facts.read("kernel-log"):
        yield Undecided(reason="the kernel's log was not read")


def _engines(event: HardwareEvent) -> bool:
    """Whether the victim bears the name of an engine's process, or is a Python as large as a worker is."""
    name = re.sub(r"\[[0-9]+\]$", "", event.process)
    sizes = [int(size.replace(",", "")) for size in RESIDENT.findall(event.message)]
    return bool(ENGINES.search(name) or (PYTHON.match(name) and sum(sizes) * 1024 >= WORKER))
