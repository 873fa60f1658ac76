"""What the kernel tells of a time: its log since then, and how many processes of a control group it killed for memory.

Neither needs a clock: the log is read from where it ended at the beginning, the count is compared with what it was.
What this cannot know: a group that the command moved to by itself, and what a host's kernel does not show a container.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

KERNEL = "/dev/kmsg"
RECORD = 2**13  # bytes of the longest
RECORDS = 5_000
GROUPS = "/sys/fs/cgroup"
COUNTERS = {
    "": ("", "memory.events", "memory.max"),
    "memory": ("/memory", "memory.oom_control", "memory.limit_in_bytes"),
}
"""Where version 2 (no controller is named) and version 1 count kills and have the limit: folder and files."""
COUNT = "oom_kill"
NONE = 2**62  # from here on a limit of version 1 is none
PATIENCE = 5.0  # seconds for the journal


class Counted(NamedTuple):
    """A control group: its folder, the file that counts, how many were killed in it, and its limit as printed."""

    folder: str
    file: str
    kills: int
    limit: str


class Witness:
    """From now on."""

    def __init__(self) -> None:
        self._began, self._log, self._refused = time.time(), -1, ""
        try:
            self._log = os.open(KERNEL, os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._log, 0, os.SEEK_END)
        except OSError as error:
            self._refused = f"{type(error).__name__}: {KERNEL}"
        self._counted = _counted()

    def group(self) -> str:
        """What the control group counted since then, in words; empty where it counted nothing or cannot be read."""
        if (before := self._counted) is None or (now := _counted()) is None or now.kills <= before.kills:
            return ""
        limited = now.limit.isdecimal() and int(now.limit) < NONE
        limit = f", limit {now.limit} bytes" if limited else ""
        return (
            f"the kernel killed {now.kills - before.kills} of its control group for want of memory "
            f"({now.file} {COUNT} {before.kills} -> {now.kills}{limit})"
        )

    def log(self) -> tuple[str, str]:
        """The kernel's log since then as `dmesg` prints it, and why it could not be read."""
        if self._log >= 0:
            return "".join(_lines(self._log)), ""
        from diag.spawn import Command, run  # not above: what it needs takes longer to import than most commands run

        journal = ("journalctl", "--dmesg", "--no-pager", "--quiet", "--since", f"@{self._began:.0f}")
        outcome = run([Command(journal, timeout=PATIENCE)])[0]
        return outcome.stdout, "" if outcome.stdout else self._refused


def _counted() -> Counted | None:
    with suppress(OSError), open("/proc/self/cgroup") as groups:
        for line in groups:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                if controller in COUNTERS and (found := _count(*COUNTERS[controller], path)):
                    return found
    return None


def _count(base: str, events: str, limit: str, path: str) -> Counted | None:
    """The group at this path, or that at the top: in a container the path may be the host's."""
    for folder in (f"{GROUPS}{base}{path.rstrip('/')}", f"{GROUPS}{base}"):
        with suppress(OSError, KeyError, ValueError), open(f"{folder}/{events}") as file:
            counts = dict(line.split() for line in file)
            return Counted(folder, events, int(counts[COUNT]), _first_line(f"{folder}/{limit}"))
    return None


def _first_line(path: str) -> str:
    with suppress(OSError), open(path) as file:
        return file.readline().strip()
    return ""


def _lines(log: int) -> Iterator[str]:
    """What was written since: `priority,number,microseconds,flags;message`, and lines that a machine reads."""
    for _ in range(RECORDS):
        try:
            head, _, message = os.read(log, RECORD).partition(b";")
        except BrokenPipeError:  # so much was written that what was next is gone
            continue
        except OSError:
            return
        with suppress(ValueError, IndexError):
            stamp = int(head.split(b",")[2])
            said = message.partition(b"\n")[0].decode("utf-8", "backslashreplace")
            yield f"[{stamp // 10**6:5}.{stamp % 10**6:06}] {said}\n"
