"""Memory ran out, and the kernel killed a process that is not known as an engine's.

## What it finds
Kills in the kernel's log whose victim is neither named like an engine's process nor a large Python.

## Why it matters
Memory was short on this machine, or in a group, at that time; the next victim may be the engine.

## What it cannot know
Whether the group has to do with the engine, and whether the shortage is over.
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

GLOBAL_PERL = """\
[user@host-1:~]$ dmesg --time-format iso  | grep oom
2024-04-29T14:55:41,678629+02:00 pool invoked oom-killer: gfp_mask=0x6200ca(GFP_HIGHUSER_MOVABLE), order=0, \
oom_score_adj=0
2024-04-29T14:55:41,679685+02:00 oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,\
global_oom,task_memcg=/user.slice/user-21417.slice/user@21417.service,task=perl,pid=1440763,uid=21417
2024-04-29T14:55:41,679700+02:00 Out of memory: Killed process 1440763 (perl) total-vm:87033376kB, \
anon-rss:60356340kB, file-rss:0kB, shmem-rss:0kB, UID:21417 pgtables:169956kB oom_score_adj:0
"""
MEMCG_SMALL_PYTHON = """\
May 15 23:01:53 host-1 kernel: [  152.700479] Memory cgroup out of memory: Kill process 4142 (python3) score 68 or \
sacrifice child
May 15 23:01:53 host-1 kernel: [  152.701942] Killed process 4254 (python3) total-vm:11968kB, anon-rss:4288kB, \
file-rss:3972kB, shmem-rss:0kB
"""
GLOBAL_LARGE_PYTHON = """\
[Sun Mar 30 08:24:00 2025] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,\
task_memcg=/init.scope,task=python,pid=7899,uid=0
[Sun Mar 30 08:24:00 2025] Out of memory: Killed process 7899 (python) total-vm:26,184,840kB, \
anon-rss:153,700,88kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:38964kB oom_score_adj:0
"""


@check(
    "host/other-process-killed-for-memory",
    severity="info",
    about="host",
    needs=(),
    uses=(HardwareEvent, Text),
    words={
        "en": {
            "title": "The kernel killed a process because memory ran out",
            "summary": "a process was killed for want of memory, {count}x in the kernel log{last.en}",
            "cause": "The machine, or a control group with a limit, had no memory left.",
        },
        "zh": {
            "title": "内存耗尽，内核杀死了进程",
            "summary": "因内存不足杀死进程 {count} 次{last.zh}",
            "cause": "机器或设有上限的控制组已无可用内存。",
        },
    },
    remedies=(
        Remedy(
            key="look",
            title={"en": "See who takes the memory", "zh": "查看哪些程序占用内存"},
            commands=("free -h", "ps aux --sort=-rss | head"),
            safety="safe",
            verify="free -h",
        ),
    ),
    sources=("https://github.com/docker/for-linux/issues/1001",),
    fires=(GLOBAL_PERL, MEMCG_SMALL_PYTHON),
    silent=(GLOBAL_LARGE_PYTHON,),
)
def other_process_killed_for_memory(facts: Facts) -> Iterator[Answer]:
    """One finding for all of them."""
    kills = [one for one in facts.all(HardwareEvent) if one.kind == "oom-killer" and not _engines(one)]
    if kills:
        last = kills[-1]
        words = [last.process, last.at, last.code and f"({last.code})"]
        told = " ".join(filter(None, words))
        yield Finding(
            values={
                "count": len(kills),
                "last.en": told and f", last: {told}",
                "last.zh": told and f"，最近一次：{told}",
            },
            evidence=tuple(map(Evidence.of, kills[-3:])),
        )
    elif not facts.read("kernel-log") and not _read(facts):
        yield Undecided(reason="the kernel's log was not read")


def _read(facts: Facts) -> bool:
    """Whether a line of that log told of a kill at all."""
    return any(one.kind == "oom-killer" for one in facts.all(HardwareEvent))


def _engines(event: HardwareEvent) -> bool:
    """Whether the victim bears the name of an engine's process, or is a Python as large as a worker is."""
    name = re.sub(r"\[[0-9]+\]$", "", event.process)
    sizes = [int(size.replace(",", "")) for size in RESIDENT.findall(event.message)]
    return bool(ENGINES.search(name) or (PYTHON.match(name) and sum(sizes) * 1024 >= WORKER))
