"""A command's output passed on as it comes: what arrives at one end leaves at the other; its start and end are kept.

Where the stream is a terminal the command gets a pseudo-terminal of the same size and modes, so that `isatty` is true
of it; output is left raw there, for the real terminal turns line feeds itself. Standard output and standard error that
are one and the same pipe, file or terminal stay one stream, so that their order stays what it is without diag.
What this cannot do: make a file a file (the command sees a pipe, and cannot seek in it), or hand what is typed to a
program that reads from its own standard error, as some pagers do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import termios
import threading
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PIPE_SIZE = 2**20  # bytes, the most an unprivileged user may ask for
KEPT = 2**22  # bytes of the start, and as many of the end
FLOOD, CHUNK = 2**24, 2**17  # bytes after which smaller pieces than this are let gather
GATHER = 0.0005  # seconds
GRACE = 200  # milliseconds after the command's end for those who still write into its streams
FULL = 2.0  # seconds after which such a one is no longer listened to, however much it writes
SIZE = b"\0" * 8  # a `struct winsize`
OUTPUT = 1  # the place in what `tcgetattr` gives
LOOK = 50  # milliseconds between two looks at the modes of a terminal
GONE = (errno.EIO, errno.EPIPE)  # nobody reads any more: how a terminal and how a pipe say so


class Kept:
    """The first and the last bytes of a stream of any length."""

    def __init__(self) -> None:
        self.total, self._head, self._tail = 0, bytearray(), bytearray()

    def add(self, chunk: memoryview) -> None:
        """Take what came next."""
        self.total += len(chunk)
        room = KEPT - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[max(0, room) :]
        if len(self._tail) > 2 * KEPT:
            del self._tail[: len(self._tail) - KEPT]

    @property
    def whole(self) -> bool:
        """Whether all that came is still there."""
        return self.total == len(self._head) + len(self._tail)

    @property
    def line_ended(self) -> bool:
        """Whether what came last ended its line."""
        return (self._tail or self._head or b"\n")[-1:] == b"\n"

    def parts(self) -> tuple[bytes, bytes]:
        """All of it and nothing, or, where something is left out, whole lines of its start and of its end."""
        head, tail = bytes(self._head), bytes(self._tail)
        if self.whole:
            return head + tail, b""
        return head[: head.rfind(b"\n") + 1 or None], tail[tail.find(b"\n", -KEPT) + 1 :]


class Stream:
    """One output of the command on its way to one of diag's own.

    `gone`: nobody reads that any more; `error` says what else kept it from being written.
    """

    def __init__(self, name: str, fd: int, ends: tuple[int, ...]) -> None:
        self.name, self.fd, self.ends = name, fd, ends
        self.source, self.target = (os.isatty(fd) and _terminal(fd)) or _pipe()
        self.terminal = os.isatty(self.source)
        os.set_blocking(self.source, False)
        self.kept, self.last = Kept(), time.monotonic()
        self.error, self.open, self.gone = "", True, False
        self._modes: list[Any] = termios.tcgetattr(self.source) if self.terminal else []
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def start(self) -> None:
        """Pass on what comes, from now on; the command has the other end."""
        os.close(self.target)
        self._thread.start()

    def end(self) -> None:
        """Expect no more than what is under way: the command has ended."""
        os.close(self._end)

    def finish(self) -> None:
        """Wait until that is passed on; what a daemon still writes is left to another process."""
        self._thread.join()
        if self.open:
            os.set_blocking(self.source, True)
            _left_to_another(self.source, self.fd)
            os.close(self.source)

    def resize(self) -> bool:
        """Give the command's terminal the size that the real one has now; whether that is another one."""
        if not self.terminal or not self.open:
            return False
        size, had = (fcntl.ioctl(one, termios.TIOCGWINSZ, SIZE) for one in (self.fd, self.source))
        fcntl.ioctl(self.source, termios.TIOCSWINSZ, size)
        return size != had

    @property
    def waiting(self) -> bool:
        """Whether something is there that was not passed on yet."""
        return self.open and bool(select.select([self.source], [], [], 0)[0])

    def _pass_on(self) -> None:
        buffer = memoryview(bytearray(PIPE_SIZE))
        for size in self._arrivals(buffer):
            try:
                if self.terminal:
                    self._mirror()
                _write(self.fd, buffer[:size])
            except OSError as problem:
                self.gone = problem.errno in GONE
                self.error = "" if self.gone else problem.strerror or str(problem)
                break
            if size:
                self.kept.add(buffer[:size])
                self.last = time.monotonic()
        else:
            return
        # Whoever still writes learns it as without diag: by SIGPIPE, or by an error of its terminal.
        self._close()

    def _arrivals(self, buffer: memoryview) -> Iterator[int]:
        """The sizes of what comes until nobody can write any more, or nobody does after the command's end.

        Of a terminal nothing comes now and then, too: its modes change without a word.
        """
        patience, end = LOOK if self.terminal else None, float("inf")
        poll = select.poll()
        poll.register(self.source, select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        while time.monotonic() < end:
            size = _read(self.source, buffer)
            if size == 0:
                return self._close()
            if size:
                yield size
                if self.kept.total > FLOOD and size < CHUNK and not self.terminal:
                    time.sleep(GATHER)
                continue
            ready = dict(poll.poll(patience))
            if self._ended in ready:
                poll.unregister(self._ended)
                patience, end = GRACE, time.monotonic() + FULL
            elif not ready and end < float("inf"):
                return
            yield 0

    def _close(self) -> None:
        self.open = False
        os.close(self.source)

    def _mirror(self) -> None:
        """Let the real terminal have the modes that the command gave its own, as full-screen programs do."""
        modes = termios.tcgetattr(self.source)
        if modes == self._modes or not _is_ours(self.fd):
            return
        self._modes = list(modes)
        with suppress(termios.error):  # a terminal that is gone takes none
            modes[OUTPUT] |= termios.tcgetattr(self.fd)[OUTPUT] & termios.OPOST
            termios.tcsetattr(self.fd, termios.TCSANOW, modes)


def streams() -> list[Stream]:
    """What becomes of standard output and standard error: one stream where they are the same, none of a closed one."""
    there = [fd for fd in (1, 2) if _identity(fd)]
    if len(there) == 2 and _identity(1) == _identity(2):
        return [Stream("output", 1, (1, 2))]
    return [Stream({1: "stdout", 2: "stderr"}[fd], fd, (fd,)) for fd in there]


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_ours(terminal: int) -> bool:
    """Whether its modes may be set: those of a shell's terminal not from the background, which would stop diag."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True


def _pipe() -> tuple[int, int]:
    source, target = os.pipe()
    with suppress(OSError, AttributeError):  # a user may have only so much pipe memory
        fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return source, target


def _terminal(fd: int) -> tuple[int, int] | None:
    """A pseudo-terminal like the real one, None where there is no further one."""
    try:
        source, target = os.openpty()
    except OSError:
        return None
    modes = termios.tcgetattr(fd)
    modes[OUTPUT] &= ~termios.OPOST
    termios.tcsetattr(target, termios.TCSANOW, modes)
    fcntl.ioctl(source, termios.TIOCSWINSZ, fcntl.ioctl(fd, termios.TIOCGWINSZ, SIZE))
    return source, target


def _read(fd: int, buffer: memoryview) -> int | None:
    """How much was read: nothing at the end, None where nothing has come yet."""
    try:
        return os.readv(fd, [buffer])
    except BlockingIOError:
        return None
    except OSError as problem:
        if problem.errno == errno.EIO:  # the last one that had the terminal has closed it
            return 0
        raise


def _write(fd: int, chunk: memoryview) -> None:
    while chunk:
        try:
            chunk = chunk[os.write(fd, chunk) :]
        except BlockingIOError:  # whoever shares it with us made it so
            select.select([], [fd], [])


def _left_to_another(source: int, fd: int) -> None:
    """Let a process that outlives diag pass on what a daemon of the command still writes, as long as one does."""
    with suppress(OSError):
        devices = [(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        ends = [(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, fd, 1), *devices]
        os.posix_spawnp("cat", ["cat"], os.environ, file_actions=ends, setsigmask=signal.valid_signals())
