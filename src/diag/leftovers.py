"""What processes that are killed would leave behind: segments of shared memory that are theirs alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

SHARED = "/dev/shm/"


class Leftovers:
    """The segments of processes that are about to be killed; made before they are started."""

    def __init__(self) -> None:
        self._began = time.time()
        self._paths: set[str] = set()

    def of(self, pids: Iterable[int]) -> None:
        """Note what these have mapped."""
        self._paths.update(path for pid in pids for path in _mapped(pid))

    def remove(self) -> list[str]:
        """Remove of it what is this user's, came since, and is mapped by nobody else that can be seen."""
        if not self._paths:
            return []
        others = {path for pid in filter(str.isdecimal, os.listdir("/proc")) for path in _mapped(int(pid))}
        removed = []
        for path in sorted(self._paths - others):
            with suppress(OSError):
                told = os.lstat(path)
                if told.st_uid == os.getuid() and told.st_ctime >= self._began:
                    os.unlink(path)
                    removed.append(path)
        return removed


def _mapped(pid: int) -> Iterator[str]:
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            name = line.rstrip("\n").partition(SHARED)[2]
            if name and not name.endswith(" (deleted)"):
                yield SHARED + name
