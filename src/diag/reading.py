"""Reading with an end: a file up to a time, a stream up to a time and a size, and kept so that it can be read again.

Knows nothing of what it reads. It cannot tell a stream that never ends from one that is long: both are read as far as
there is room, and whoever reads is told that there was more.
"""

from __future__ import annotations

import io
import select
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import IO, Protocol

PIECE = 2**20
"""Bytes that are read at a time."""
HELD = 16 * 2**20
"""Bytes of a stream that are kept in memory; a longer one is kept in a file without a name."""
STREAM_CAP = 8 * 2**30
"""Bytes of a stream that are read at most."""
TELLING = 256
"""Bytes without a zero that begin a text: those of a .tar hold one."""
LEFT_FREE = 2**30
"""Bytes that are left free where temporary files lie."""


class Raw(Protocol):
    """Bytes that can be read from any place."""

    def seek(self, at: int, whence: int = 0, /) -> int:
        """Go to a place."""

    def read(self, size: int = -1, /) -> bytes:
        """What stands there, so many bytes at most."""


class Bound:
    """Until when something is read; `stopped` and `full` say that time or room ended it before its own end."""

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline, self.stopped, self.full = deadline, False, False
        self._far, self._whole = 0, False

    def over(self) -> bool:
        """Whether the time is over, for what was not read to its end."""
        if self.deadline is not None and not self._whole:
            self.stopped |= time.monotonic() > self.deadline
        return self.stopped

    def left(self, at: int, size: int) -> int:
        """How many of so many bytes may be read: all in time, and later what was read before."""
        return max(0, min(size, self._far - at)) if self.over() else size

    def took(self, at: int, got: int) -> None:
        """That so many bytes were read behind a place, none at the end."""
        self._far = max(self._far, at + got)
        self._whole |= not got and not self.stopped

    def comes(self, stream: IO[bytes]) -> bool:
        """Whether a stream has something to read, or its end, before the time is over."""
        if self.deadline is None:
            return True
        with suppress(io.UnsupportedOperation):
            self.stopped |= not select.select([stream], (), (), max(0.0, self.deadline - time.monotonic()))[0]
        return not self.over()


class Until:
    """A file that ends where it was read to when the time was over."""

    def __init__(self, file: Raw, bound: Bound) -> None:
        self._file, self._bound, self._at = file, bound, 0

    def seek(self, at: int, whence: int = 0, /) -> int:
        """Go to a place, counted from the start."""
        self._at = self._file.seek(at, whence)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """What stands at the place, so many bytes at most."""
        wanted = self._bound.left(self._at, size if size >= 0 else PIECE)
        piece = self._file.read(wanted) if wanted else b""
        if size:
            self._bound.took(self._at, len(piece))
        self._at += len(piece)
        return piece


class Kept:
    """What can be read but once, as a file: what was read of it is kept, and can be read again."""

    def __init__(self, parts: Iterator[bytes], bound: Bound) -> None:
        self.bound = bound
        self._parts, self._at, self._size = parts, 0, 0
        self._file = tempfile.SpooledTemporaryFile(max_size=HELD)  # noqa: SIM115 (closed with its last reader)
        weakref.finalize(self, self._file.close)

    @classmethod
    def of(cls, stream: IO[bytes], deadline: float | None = None) -> Kept:
        """What comes on a stream until a time."""
        bound = Bound(deadline)
        return cls(arriving(stream, bound), bound)

    def seekable(self) -> bool:
        """That it is."""
        return True

    def tell(self) -> int:
        """The place that is read next."""
        return self._at

    def seek(self, at: int, whence: int = 0, /) -> int:
        """Go to a place; to find the end, all is read."""
        while whence == io.SEEK_END and self._more():
            pass
        self._at = at + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """What stands at the place, so many bytes but at the end."""
        while (size < 0 or self._size < self._at + size) and self._more():
            pass
        self._file.seek(self._at)
        piece = self._file.read(size)
        self._at += len(piece)
        return piece

    def start(self, size: int) -> bytes:
        """The first so many bytes, or the fewer that came first and tell a text, to be read again."""
        while self._size < size and not self._tells() and self._more():
            pass
        self._file.seek(0)
        return self._file.read(size)

    def _tells(self) -> bool:
        self._file.seek(0)
        return self._size >= TELLING and b"\0" not in self._file.read(TELLING)

    def _more(self) -> bool:
        piece = next(self._parts, b"")
        self._file.seek(self._size)
        self._size += self._file.write(piece)
        return bool(piece)


def arriving(stream: IO[bytes], bound: Bound) -> Iterator[bytes]:
    """What comes on a stream up to its end, the bound or what there is room for; then it is closed."""
    read, taken = getattr(stream, "read1", stream.read), 0
    with stream:
        while bound.comes(stream) and (piece := read(PIECE)):
            taken += len(piece)
            if taken > STREAM_CAP or (taken > HELD and not room()):
                bound.full = True
                return
            yield piece


def room() -> bool:
    """Whether there is room where temporary files lie."""
    return shutil.disk_usage(tempfile.gettempdir()).free > LEFT_FREE


def pieces(stream: Raw) -> Iterator[bytes]:
    """A stream piece by piece, each as soon as it is there: what follows may be damaged."""
    read = getattr(stream, "read1", stream.read)
    return iter(lambda: read(PIECE), b"")


def begun(parts: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of what comes in pieces, and all of it."""
    taken: list[bytes] = []
    while sum(map(len, taken)) < size and (piece := next(parts, b"")):
        taken.append(piece)
    start = b"".join(taken)
    return start[:size], chain((start,) if start else (), parts)
