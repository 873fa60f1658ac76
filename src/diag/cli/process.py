"""`diag ops --pid`: what a running server computes on the CPU."""

from __future__ import annotations

import os

from diag.cli.opening import deadline_of
from diag.cli.options import Bounds, Content, Live, Output
from diag.errors import DiagError
from diag.looked import watched
from diag.processes import state
from diag.sources import Attended

SECONDS = 5.0
"""Seconds for which it is looked at."""


def run(pid: int, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Look and report."""
    from diag.cli import examine

    if refused := _refused(pid):
        raise DiagError(f"--pid {pid}: {refused}")
    texts = tuple(watched(pid, SECONDS, deadline_of(bounds)))
    source = Attended(f"process {pid}", texts)
    question = examine.Question(command=examine.OPS, opened=(source,), here=False)
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())


def _refused(pid: int) -> str:
    """Why a process cannot be looked at, empty where it can."""
    if pid == os.getpid():
        return "it is diag itself"
    try:
        os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        return "it is another user's: run diag as root, or as that user"
    except OSError:
        return "it is the kernel's own, or has ended" if state(pid) else "there is no such process"
    return ""
