"""A command run as if nobody stood between: started, its signals handed on, its stops shared, its end told.

The command stays in diag's process group, with diag's standard input and controlling terminal. What the terminal sends
(Ctrl-C, Ctrl-Z) reaches it from the kernel, and must not be handed on a second time; what somebody sends to diag alone
must be. The kernel says which it was (`si_code`) and who sent it; what the command sends to its own group is none of
diag's business either. Where the system does not say (macOS), Ctrl-C in the foreground is taken for the terminal's.
What it cannot tell: whether a signal from outside went to the whole group; then the command gets it twice.
When diag is killed with SIGKILL the command lives on, as under a shell that was, and finds its output closed.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NamedTuple

from diag.processes import parent
from diag.streams import Stream, streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ASKED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""What asks a command to end."""
TYPED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP)
"""What a terminal sends when a key is typed."""
PASSED = (*ASKED, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGABRT)
"""What is handed on."""
NOTICED = (*PASSED, signal.SIGCHLD, signal.SIGCONT, signal.SIGWINCH)
SHELL = "/bin/sh"
PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)
"""What Python ignores, and a command is not to."""
TICK = 0.01
"""Seconds to the next look whether all was passed on before diag stops with its command."""
LONGEST = 1.0
"""Seconds between two looks at a command that may stall."""
ANCESTORS = 200
RUSAGE_UNIT = 1 if os.uname().sysname == "Darwin" else 1024
"""Bytes in which the peak of a process's memory is told."""


class Came(NamedTuple):
    """A signal that came: whether the kernel sent it to the whole group (None where that is not told), or who did."""

    number: int
    shared: bool | None = None
    sender: int = 0


class Ended(NamedTuple):
    """How a command ended: by an exit code, or by a signal; `asked` where diag was told to end before.

    `memory` is the most that one of its processes held, in bytes, 0 where that is no more than what diag held before.
    """

    exit_code: int | None
    signal: int
    seconds: float
    memory: int
    asked: bool


class Attended:
    """A command that runs, from its start on."""

    def __init__(
        self, argv: tuple[str, ...], environment: dict[str, str], closed: Sequence[int], came: _Signals
    ) -> None:
        self.streams = tuple(one for one in streams() if not set(one.ends) & set(closed))
        ends: list[tuple[int, ...]] = [(os.POSIX_SPAWN_CLOSE, fd) for fd in closed]
        ends += [(os.POSIX_SPAWN_DUP2, one.target, fd) for one in self.streams for fd in one.ends]
        self._came, self._asked, self._stopped = came, False, False
        self.began = self._awake = time.monotonic()
        self.pid = _spawned(argv, environment, file_actions=ends, setsigmask=came.mask, setsigdef=PYTHONS)
        for one in self.streams:
            one.start()

    @property
    def last(self) -> float:
        """When it last wrote something, or was continued."""
        return max((self._awake, *(one.last for one in self.streams)))

    def wait(self, patience: float | None, stalled: Callable[[Attended], bool]) -> Ended:
        """Let it run to its end; `stalled` is asked when it wrote nothing for `patience` seconds.

        It answers whether that was worth a word, and is then not asked again before something was written.
        """
        told = 0.0
        while (ended := self._ended()) is None:
            left = None if patience is None else self.last + patience - time.monotonic()
            if left is not None and left <= 0 and told != self.last and not self._stopped and stalled(self):
                told = self.last
            self._take(self._came.wait(left if left is None or 0 < left < LONGEST else LONGEST))
        return ended

    def _take(self, came: Came | None) -> None:
        if came is None:
            return
        if came.number == signal.SIGWINCH:
            # Whoever asked for the size before it was set has to ask again.
            if sum(one.resize() for one in self.streams):
                os.killpg(os.getpgrp(), signal.SIGWINCH)
        elif came.number == signal.SIGCONT and self._stopped:
            os.kill(self.pid, signal.SIGCONT)
        elif came.number in PASSED:
            self._asked |= came.number in ASKED
            shared = came.number in TYPED and _in_foreground() if came.shared is None else came.shared
            if not shared and not _descends(came.sender, self.pid):
                os.kill(self.pid, came.number)

    def _ended(self) -> Ended | None:
        """How it ended, None while it lives; where it stopped, diag stops with it."""
        while True:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not pid:
                return None
            if os.WIFSTOPPED(status):
                self._stop()
            elif os.WIFCONTINUED(status):
                self._stopped, self._awake = False, time.monotonic()
            else:
                code, seconds = os.waitstatus_to_exitcode(status), time.monotonic() - self.began
                return Ended(None if code < 0 else code, max(-code, 0), seconds, _held(usage), self._asked)

    def _stop(self) -> None:
        self._stopped = True
        if not _is_job():
            return  # whoever stopped it knows nothing of diag, and would not continue it
        end = time.monotonic() + 20 * TICK
        while any(one.waiting for one in self.streams) and time.monotonic() < end:
            time.sleep(TICK)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._awake = time.monotonic()


def attend(
    argv: tuple[str, ...],
    environment: dict[str, str],
    *,
    closed: Sequence[int] = (),
    patience: float | None = None,
    stalled: Callable[[Attended], bool] = lambda command: True,
) -> tuple[Ended, tuple[Stream, ...]]:
    """Run a command to its end; `closed` are those of its three streams that are not open.

    Its streams are still to be finished: what is under way may have to wait for whoever reads it. `OSError` where it
    could not be started.
    """
    while (free := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(free)
    with _noticed() as came:
        command = Attended(argv, environment, closed, came)
        ended = command.wait(patience, stalled)
    for one in command.streams:
        one.end()
    return ended, command.streams


def _held(usage: resource.struct_rusage) -> int:
    """Bytes: a process hands its own peak on to what it becomes, so that a small command seems as large as diag."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage.ru_maxrss * RUSAGE_UNIT if usage.ru_maxrss > own else 0


def _spawned(argv: tuple[str, ...], environment: dict[str, str], **how: Any) -> int:
    """Start a program; a script that names no interpreter is the shell's, as for whoever else starts one."""
    try:
        return os.posix_spawnp(argv[0], argv, environment, **how)
    except OSError as error:
        from shutil import which  # not above: few commands are such a script

        found = which(argv[0])
        if error.errno != errno.ENOEXEC or not found or _is_binary(found):
            raise
        return os.posix_spawn(SHELL, (SHELL, found, *argv[1:]), environment, **how)


def _is_binary(path: str) -> bool:
    with open(path, "rb") as file:
        return b"\0" in file.read(128)


class _Signals:
    """The signals that came, in order; `mask` is what was held back before."""

    def __init__(self, mask: set[int]) -> None:
        self.mask = mask
        self._came: deque[Came] = deque()
        self._woken, self._waker = os.pipe()
        for fd in (self._woken, self._waker):
            os.set_blocking(fd, False)

    def note(self, number: int, frame: FrameType | None) -> None:
        """Take one of which nothing but its number is known."""
        self._came.append(Came(number))
        os.write(self._waker, b"\0")

    def wait(self, patience: float | None) -> Came | None:
        """The next one, or None after so many seconds."""
        if self._came:
            return self._came.popleft()
        if not hasattr(signal, "sigtimedwait"):
            select.select([self._woken], [], [], patience)
            with suppress(BlockingIOError):
                os.read(self._woken, 2**12)
            return self._came.popleft() if self._came else None
        info = signal.sigwaitinfo(NOTICED) if patience is None else signal.sigtimedwait(NOTICED, patience)
        return info and Came(info.si_signo, info.si_code > 0, info.si_pid)


@contextmanager
def _noticed() -> Iterator[_Signals]:
    """Notice what comes instead of being ended by it; what was ignored before stays so, for the command, too."""
    usual = {number: signal.getsignal(number) for number in NOTICED}
    taken = [number for number, action in usual.items() if action != signal.SIG_IGN or number == signal.SIGCHLD]
    held = taken if hasattr(signal, "sigtimedwait") else []
    came = _Signals(signal.pthread_sigmask(signal.SIG_BLOCK, held))
    for number in taken:
        signal.signal(number, came.note)
    try:
        yield came
    finally:
        for number in taken:
            signal.signal(number, usual[number] or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, came.mask)


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process is another or was started below it, as far as the kernel tells."""
    for _ in range(ANCESTORS):
        if pid == ancestor or pid <= 1:
            break
        pid = parent(pid)
    return pid == ancestor


def _is_job() -> bool:
    """Whether a shell with job control started diag: only such a one notices a stop, and ends it."""
    return _terminal_group() is not None and os.getpgid(os.getppid()) != os.getpgrp()


def _in_foreground() -> bool:
    return _terminal_group() == os.getpgrp()


def _terminal_group() -> int | None:
    """The group of processes in the foreground of diag's terminal, None where it has none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return None
    try:
        return os.tcgetpgrp(terminal)
    except OSError:
        return None
    finally:
        os.close(terminal)
