"""A command that runs has written nothing for a while, and does not wait for its terminal.

## What it finds
What its processes do meanwhile, the worst first: one waits in the kernel and cannot be interrupted (state D), one was
stopped (T), one computes, or all of them wait.

## Why it matters
A rank that waits for another, a file system that does not answer and a loop that never ends look alike from outside,
and each has another way out.

## What it cannot know
Whether the command had anything to write: a server without requests is quiet, too. What is told of the kernel is of one
second.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Answer,
    CommandEnd,
    CommandStall,
    Evidence,
    Facts,
    Finding,
    ProcessState,
    PythonStack,
    Reading,
    Remedy,
    check,
)

READY = "R"
BUSY = 50
"""Percent of a processor from which on a process computes."""
OTHERS = 7
"""Processes that are told of beside the worst."""
DOES = {
    "kernel": (
        "{who} waits in the kernel ({where}) and cannot be interrupted",
        "{who} 在内核中等待（{where}），无法中断",
    ),
    "stopped": ("{who} was stopped (SIGSTOP, or a debugger)", "{who} 已被暂停（SIGSTOP 或调试器）"),
    "computes": ("{who} computes ({where})", "{who} 正在计算（{where}）"),
    "untold": ("what its processes do is not told", "其进程的状态未知"),
    "waits": ("all of its processes wait ({who} in {where})", "其所有进程都在等待（{who} 位于 {where}）"),
}
SPINS = """\
diag run: torchrun wrote nothing for 120 s
process 812 (torchrun), parent 811, state S, threads 3, cpu 0 %: torchrun --nproc-per-node 2 train.py
  thread 812 (torchrun), state S, cpu 0 %, waits in hrtimer_nanosleep
process 901 (pt_main_thread), parent 812, state R, threads 61, cpu 100 %: python train.py
  thread 901 (pt_main_thread), state R, cpu 100 %
"""
SHARES = """\
diag run: python3 wrote nothing for 2 s
process 11703 (python3), parent 11702, state R, threads 1, cpu 22 %: python3 loop.py
  thread 11703 (python3), state R, cpu 22 %
"""
NFS = """\
diag run: python3 wrote nothing for 60 s
process 412 (python3), parent 411, state D, threads 1, cpu 0 %: [python3]
  thread 412 (python3), state D, cpu 0 %, waits in nfs_wait_bit_killable
"""
WAITS = """\
diag run: python3 wrote nothing for 60 s
process 412 (python3), parent 411, state S, threads 9, cpu 0 %: python3 serve.py
  thread 412 (python3), state S, cpu 0 %, waits in futex_wait_queue
Process 412: python3 serve.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 412 (idle): "MainThread"
    wait (threading.py:320)
    join (serve.py:41)
"""
UNTOLD = "diag run: python3 wrote nothing for 60 s\n"
WENT_ON = f"{WAITS}diag run: python3 exited with code 0 after 300.0 s\n"


@check(
    "process/stalled",
    severity="warning",
    about="process",
    needs=(),
    uses=(CommandStall, CommandEnd, ProcessState, PythonStack, Reading),
    words={
        "en": {
            "title": "The command runs and writes nothing",
            "summary": "{program} wrote nothing for {seconds} s: {does.en}{python.en}",
            "cause": "Nothing was written and nothing is awaited from the terminal. In the kernel a process waits for "
            "a device, a driver or a file system; one that computes may be in a loop, or poll for a device or another "
            "rank; one that waits does so for another process, thread, rank or request.",
        },
        "zh": {
            "title": "命令仍在运行但没有输出",
            "summary": "{program} 已 {seconds} 秒没有输出：{does.zh}{python.zh}",
            "cause": "没有任何输出，也没有在等待终端输入。内核中的等待针对设备、驱动或文件系统；"
            "正在计算的进程可能处于循环，或在轮询设备或其他 rank；等待的进程在等其他进程、线程、rank 或请求。",
        },
    },
    remedies=(
        Remedy(
            key="kernel",
            title={
                "en": "See what the kernel says of the device or file system that it waits for",
                "zh": "查看内核对所等待的设备或文件系统的报告",
            },
            commands=("sudo dmesg -T | tail -50", "sudo cat /proc/<pid>/stack"),
            safety="safe",
            source="https://docs.kernel.org/filesystems/proc.html",
        ),
        Remedy(
            key="stopped",
            title={"en": "Continue it", "zh": "恢复其运行"},
            commands=("kill -CONT <pid>",),
            safety="safe",
            source="https://docs.kernel.org/filesystems/proc.html",
        ),
        Remedy(
            key="stacks",
            title={
                "en": "See where each process is in its program, twice, some seconds apart",
                "zh": "间隔数秒两次查看每个进程在程序中的位置",
            },
            commands=("py-spy dump --pid <pid>",),
            safety="safe",
            source="https://github.com/benfred/py-spy",
        ),
    ),
    applies=lambda facts: "" if facts.first(CommandStall) else "no command that diag ran was quiet",
    sources=("https://docs.kernel.org/filesystems/proc.html", "https://github.com/benfred/py-spy"),
    fires=(SPINS, SHARES, NFS, WAITS, UNTOLD),
    silent=(WENT_ON,),
)
def stalled(facts: Facts) -> Iterator[Answer]:
    """One finding for the command, unless it went on and ended well."""
    stall = facts.all(CommandStall)[-1]
    kind, worst = _worst(facts.all(ProcessState))
    if any(one.exit_code == 0 for one in facts.all(CommandEnd)):
        return
    stacks = sorted(facts.all(PythonStack), key=lambda one: (not worst or one.pid != worst.pid, not one.active))[:3]
    english, chinese = (one.format(**_named(worst)) for one in DOES[kind])
    others = [one for one in facts.all(ProcessState) if one.thread is None and one is not worst][:OTHERS]
    innermost = next((one.frames[0] for one in stacks if one.frames), "")
    yield Finding(
        values={
            "program": stall.program,
            "seconds": f"{stall.seconds:g}",
            "does.en": english,
            "does.zh": chinese,
            "python.en": innermost and f"; its Python is in {innermost}",
            "python.zh": innermost and f"；Python 位于 {innermost}",
        },
        subject=stall.program,
        confidence="high" if kind == "stopped" else "medium",
        remedies=(kind,) if kind in ("kernel", "stopped") else ("stacks",),
        evidence=tuple(map(Evidence.of, filter(None, (stall, worst, *others, *stacks, *_used(facts))))),
    )


def _worst(states: tuple[ProcessState, ...]) -> tuple[str, ProcessState | None]:
    """The process or thread that most likely holds up the rest, and what it does."""
    for kind, letters in (("kernel", "D"), ("stopped", "Tt")):
        if found := next((one for one in states if one.state in letters), None):
            return kind, found
    if not states:
        return "untold", None
    # On a busy machine one that computes may get little of a processor: it is ready to run all the same.
    busy = max(states, key=lambda one: (one.state == READY, one.cpu or 0, bool(one.waits_in)))
    if busy.state == READY or (busy.cpu or 0) >= BUSY:
        return "computes", busy
    return "waits", next((one for one in states if one.waits_in), busy)


def _named(worst: ProcessState | None) -> dict[str, str]:
    """Who it is, and where it is."""
    if worst is None:
        return {}
    where = worst.waits_in or (f"{worst.cpu:.0f} %" if worst.cpu else f"state {worst.state}")
    return {"who": f"{worst.name} ({worst.pid})", "where": where}


def _used(facts: Facts) -> list[Reading]:
    """How much the devices are used meanwhile."""
    return [one for one in facts.all(Reading) if one.name == "utilization"][:8]
