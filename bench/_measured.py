"""A command run once, and what it took: wall time, CPU time and memory of its whole process tree.

Time and memory are taken in separate runs, since looking at memory takes processor time from what is looked at.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PERIOD = 0.01
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Taken:
    """What one run took; seconds of the root process and all it waited for."""

    exit_code: int
    wall_s: float
    cpu_s: float


def timed(command: Sequence[str]) -> Taken:
    """Run a command with nobody looking."""
    start = time.perf_counter()
    process = _started(command)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return Taken(process.returncode, wall, usage.ru_utime + usage.ru_stime)


def peak_pss(command: Sequence[str]) -> int:
    """Bytes: the largest sum, over the tree, of each process's proportional set size."""
    process = _started(command)
    root, peak, ended = psutil.Process(process.pid), [0], threading.Event()

    def look() -> None:
        while not ended.wait(PERIOD):
            peak[0] = max(peak[0], _pss(root))

    watcher = threading.Thread(target=look)
    watcher.start()
    process.wait()
    ended.set()
    watcher.join()
    return peak[0]


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command as a user's shell would: with Python's bytecode cache, which an installed wheel has too."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment)


def _pss(root: psutil.Process) -> int:
    """Bytes of the tree; a process that ends while it is looked at counts nothing."""
    total = 0
    with suppress(psutil.Error):
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                total += process.memory_full_info().pss
    return total


def diag_program() -> str:
    """The `diag` of the environment that runs the benchmark."""
    beside = Path(sys.executable).with_name("diag")
    found = str(beside) if beside.exists() else shutil.which("diag")
    if not found:
        raise SystemExit("no diag beside this python nor on PATH; name one with --diag")
    return found


def load() -> list[float]:
    """The load averages of 1, 5 and 15 minutes."""
    return [round(one, 2) for one in os.getloadavg()]
