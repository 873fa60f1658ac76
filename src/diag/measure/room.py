"""What of this host's memory a process can really have: what may be mapped, by halving, and what of that is touched.

A limit of address space (`ulimit -v`) refuses a mapping, so it is found without touching anything. A control group
refuses nothing: at its limit the kernel ends one process of it, or all of them (`memory.oom.group`), and its log keeps
that. So no trial goes there: a fork touches pages step by step, and before each step all groups that it is in, and the
host, are asked what they have left. Of a group at least 5 % stay untouched; its limit is what it states.

What it cannot know: groups above the folder that a container sees, and what others take between a look and a step.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

STEP = 2**25
"""Bytes to which a limit is found."""
SPARE = 2**20
"""Bytes that must be there beside a mapping: what it takes to touch it."""
PIECE, MOST = 2**23, 2**28
"""Bytes that are touched at once, at least and at most; between them a part of what is left."""
NEARER = 16
GROUP_LEFT, GROUP_PART = 2**25, 0.05
"""Bytes, and the part of its limit, that are never taken of a group."""
NONE = 2**62
"""From here on a number of version 1 is no limit."""
PAGE = os.sysconf("SC_PAGE_SIZE")
LIMITS = ("memory.max", "memory.high", "memory.limit_in_bytes")
USED = ("memory.current", "memory.usage_in_bytes")
GIVEN_BACK = ("total_inactive_file", "inactive_file")
NOT_YET = (("total_dirty", "file_dirty"), ("total_writeback", "file_writeback"))
COMMITTED = "2"
"""The kernel's word for promising no more memory than there is."""


def host() -> tuple[int, int]:
    """Bytes of the host's memory, and those that can be had."""
    fields = {name: int(value.split()[0]) * 1024 for name, value in pairs("/proc/meminfo", ":")}
    free = fields["MemAvailable"]
    if "".join(lines("/proc/sys/vm/overcommit_memory")).strip() == COMMITTED:
        free = max(0, min(free, fields["CommitLimit"] - fields["Committed_AS"]))
    return fields["MemTotal"], free


def had(whole: Callable[..., dict[str, Any]], cap: int, left: int, patience: float) -> dict[str, Any]:
    """The largest size up to a cap that can be mapped and touched, what bounds it, and the limit that it met.

    `bound`: `mapping` where more is not mapped, `group` or `host` where one of these has no more than is left to it,
    `time`; empty where all that was tried could be had. `left` is what it has beyond that and was not touched.
    """
    own = next((int(value.split()[0]) * 1024 for name, value in pairs("/proc/self/status", ":") if name == "VmSize"), 0)
    found = halved(mapped, cap)
    size = found["largest"]
    told = whole(partial(touched, size, left, patience / 2), patience)
    if "answer" not in told:
        raise RuntimeError(f"the trial ended: {told.get('error', 'without a word')}")
    met: dict[str, Any] = told["answer"]
    if not met["bound"] and size < cap // STEP * STEP:
        met = {**met, "bound": "mapping", "limit": own + size, "left": 0}
    return {**found, **met, "largest": met["total"]}


def halved(take: Callable[[int], bool], cap: int) -> dict[str, Any]:
    """The largest size up to a cap, to a step, that can be taken, and how many trials that took."""
    low, high, trials = 0, cap // STEP, 0
    while low < high:
        middle = high if not trials else (low + high + 1) // 2
        trials += 1
        if take(middle * STEP):
            low = middle
        else:
            high = middle - 1
    return {"largest": low * STEP, "total": low * STEP, "trials": trials}


def mapped(size: int) -> bool:
    """Whether so much can be mapped; nothing is touched."""
    try:
        mmap.mmap(-1, size + SPARE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True


def touched(size: int, left: int, seconds: float) -> dict[str, Any]:
    """How much of a mapping can be touched while enough is left of each group and of the host."""
    folders, end, done = list(groups()), time.monotonic() + seconds, 0
    # Whatever else goes wrong, this is the process that the kernel ends first.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    with mmap.mmap(-1, max(size, PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as block:
        while done < size:
            rest, bound, limit, kept = min(rests(folders, left))
            piece = min(size - done, max(PIECE, min(MOST, rest // NEARER // PIECE * PIECE)))
            if rest < piece:
                return {"total": done, "bound": bound, "limit": limit, "left": max(0, rest + kept)}
            if time.monotonic() > end:
                return {"total": done, "bound": "time"}
            block[done : done + piece : PAGE] = bytes(len(range(done, done + piece, PAGE)))
            done += piece
    return {"total": done, "bound": ""}


def rests(folders: list[Path], left: int) -> Iterator[tuple[int, str, int, int]]:
    """What may still be taken of the host and of each group, with the limit of each, and what is kept of it."""
    total, free = host()
    yield free - left, "host", total, left
    for folder in folders:
        if found := room(folder):
            limit, rest = found
            kept = max(GROUP_LEFT, int(GROUP_PART * limit))
            yield rest - kept, "group", limit, kept


def groups() -> Iterator[Path]:
    """The folders of the control groups that this process's memory is counted in, its own and those above it."""
    own = {}
    for line in lines("/proc/self/cgroup"):
        number, kinds, path = line.rstrip("\n").split(":", 2)
        if number == "0" or "memory" in kinds.split(","):
            own["cgroup2" if number == "0" else "cgroup"] = path
    for line in lines("/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        (kind, _, options), (_, _, _, root, point, *_) = after.split(), before.split()
        if kind in own and (kind == "cgroup2" or "memory" in options.split(",")):
            yield from upwards(Path(point), beneath(own[kind], root))


def beneath(path: str, root: str) -> str:
    """A group's path below the root of a mount; empty where it is not below it, as in some containers."""
    root = root.rstrip("/")
    inside = (path == root or path.startswith(f"{root}/")) and ".." not in path.split("/")
    return path[len(root) :].strip("/") if inside else ""


def upwards(point: Path, path: str) -> Iterator[Path]:
    """A folder below a mount point, and each above it up to that."""
    folder = point / path
    while folder != point:
        yield folder
        folder = folder.parent
    yield point


def room(folder: Path) -> tuple[int, int] | None:
    """A group's limit in bytes, and what is left of it without writing anything back; None where it has no limit."""
    limits = [one for one in (number(folder / name) for name in LIMITS) if one is not None and one < NONE]
    used = next((one for one in (number(folder / name) for name in USED) if one is not None), None)
    if not limits or used is None:
        return None
    stat = {name: int(value) for name, value in pairs(str(folder / "memory.stat"), " ")}
    cache = first(stat, GIVEN_BACK) - sum(first(stat, names) for names in NOT_YET)
    return min(limits), min(limits) - used + max(0, cache)


def first(stat: dict[str, int], names: tuple[str, ...]) -> int:
    """The first of these that is told."""
    return next((stat[name] for name in names if name in stat), 0)


def number(path: Path) -> int | None:
    """The number in a file; None where there is none (`max`), or no file."""
    text = "".join(lines(str(path))).strip()
    return int(text) if text.isdecimal() else None


def pairs(path: str, between: str) -> Iterator[tuple[str, str]]:
    """The names and values of a file's lines."""
    for line in lines(path):
        name, found, value = line.partition(between)
        if found:
            yield name, value.strip()


def lines(path: str) -> list[str]:
    """The lines of a file of the kernel; none where it cannot be read."""
    try:
        with open(path) as file:
            return list(file)
    except OSError:
        return []
