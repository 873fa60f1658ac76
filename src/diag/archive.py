"""An archive of logs: the texts in a .tar, a .zip, or a single packed file, each searched like a paste.

Members are unpacked one after the other into one file without a name, and never under a name of theirs. What is no
text, is an archive itself or does not fit is named in `broken` and not followed.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path
from typing import IO

from diag import bundle, text
from diag.capture import Capture, InFile
from diag.errors import DiagError
from diag.finding import Broken
from diag.probe import Probe
from diag.redact import NOTHING_KNOWN, Known
from diag.report import SourceKind
from diag.sources import ARCHIVES
from diag.text import printable

UNPACKED_CAP = 8 * 2**30
"""Bytes that an archive unpacks to at most."""
LEFT_FREE = 2**30
"""Bytes that are left free where temporary files lie."""
MEMBERS_CAP = 10_000
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError, RuntimeError, ValueError)


class NoTexts(DiagError):
    """An archive holds no text."""


class _TooMuch(Exception):
    """It unpacks to more than can be held."""


@dataclass(frozen=True)
class Logs:
    """The texts of an archive, and what of it was not read."""

    name: str
    texts: tuple[Capture, ...]
    broken: tuple[Broken, ...] = ()
    kind: SourceKind = "paste"
    known: Known = NOTHING_KNOWN

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """One capture for each text."""
        yield from self.texts


class _Spool:
    """A file without a name, open for as long as somebody reads in it."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the last reader)
        weakref.finalize(self, self.file.close)


class _Window(io.RawIOBase):
    """A part of a spool as a file; two readers at a time would disturb each other."""

    def __init__(self, spool: _Spool, start: int, size: int) -> None:
        self._spool, self._start, self._size, self._at = spool, start, size, 0

    def seek(self, at: int, whence: int = 0) -> int:
        self._at = at
        return at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        self._spool.file.seek(self._start + self._at)
        piece = self._spool.file.read(left if size < 0 else min(size, left))
        self._at += len(piece)
        return piece


def read(path: Path) -> Logs:
    """The texts in an archive; one without any is a `DiagError`."""
    spool = _Spool()
    broken: list[Broken] = []
    found: list[Capture] = []
    try:
        for name, stream in _members(path, broken):
            if capture := _text(printable(name), stream, spool, broken):
                found.append(capture)
    except _TooMuch:
        broken.append(Broken(where=path.name, error="it unpacks to more than can be held: the rest was not read"))
    except DAMAGED as error:
        broken.append(Broken(where=path.name, error=f"damaged: {error or type(error).__name__}"))
    if not found:
        raise NoTexts(f"{path} holds no text" + (f": {broken[0].error}" if broken else ""))
    return Logs(printable(path.name), tuple(found), tuple(broken))


def _members(path: Path, broken: list[Broken]) -> Iterator[tuple[str, IO[bytes]]]:
    """The members of an archive, or the one text of a packed file."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for entry in packed.infolist()[:MEMBERS_CAP]:
                if not entry.is_dir():
                    with packed.open(entry) as stream:
                        yield entry.filename, stream
        return
    with _unpacked(path) as stream:
        start = stream.read(512)
    if start[257:262] != b"ustar":
        with _unpacked(path) as stream:
            yield path.stem, stream
        return
    with _unpacked(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for number, member in enumerate(archive):
            if number >= MEMBERS_CAP:
                broken.append(Broken(where=path.name, error=f"more than {MEMBERS_CAP} members: the rest was not read"))
                return
            if member.isfile() and (taken := archive.extractfile(member)):
                yield member.name, taken


def _unpacked(path: Path) -> IO[bytes]:
    return bundle.unpacked(path) or path.open("rb")


def _text(name: str, stream: IO[bytes], spool: _Spool, broken: list[Broken]) -> Capture | None:
    """A member as a capture, copied to the end of the spool; None for one that is no text."""
    head = stream.read(8192)
    mark, encoding = text.encoding_of(head[: text.MARK_BYTES])
    problem = ""
    if text.is_binary(head):
        problem = "it is no text"
    if head.startswith(ARCHIVES):
        problem = "it is an archive itself"
    if problem:
        broken.append(Broken(where=name, error=problem))
    if problem or not head:
        return None
    file = spool.file
    start = file.seek(0, io.SEEK_END)
    for piece in _utf8(head[mark:], stream, encoding):
        if file.tell() + len(piece) > UNPACKED_CAP or shutil.disk_usage(tempfile.gettempdir()).free < LEFT_FREE:
            raise _TooMuch
        file.write(piece)
    window = _Window(spool, start, file.tell() - start)
    return Capture.of(name, InFile(lambda: nullcontext(window)), kind="text")  # type: ignore[arg-type]


def _utf8(head: bytes, stream: IO[bytes], encoding: str) -> Iterable[bytes]:
    yield head if encoding == "utf-8" else head.decode(encoding, "backslashreplace").encode()
    yield from iter(lambda: stream.read(text.BLOCK), b"") if encoding == "utf-8" else text.utf8(stream, encoding)
