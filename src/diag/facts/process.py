"""Commands and their processes: how one ended, and what they do while nothing is heard of them."""

from __future__ import annotations

from diag.facts.base import Passing


class CommandEnd(Passing, frozen=True, kw_only=True):
    """How a command ended that diag ran: its exit code, or the name of the signal that ended it (`SIGKILL`).

    `memory` is in bytes, the most that one of its processes held; `seconds` how long it ran.
    """

    program: str
    exit_code: int | None = None
    signal: str = ""
    seconds: float | None = None
    memory: int | None = None


class GroupKills(Passing, frozen=True, kw_only=True):
    """So many processes of a command's control group the kernel killed for want of memory while it ran.

    `limit` is the group's, in bytes, where it has one.
    """

    count: int
    limit: int | None = None


class CommandStall(Passing, frozen=True, kw_only=True):
    """A command that runs has written nothing for so many seconds."""

    program: str
    seconds: float


class ProcessState(Passing, frozen=True, kw_only=True):
    """A process of a command, or one of its threads (`thread`, by number), looked at for a second.

    `state` is the kernel's letter (R runs, S sleeps, D cannot be interrupted, T is stopped, Z has ended), `cpu` percent
    of one processor, `waits_in` the kernel's function.
    """

    pid: int
    name: str
    state: str
    thread: int | None = None
    threads: int | None = None
    cpu: float | None = None
    waits_in: str = ""
    command: str = ""


class PythonStack(Passing, frozen=True, kw_only=True):
    """The Python functions that a thread is in, innermost first (`wait (threading.py:331)`), and if it computes."""

    pid: int
    thread: str
    active: bool
    frames: tuple[str, ...]


class ProcessHolds(Passing, frozen=True, kw_only=True):
    """A process, the files below `/dev` that it has open (terminals and the like apart), and whether torch is in it.

    `threads` are the kernel's numbers of its threads.
    """

    pid: int
    name: str
    devices: tuple[str, ...] = ()
    torch: bool = False
    threads: tuple[int, ...] = ()


class HotSymbol(Passing, frozen=True, kw_only=True):
    """A function in which a thread was seen computing: percent of all samples, as `perf report` has it.

    `thread` is the kernel's number, which perf calls Pid.
    """

    share: float
    object: str
    symbol: str
    thread: int | None = None
    command: str = ""
