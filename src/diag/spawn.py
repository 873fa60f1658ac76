"""Other programs run side by side, so that none can hang, flood or crash diag, nor be left behind.

Each child leads its own session, reads nothing and writes into two pipes that one loop empties without waiting for any.
Its group is killed *before* it is reaped, so that its id cannot be somebody else's; what outlives SIGKILL is abandoned.
Where memory runs out, the kernel is to end a child before anything else, and one that holds too much is killed.
What this cannot do: find a grandchild that left for its own session (it lives on, its pipe is dropped); start a program
whose file is on a dead network mount (the kernel blocks in exec, hence diag).
"""

from __future__ import annotations

import errno
import fcntl
import os
import selectors
import signal
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE, Popen

from diag.text import decode, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO

GRACE, REAP = 0.3, 1.0  # seconds from a child's death to dropping its pipes, from SIGKILL to giving it up
TICK = 0.02  # seconds to the next look for a death that no pipe tells of
PIPE_SIZE = 2**20  # bytes, the most an unprivileged user may ask for
FLOOD = 16 * 2**20  # bytes, after which all pipes are read only once in TICK / 5
LINES, LINES_KILLED = 40_000, 2_000  # of a stream, the most that are kept: megabytes of short ones take minutes to read
MEMORY = 4 * 2**30  # bytes of its own that a process may hold, twenty times what a torch without a device was seen to
LOOK = 0.1  # seconds between two looks at that
FAMILY = 200  # processes below a child that are looked at
FIRST_TO_GO = "1000"  # when memory runs out, as the kernel has it: without root it can be raised, not lowered
PAGE = os.sysconf("SC_PAGE_SIZE")
NEUTRAL = {"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "LANGUAGE": ""}
SIGNALS = {int(number): number.name for number in signal.Signals}
STOPPED = "stopped: time bound reached"
SCARCE = (errno.EAGAIN, errno.ENOMEM)
"""Why there is no further process: while others run, the next in line waits for one of them."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


@dataclass(frozen=True)
class Command:
    """What to run, and what it may take: seconds, bytes kept of each of its two streams, bytes of memory (`MEMORY`)."""

    argv: tuple[str, ...]
    timeout: float = 15.0
    environment: Mapping[str, str] = field(default_factory=dict)
    keep: int = 4 * 2**20
    memory: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a command; `exit_code` is None where the program came to no end of its own, and `error` says why."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str = ""
    seconds: float = 0.0
    left_out: int = 0


def run(commands: Sequence[Command], *, deadline: float | None = None, parallel: int = 8) -> list[Outcome]:
    """Run the commands, at most `parallel` at once: one outcome each, in their order, whatever they do."""
    with Children(commands, deadline=deadline, parallel=parallel) as children:
        return children.wait()


class Children:
    """Commands that run while the caller does something else; leaving the `with` block ends them all.

    Only `turn` and `wait` start the next in line, empty a full pipe and notice a death (hence `Outcome.seconds`).
    """

    def __init__(self, commands: Sequence[Command], *, deadline: float | None = None, parallel: int = 8) -> None:
        self._deadline = float("inf") if deadline is None else deadline
        self._waiting, self._parallel = list(enumerate(commands)), max(1, parallel)
        self._running: list[_Child] = []
        self._outcomes: dict[int, Outcome] = {}
        self._buffer = memoryview(bytearray(PIPE_SIZE))  # as much as a pipe can hold
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Children:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()
        for child in self._running:
            child.kill(STOPPED)
        while self._running:
            self.turn(TICK / 10)
        self._selector.close()

    @property
    def pids(self) -> dict[int, int]:
        """The process of each command that runs, by the command's place."""
        return {child.index: child.process.pid for child in self._running}

    @property
    def outcomes(self) -> Mapping[int, Outcome]:
        """What came of the commands that have ended, by their place."""
        return self._outcomes

    def wait(self) -> list[Outcome]:
        """Let all come to their ends; at most about 1.5 s later than the deadline."""
        while self._waiting or self._running:
            self.turn(TICK if all(child.pipes for child in self._running) else TICK / 10)
        return [outcome for _, outcome in sorted(self._outcomes.items())]

    def turn(self, patience: float = 0.0) -> None:
        """Do what is due: read, keep the clocks, start the next. `patience`: seconds to sleep for something to read."""
        ready = [key.data for key, _ in self._selector.select(patience)]
        for child, pipe in ready:
            self._read(child, pipe)
        for child in list(self._running):
            self._judge(child, time.monotonic())
        self._start()
        if any(kept.total > FLOOD for child, _ in ready for kept in child.pipes.values()):
            time.sleep(TICK / 5)

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._parallel:
            index, command = self._waiting.pop(0)
            if time.monotonic() >= self._deadline:
                self._outcomes[index] = Outcome(error=STOPPED)
                continue
            environment = {**os.environ, **NEUTRAL, **command.environment}
            # Of all vendors' tools most are missing; a fork that finds that out costs milliseconds each.
            if command.argv and "\0" not in command.argv[0] and not _exists(command.argv[0], environment):
                self._outcomes[index] = Outcome(error=f"FileNotFoundError: {printable(command.argv[0])}")
                continue
            with _uninterrupted():
                try:
                    child = _Child(index, command, environment)
                except (OSError, ValueError, IndexError) as error:
                    if self._running and isinstance(error, OSError) and error.errno in SCARCE:
                        self._waiting.insert(0, (index, command))
                        self._parallel = len(self._running)
                        return
                    self._outcomes[index] = Outcome(error=printable(_reason(error, command, environment)))
                    continue
                self._running.append(child)
                child.due = min(child.due, self._deadline)
                for pipe in child.pipes:
                    self._selector.register(pipe, selectors.EVENT_READ, (child, pipe))

    def _read(self, child: _Child, pipe: IO[bytes], *, last: bool = False) -> None:
        with suppress(BlockingIOError):
            size = os.readv(pipe.fileno(), [self._buffer])
            child.pipes[pipe].add(self._buffer[:size])
            last = last or not size
        if last:
            with suppress(KeyError):  # an interrupt may have come between these lines
                self._selector.unregister(pipe)
            del child.pipes[pipe]
            pipe.close()

    def _judge(self, child: _Child, now: float) -> None:
        if not child.died and _has_died(child.process.pid):
            child.died, child.due = now, min(child.due, now + GRACE)
        if not child.died and not child.verdict and child.swollen(now):
            child.kill(f"killed: it held more than {child.allowed >> 20} MiB of memory")
        overdue = now >= child.due
        if overdue and not child.died and not child.verdict:
            child.kill(STOPPED if now >= self._deadline else f"timed out after {child.command.timeout:g} s")
        elif overdue or (child.died and (child.verdict or not child.pipes)):
            child.kill(child.verdict if child.died else "unresponsive: ignored SIGKILL")
            for pipe in list(child.pipes):
                self._read(child, pipe, last=True)
            self._outcomes[child.index] = child.outcome()
            self._running.remove(child)


class _Child:
    """One running command: its clock, what it wrote, and why it was killed (`verdict`)."""

    def __init__(self, index: int, command: Command, environment: Mapping[str, str]) -> None:
        self.process = Popen(command.argv, 0, None, DEVNULL, PIPE, PIPE, env=environment, start_new_session=True)
        self.began = time.monotonic()
        self.due, self.died, self.verdict = self.began + command.timeout, 0.0, ""
        self.looked = self.began
        self.index, self.command = index, command
        self.stdout, self.stderr = _Kept(command.keep), _Kept(command.keep)
        pairs = (self.process.stdout, self.stdout), (self.process.stderr, self.stderr)
        self.pipes = {pipe: kept for pipe, kept in pairs if pipe}
        for pipe in self.pipes:
            os.set_blocking(pipe.fileno(), False)
            with suppress(OSError):  # a user may have only so much pipe memory
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
        with suppress(OSError), open(f"/proc/{self.process.pid}/oom_score_adj", "w") as adjustment:
            adjustment.write(FIRST_TO_GO)

    @property
    def allowed(self) -> int:
        """Bytes that each of its processes may hold."""
        return self.command.memory or MEMORY

    def swollen(self, now: float) -> bool:
        """Whether the child, or one that it started, holds more memory than it may; looked at now and then."""
        if now - self.looked < LOOK:
            return False
        self.looked = now
        return any(_held(pid) > self.allowed for pid in _family(self.process.pid))

    def kill(self, verdict: str) -> None:
        self.verdict, self.due = verdict, time.monotonic() + REAP
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def outcome(self) -> Outcome:
        """Reap the child, unless it was abandoned, and say what came of it."""
        code, error = None, "exit status lost: SIGCHLD is ignored"
        with suppress(ChildProcessError):
            code = os.waitstatus_to_exitcode(os.waitpid(self.process.pid, os.WNOHANG)[1])
            error = f"killed by {SIGNALS.get(-code, f'signal {-code}')}" if code < 0 else ""
        self.process.returncode = code or 0  # else Popen would complain when forgotten
        seconds = (self.died or time.monotonic()) - self.began
        lines = LINES_KILLED if self.verdict else LINES
        (stdout, left_out), (stderr, _) = self.stdout.text(lines), self.stderr.text(lines)
        return Outcome(stdout, stderr, None if self.verdict else code, self.verdict or error, seconds, left_out)


class _Kept:
    """The first and the last bytes of a stream of any length."""

    def __init__(self, keep: int) -> None:
        self.total, self.half, self.head, self.tail = 0, keep // 2, bytearray(), bytearray()

    def add(self, chunk: memoryview) -> None:
        self.total += len(chunk)
        room = self.half - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        if len(self.tail) > 2 * self.half:
            del self.tail[: len(self.tail) - self.half]

    def text(self, lines: int) -> tuple[str, int]:
        """Plain text of at most so many lines, and how many bytes of the stream are not in it."""
        del self.tail[: max(0, len(self.tail) - self.half)]
        head, tail = self.head, self.tail
        if self.total > len(head) + len(tail):
            del head[head.rfind(b"\n", self.half // 2) + 1 or self.half :]
            del tail[: tail.find(b"\n", 0, self.half // 2) + 1]
        elif head.count(b"\n") + tail.count(b"\n") > lines:
            head, tail = head + tail, head + tail
        else:
            return decode(bytes(head + tail)), 0
        head, tail = _first(head, lines // 2), _last(tail, lines // 2)
        left_out = self.total - len(head) - len(tail)
        marker = "\n" * (not head.endswith(b"\n")) + f"… {left_out} bytes left out …\n"
        return decode(bytes(head + marker.encode() + tail)), left_out


def _first(content: bytearray, lines: int) -> bytearray:
    """The first lines, or all where there are fewer."""
    end = 0
    for _ in range(lines):
        end = content.find(b"\n", end) + 1
        if not end:
            return content
    return content[:end]


def _last(content: bytearray, lines: int) -> bytearray:
    """The last lines, or all where there are fewer."""
    start = len(content)
    for _ in range(lines + 1):
        start = content.rfind(b"\n", 0, start)
        if start < 0:
            return content
    return content[start + 1 :]


def _family(pid: int) -> list[int]:
    """A process and what it started that is still its own, as far as the kernel tells."""
    found = [pid]
    for one in found:
        with suppress(OSError), open(f"/proc/{one}/task/{one}/children") as children:
            found += map(int, children.read().split())
        if len(found) > FAMILY:
            break
    return found


def _held(pid: int) -> int:
    """Bytes of memory that a process shares with no file; 0 where nothing tells."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/statm") as pages:
        _, resident, shared, *_ = map(int, pages.read().split())
        return (resident - shared) * PAGE
    return 0


def _reason(error: Exception, command: Command, environment: Mapping[str, str]) -> str:
    """Why a start failed; the system has one answer for a missing program and for a program's missing interpreter."""
    if not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    name = os.fsdecode(error.filename or command.argv[0])
    exists = _exists(name, environment)
    if exists and isinstance(error, FileNotFoundError):
        return f"OSError: {name} (the interpreter or loader it names does not exist)"
    if exists or ("/" in name and isinstance(error, PermissionError)):
        return f"{type(error).__name__}: {name} ({error.strerror})"
    return f"FileNotFoundError: {name}"


def _exists(name: str, environment: Mapping[str, str]) -> bool:
    """Whether a program of this name is found, whatever may be wrong with it."""
    folders = [""] if "/" in name else os.get_exec_path(environment)
    return any(os.path.exists(os.path.join(folder, name)) for folder in folders)


def _has_died(pid: int) -> bool:
    """Whether the process has ended; it is left unreaped, so that its id stays its own."""
    with suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold back what ends a run while a child is born and put on record: in between nobody could end it."""
    came: list[int] = []
    numbers = ENDING if threading.current_thread() is threading.main_thread() else ()
    usual = {number: action for number in numbers if callable(action := signal.getsignal(number))}
    try:
        for number in usual:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, action in usual.items():
            signal.signal(number, action)
        for held in came:
            signal.raise_signal(held)
