"""What the processes below one are doing, as the kernel tells: their states, where they wait, what they compute.

It only reads files of `/proc`: nothing is stopped or traced. Where there is none (macOS), nothing is told.
What this cannot know: a process that was handed to another parent, and what those of another user wait for.
"""

from __future__ import annotations

import os
import termios
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

HERTZ = os.sysconf("SC_CLK_TCK")
MOST = 64
"""Processes that are told of."""
THREADS = 8
"""Threads of a process that are told of beside its first: those that compute or cannot be interrupted."""
BUSY, MUCH = ("D", "R"), 20
"""States, and percent of a processor, of a thread that is told of."""
FRAMES = 12
WORDS = 300
"""Characters of a command line."""
TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
COMMON = (*TERMINALS, "/dev/null", "/dev/zero", "/dev/shm/", "/dev/random", "/dev/urandom", "/dev/ptmx")
"""Files below `/dev` that any process may have open."""
TORCH = "/libtorch_cpu."
READ = {"x86_64": "0", "aarch64": "63"}
"""The number of the system call that reads."""
TTY_WAITS = ("n_tty_read", "wait_woken", "tty_read")


class Task(NamedTuple):
    """A process or a thread at one moment; `ticks` of processor time it has used, `system` of them in the kernel."""

    pid: int
    name: str
    state: str
    parent: int
    ticks: int
    system: int
    threads: int


def sampled(roots: Iterable[int], seconds: float) -> str:
    """Processes and those below them, each in a line, with where their threads wait; what they compute in `seconds`."""
    before = {pid: _tasks(pid) for root in roots for pid in family(root)}
    time.sleep(seconds)
    return "".join(_told(pid, seconds, earlier) for pid, earlier in list(before.items())[:MOST])


def family(root: int) -> list[int]:
    """A process and all that were started below it."""
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
            if task := _task(f"/proc/{pid}/stat"):
                children.setdefault(task.parent, []).append(pid)
    found = [root]
    for one in found:
        found += children.get(one, ())
    return found


def holding(pids: Iterable[int]) -> str:
    """Each process in a line: its threads, device files that it has open, and whether torch's library is mapped."""
    return "".join(_held(pid) for pid in list(pids)[:MOST])


def _held(pid: int) -> str:
    task = _task(f"/proc/{pid}/stat")
    if not task:
        return ""
    files = set()
    with suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                files.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    devices = sorted(one for one in files if one.startswith("/dev/") and not one.startswith(COMMON))
    torch = TORCH in _text(f"/proc/{pid}/maps")
    threads = " ".join(map(str, sorted(_tasks(pid))))
    held = f"{' '.join(devices) or 'no device'}{'; torch' if torch else ''}"
    return f"process {pid} ({task.name}) holds {held}; threads {threads}\n"


def parent(pid: int) -> int:
    """The process that started another, or that it was handed to; 0 where the kernel tells none."""
    task = _task(f"/proc/{pid}/stat")
    return task.parent if task else 0


def awaits_typing(root: int) -> bool:
    """Whether one of them waits for what somebody types at the terminal, which is no stall."""
    if any(map(_reads_terminal, family(root))):
        return True
    # A program that reads single keys waits for more than the terminal, but takes the lines from it.
    with suppress(termios.error, OSError):
        return not termios.tcgetattr(0)[3] & termios.ICANON
    return False


def _reads_terminal(pid: int) -> bool:
    call, fd = [*_text(f"/proc/{pid}/syscall").split(), "", ""][:2]
    if call.isdecimal() and os.uname().machine in READ:
        return call == READ[os.uname().machine] and _leads(pid, int(fd, 16))
    return _text(f"/proc/{pid}/wchan") in TTY_WAITS and _leads(pid, 0)


def _leads(pid: int, fd: int) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/{fd}").startswith(TERMINALS)
    return False


def _told(pid: int, seconds: float, earlier: dict[int, Task]) -> str:
    """What is told of a process, empty where it is gone."""
    if not (task := _task(f"/proc/{pid}/stat")):
        return ""
    now = _tasks(pid)
    used = {tid: _share(one.ticks, earlier[tid].ticks, seconds) for tid, one in now.items() if tid in earlier}
    system = sum(_share(one.system, earlier[tid].system, seconds) for tid, one in now.items() if tid in earlier)
    # Whoever waits in the kernel may hold what the kernel needs to read a command line.
    stuck = any(one.state == "D" for one in now.values())
    command = "" if stuck else " ".join(_text(f"/proc/{pid}/cmdline").replace("\0", " ").split())[:WORDS]
    head = (
        f"process {pid} ({task.name}), parent {task.parent}, state {task.state}, threads {task.threads}, "
        f"cpu {sum(used.values()):.0f} % ({system:.0f} % in the kernel): {command or '[' + task.name + ']'}\n"
    )
    busy = [tid for tid in now if tid != pid and (now[tid].state in BUSY or used.get(tid, 0.0) >= MUCH)]
    return head + "".join(_thread(pid, now[tid], used.get(tid, 0.0)) for tid in (pid, *busy[:THREADS]) if tid in now)


def _thread(pid: int, task: Task, used: float) -> str:
    folder = f"/proc/{pid}/task/{task.pid}"
    waits = _text(f"{folder}/wchan").strip("0")
    stack = [line.partition("] ")[2].partition("+")[0] for line in _text(f"{folder}/stack").splitlines()]
    below = f"    stack: {' < '.join(filter(None, stack[:FRAMES]))}\n" if any(stack) else ""
    where = f", waits in {waits}" if waits else ""
    return f"  thread {task.pid} ({task.name}), state {task.state}, cpu {used:.0f} %{where}\n{below}"


def _share(now: int, earlier: int, seconds: float) -> float:
    """Percent of one processor, from ticks."""
    return (now - earlier) / HERTZ / seconds * 100


def _tasks(pid: int) -> dict[int, Task]:
    def threads() -> Iterator[Task | None]:
        for tid in os.listdir(f"/proc/{pid}/task"):
            yield _task(f"/proc/{pid}/task/{tid}/stat")

    with suppress(OSError):
        return {one.pid: one for one in threads() if one}
    return {}


def state(pid: int) -> str:
    """The kernel's letter of what a process does, empty where it is gone."""
    task = _task(f"/proc/{pid}/stat")
    return task.state if task else ""


def _task(path: str) -> Task | None:
    head, _, rest = _text(path).rpartition(")")
    fields = rest.split()
    if len(fields) < 18:
        return None
    pid, _, name = head.partition(" (")
    user, system = int(fields[11]), int(fields[12])
    return Task(int(pid), name, fields[0], int(fields[1]), user + system, system, int(fields[17]))


def _text(path: str) -> str:
    """A file of the kernel, empty where it is not there or may not be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
