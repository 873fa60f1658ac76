"""Work that may kill whoever does it: one thing after the other in a fork, and another fork goes on behind a death.

`outlived` is for what calls into drivers. A fork that is killed, hangs or takes too much memory costs the answer of
what it was about, and no other; what a device needs at its first use is paid once, not for each thing. Nothing of torch
may have computed before in the process that forks.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NamedTuple

DEFAULTS = {"patience": 60.0, "limit": 300.0, "memory": 3 * 2**30}
"""Of a request: seconds without an answer, seconds of all, and bytes of its own that a fork may hold."""
DEATHS = 8
"""Forks that may die before the rest is left undone."""
LOOK = 0.02
"""Seconds between two looks at a fork's memory."""
PROFILER = "USDT:"
"""How lines begin that torch's own profiler prints."""
FIRST = "the first use of the device"
LINES, LENGTH = 20, 300
"""Of what was printed: lines, and characters of each."""
FORKS = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "device.py"))
apart, guarded, said = FORKS["apart"], FORKS["guarded"], FORKS["said"]


class Printed:
    """What a fork writes to its two streams: each piece of work asks for its own, whoever started it for the rest."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self.file = os.dup(file.fileno())
        self.read = 0

    def divert(self) -> None:
        """Let both streams of this process go into the file."""
        for stream in (1, 2):
            os.dup2(self.file, stream)

    def more(self) -> list[str]:
        """The lines that are new since the last call, each once."""
        sys.stdout.flush()
        sys.stderr.flush()
        piece = os.pread(self.file, LENGTH * LINES * 4, self.read)
        self.read = os.fstat(self.file).st_size
        return brief(line for line in piece.decode(errors="replace").splitlines() if not line.startswith(PROFILER))


class Death(NamedTuple):
    """What a fork was about when it ended, why it did, and what it had printed by then."""

    at: str
    error: str
    printed: list[str]


def outlived(
    ask: Callable[[list[str], Printed], Iterator[dict[str, Any]]], names: Iterable[str], request: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The answer of each name; of one that a fork died with, `error` and what it printed.

    `ask` runs in the fork: it yields `{"at": NAME}` before it touches the device for a name, and `{"answer": …}` then.
    """
    request = {**DEFAULTS, **request}
    left, deaths, end = list(names), 0, time.monotonic() + request["limit"]
    while left:
        before = len(left)
        if deaths == DEATHS or time.monotonic() > end:
            reason = "no time was left" if deaths < DEATHS else f"{DEATHS} forks had died"
            yield from ((name, {"error": f"not run: {reason}"}) for name in left)
            return
        death = yield from watched(ask, left, request, end)
        if death.at in left:
            left.remove(death.at)
            yield death.at, {"error": death.error, "printed": death.printed, "died": True}
        elif death.error and len(left) == before:
            yield left[0], {"at": FIRST, "error": death.error, "printed": death.printed, "died": True}
            yield from ((name, {"error": f"not run: {FIRST}: {death.error}"}) for name in left[1:])
            return
        deaths += 1


def watched(
    ask: Callable[[list[str], Printed], Iterator[dict[str, Any]]], left: list[str], request: dict[str, Any], end: float
) -> Generator[tuple[str, dict[str, Any]], None, Death]:
    """Yield the answers of one fork and take their names from what is left; return how it ended."""
    printed, at, error, guard = Printed(), "", "", Guard(request["memory"])
    patience = min(request["patience"], max(1.0, end - time.monotonic()))
    for line in apart(lambda: working(ask, list(left), printed, end), patience):
        if "pid" in line:
            guard.start(line["pid"])
        at = line.get("at", at)
        error = line.get("error", error)
        if "answer" in line:
            left.remove(at)
            yield at, line["answer"]
    guard.stop()
    last = printed.more()
    os.close(printed.file)
    return Death(at, guard.verdict or error, last)


def working(
    ask: Callable[[list[str], Printed], Iterator[dict[str, Any]]], names: list[str], printed: Printed, end: float
) -> Iterator[dict[str, Any]]:
    """What the fork does: it is the first to go where memory runs out, and begins nothing after the end."""
    guarded(first_to_go, None)
    printed.divert()
    yield {"pid": os.getpid()}
    for line in ask(names, printed):
        yield line
        if "answer" in line and time.monotonic() > end:
            return


def first_to_go() -> None:
    """Let the kernel end this process before any other where memory runs out."""
    with open("/proc/self/oom_score_adj", "w") as adjustment:
        adjustment.write("1000")


class Guard:
    """Kills a process that holds more memory of its own than it may."""

    def __init__(self, allowed: int) -> None:
        self.allowed, self.over, self.verdict = allowed, threading.Event(), ""
        self.thread: threading.Thread | None = None

    def start(self, pid: int) -> None:
        """Look at the process from now on."""
        self.thread = threading.Thread(target=self.look, args=(pid,), daemon=True)
        self.thread.start()

    def look(self, pid: int) -> None:
        """Look until it holds too much or is over."""
        while not self.over.wait(LOOK):
            if held(pid) > self.allowed:
                self.verdict = f"killed: it held more than {self.allowed >> 20} MiB of memory"
                guarded(lambda: os.kill(pid, signal.SIGKILL), None)
                return

    def stop(self) -> None:
        """Look no more: the process is reaped, and its number may be another's."""
        self.over.set()
        if self.thread:
            self.thread.join()


def held(pid: int) -> int:
    """Bytes of memory that a process shares with no file; 0 where nothing tells."""
    try:
        with open(f"/proc/{pid}/statm") as pages:
            _, resident, shared, *_ = map(int, pages.read().split())
    except (OSError, ValueError):
        return 0
    return int((resident - shared) * os.sysconf("SC_PAGE_SIZE"))


def brief(lines: Iterable[str]) -> list[str]:
    """Lines as they go into a document: the first ones, each once, none too long."""
    short = (" ".join(line.split())[:LENGTH] for line in lines)
    return list(dict.fromkeys(filter(None, short)))[:LINES]
