"""The kernel killed a process of the command because memory ran out.

## What it finds
A command that failed under `diag run`, while the kernel killed a process of its control group for want of memory (as
the group counts) or any process (as the kernel's log says).

## Why it matters
A process that is killed so writes nothing: its own log ends in the middle, and the exit code 137 has other causes, too.

## What it cannot know
Which process it was, where the log cannot be read: a group may hold others beside the command.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    CommandEnd,
    Evidence,
    Facts,
    Finding,
    GroupKills,
    HardwareEvent,
    Remedy,
    Text,
    Undecided,
    check,
)

KILL = "SIGKILL"
KILLED = 137
"""The exit code by which a shell, or a program that started another, tells of that signal."""

GROUP = """\
diag run: python3 died with <Signals.SIGKILL: 9> after 4.2 s, at most 290.1 MiB in one process
diag run: the kernel killed 1 of its control group for want of memory (memory.events oom_kill 0 -> 1, \
limit 314572800 bytes)
"""
WORKER = """\
diag run: vllm exited with code 1 after 93.0 s
[72591.605071] Out of memory: Killed process 7899 (python) total-vm:26184840kB, anon-rss:15370088kB, file-rss:0kB, \
shmem-rss:0kB, UID:0 pgtables:38964kB oom_score_adj:0
"""
ENDED_WELL = GROUP.replace("died with <Signals.SIGKILL: 9>", "exited with code 0")


@check(
    "process/killed-for-memory",
    severity="error",
    about="process",
    needs=(),
    uses=(CommandEnd, GroupKills, HardwareEvent, Text),
    words={
        "en": {
            "title": "The kernel killed a process of the command because memory ran out",
            "summary": "while {program} ran, the kernel killed {count} for want of memory{limit.en}",
            "cause": "The command's processes, with all else in their control group or on the host, took more memory "
            "than there is or than the group may take. Weights pass through the memory of the host while they are "
            "loaded; /dev/shm counts, too.",
        },
        "zh": {
            "title": "内存耗尽，内核杀死了该命令的进程",
            "summary": "{program} 运行期间，内核因内存不足杀死了 {count} 个进程{limit.zh}",
            "cause": "该命令的进程与其控制组或主机上的其他进程占用的内存超过了现有内存或控制组上限。"
            "加载权重时需经过主机内存；/dev/shm 也计入。",
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
            verify="cat /sys/fs/cgroup/memory.events",
            source="https://docs.kernel.org/admin-guide/cgroup-v2.html",
        ),
        Remedy(
            key="less",
            title={
                "en": "See who takes the memory; let fewer workers load at once, lower CPU offload and swap space",
                "zh": "查看占用内存的程序；减少同时加载的进程，减小 CPU offload 与 swap space",
            },
            commands=("free -h", "ps aux --sort=-rss | head"),
            safety="manual",
            verify="free -h",
        ),
    ),
    applies=lambda facts: "" if facts.first(CommandEnd) else "no command that diag ran has ended",
    sources=("https://docs.kernel.org/admin-guide/cgroup-v2.html",),
    explains=("container/killed-from-outside", "host/killed-for-memory", "host/other-process-killed-for-memory"),
    fires=(GROUP, WORKER),
    silent=(ENDED_WELL,),
)
def killed_for_memory(facts: Facts) -> Iterator[Answer]:
    """One finding for the command, with all that tells of a kill."""
    end = facts.all(CommandEnd)[-1]
    groups = facts.all(GroupKills)
    kills = [one for one in facts.all(HardwareEvent) if one.kind == "oom-killer"]
    killed = end.signal == KILL or end.exit_code == KILLED
    if end.exit_code != 0 and (groups or kills):
        limit = next((one.limit for one in groups if one.limit), None)
        gib = f"{(limit or 0) / 2**30:.4g} GiB"
        yield Finding(
            values={
                "program": end.program,
                "count": max(len(kills), *(one.count for one in groups), 1),
                "limit.en": f"; its control group may take {gib}" if limit else "",
                "limit.zh": f"；其控制组上限为 {gib}" if limit else "",
            },
            subject=end.program,
            confidence="high" if killed else "medium",
            remedies=("group", "less") if groups else ("less",),
            evidence=(*map(Evidence.of, groups), *map(Evidence.of, kills[-3:]), Evidence.of(end)),
        )
    elif killed and not facts.read("kernel-log"):
        yield Undecided(reason="neither the control group nor the kernel's log tells who sent SIGKILL")
