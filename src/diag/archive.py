"""An archive of logs: the texts in a .tar, a .zip, or a single packed file, each searched like a paste.

Members are unpacked one after the other into one file without a name, and never under a name of theirs. What is no
text, is an archive itself or does not fit is named in `broken` and not followed.
"""

from __future__ import annotations

import io
import tarfile
import tempfile
import time
import weakref
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, count, islice
from lzma import LZMAError
from pathlib import Path, PurePath
from typing import IO, cast

from diag.bundle import ENDS_CAP, unpacked
from diag.capture import Capture, InFile
from diag.errors import DiagError
from diag.finding import Broken
from diag.probe import Probe
from diag.reading import PIECE, Bound, Until, begun, pieces, room
from diag.redact import NOTHING_KNOWN, Known
from diag.report import SourceKind
from diag.sources import START, is_archive, is_tar
from diag.text import encoding_of, is_binary, printable, utf8

UNPACKED_CAP = 8 * 2**30
"""Bytes that an archive unpacks to at most."""
MEMBERS_CAP = 10_000
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
ENCRYPTED = 1
"""The flag of a member of a .zip that needs a password."""
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, RuntimeError, ValueError)


class NoTexts(DiagError):
    """An archive holds no text."""


class _TooMuch(Exception):
    """It unpacks to more than can be held."""


class _Unread(Exception):
    """Why a member was not read, or not to its end."""


@dataclass(frozen=True)
class Logs:
    """The texts of an archive, and what of it was not read."""

    name: str
    texts: tuple[Capture, ...]
    broken: tuple[Broken, ...] = ()
    bounds: tuple[Bound, ...] = ()
    kind: SourceKind = "paste"
    known: Known = NOTHING_KNOWN

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """One capture for each text."""
        yield from self.texts

    @property
    def stopped(self) -> bool:
        """Whether the time bound was reached before all of it was read."""
        return any(one.stopped for one in self.bounds)


class _Spool:
    """A file without a name, open for as long as somebody reads in it."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the last reader)
        weakref.finalize(self, self.file.close)


class _Window:
    """A part of a spool as a file; two readers at a time would disturb each other."""

    def __init__(self, spool: _Spool, start: int, size: int) -> None:
        self._spool, self._start, self._size, self._at = spool, start, size, 0

    def seek(self, at: int, whence: int = 0, /) -> int:
        self._at = at
        return at

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self._size - self._at)
        self._spool.file.seek(self._start + self._at)
        piece = self._spool.file.read(left if size < 0 else min(size, left))
        self._at += len(piece)
        return piece


def read(path: Path, name: str = "", *, several: bool = False, deadline: float | None = None) -> Logs:
    """The texts in an archive; one without any is a `DiagError`."""
    with path.open("rb") as file:
        return opened(file, name or printable(path.name), several=several, deadline=deadline)


def opened(file: IO[bytes], name: str, *, several: bool = False, deadline: float | None = None) -> Logs:
    """The texts in an open archive, until the time bound; where there are several sources they bear its name, too.

    Half of the time is for unpacking, the other for the search.
    """
    now = time.monotonic()
    unpacking = _Unpacking(Bound(deadline and now + (deadline - now) / 2), name)
    names = _Names()
    found = []
    try:
        for member, parts in unpacking.members(file, f"{name}/" if several else ""):
            own = names.of(member)
            if capture := unpacking.text(own, unpacking.whole(parts, own), deadline):
                found.append(capture)
    except _TooMuch:
        unpacking.lose(name, "it unpacks to more than can be held: the rest was not read")
    except _Unread as error:
        unpacking.lose(name, str(error))
    except DAMAGED as error:
        unpacking.lose(name, f"damaged: {error or type(error).__name__}")
    broken = tuple(unpacking.broken)
    if not found and not unpacking.bound.stopped:
        raise NoTexts(": ".join((f"{name} holds no text", *_first(broken, name))))
    return Logs(name, tuple(found), broken, (unpacking.bound, *unpacking.bounds))


def _first(broken: Sequence[Broken], name: str) -> Iterator[str]:
    """The first thing that was lost of an archive of this name."""
    for one in broken[:1]:
        yield from (part for part in (one.where, one.error) if part != name)


class _Names:
    """Names that tell texts apart: in one line, and a second of a name numbered."""

    def __init__(self) -> None:
        self.given = set[str]()

    def of(self, member: str) -> str:
        name = printable(member) or "(no name)"
        numbered = (f"{name} ({number})" for number in count(2))
        own = name if name not in self.given else next(one for one in numbered if one not in self.given)
        self.given.add(own)
        return own


class _Unpacking:
    """The way from an archive to texts in one spool, and what of it was lost."""

    def __init__(self, bound: Bound, name: str) -> None:
        self.bound, self.name, self.spool = bound, name, _Spool()
        self.broken: list[Broken] = []
        self.bounds: list[Bound] = []

    def lose(self, where: str, error: str) -> None:
        """Note what was not read, each once; what is lost for want of time is no damage."""
        if not self.bound.stopped and all(one.where != where for one in self.broken):
            self.broken.append(Broken(where=where, error=error))

    def members(self, file: IO[bytes], before: str) -> Iterator[tuple[str, Iterator[bytes]]]:
        """The members of an archive piece by piece, or the one text of a packed file, which has its name."""
        file.seek(0)
        start = file.read(START)
        file.seek(0)
        if start.startswith(ZIP):
            yield from self.capped(_zipped(file), before)
            return
        start, parts = begun(self.whole(pieces(unpacked(file, start, self.name) or file), self.name), START)
        if is_tar(start):
            yield from self.capped(_tarred(parts), before)
        else:
            yield str(PurePath(self.name).with_suffix("")), parts

    def capped(
        self, members: Iterable[tuple[str, Iterator[bytes]]], before: str
    ) -> Iterator[tuple[str, Iterator[bytes]]]:
        """As many members as are read, with what their names begin with."""
        for number, (name, parts) in enumerate(members):
            if number >= MEMBERS_CAP:
                self.lose(self.name, f"more than {MEMBERS_CAP} members: the rest was not read")
                return
            yield before + name, parts

    def whole(self, parts: Iterator[bytes], name: str) -> Iterator[bytes]:
        """The pieces up to the time bound, and before damage, which is noted."""
        try:
            for piece in parts:
                if self.bound.over():
                    return
                yield piece
        except _Unread as error:
            self.lose(name, str(error))
        except DAMAGED as error:
            self.lose(name, f"damaged: {error or type(error).__name__}")

    def text(self, name: str, parts: Iterator[bytes], deadline: float | None) -> Capture | None:
        """A member as a capture, copied to the end of the spool; None for one that is no text."""
        start, parts = begun(parts, START)
        if problem := "it is an archive itself" if is_archive(start) else "it is no text" if is_binary(start) else "":
            self.lose(name, problem)
        if problem or not start:
            return None
        file = self.spool.file
        place = file.seek(0, io.SEEK_END)
        for piece in _utf8(parts, *encoding_of(start)):
            if file.tell() + len(piece) > UNPACKED_CAP or not room():
                raise _TooMuch
            file.write(piece)
        bound = Bound(deadline)
        self.bounds.append(bound)
        window = Until(_Window(self.spool, place, file.tell() - place), bound)
        return Capture.of(name, InFile(lambda: nullcontext(window)), kind="text")


def _zipped(file: IO[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    if not zipfile.is_zipfile(file):
        raise _Unread("it is cut off: the directory of a .zip stands at its end")
    with zipfile.ZipFile(file) as packed:
        for entry in packed.infolist():
            if not entry.is_dir():
                yield entry.filename, _entry(packed, entry)


def _entry(packed: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    if entry.flag_bits & ENCRYPTED:
        raise _Unread("it is encrypted")
    with packed.open(entry) as stream:
        yield from pieces(stream)


def _tarred(parts: Iterator[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    with tarfile.open(fileobj=_Flow(parts), mode="r|", bufsize=2**16) as archive:  # type: ignore[call-overload]
        for member in archive:
            if member.issparse():
                yield member.name, pieces(cast("IO[bytes]", archive.extractfile(member)))
            elif member.isfile():
                yield member.name, _stored(archive, member)
    # What is damaged behind the last member is damaged all the same.
    deque(islice(parts, 2), maxlen=0)


def _stored(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    """The content of a member as far as it is there: of one that is cut, tarfile gives nothing."""
    stream, left = cast("IO[bytes]", archive.fileobj), member.size
    stream.seek(member.offset_data)
    while left and (piece := stream.read(min(left, PIECE))):
        left -= len(piece)
        yield piece
    if left:
        raise _Unread("it is cut off")


class _Flow:
    """What comes in pieces, as a stream; who reads on and on behind its end was told of a size that is none."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.parts, self.piece, self.at, self.ends = parts, b"", 0, 0

    def read(self, size: int) -> bytes:
        if self.at >= len(self.piece):
            self.piece, self.at = next(self.parts, b""), 0
            self.ends += not self.piece
            if self.ends > ENDS_CAP:
                raise tarfile.ReadError("it is cut off")
        self.at += size
        return self.piece[self.at - size : self.at]


def _utf8(parts: Iterator[bytes], mark: int, encoding: str) -> Iterator[bytes]:
    parts = chain((next(parts, b"")[mark:],), parts)
    return parts if encoding == "utf-8" else utf8(parts, encoding)
