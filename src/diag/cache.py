"""Files that only save time: what is read from them is whole or nothing, and what cannot be written is left out."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CAP = 64 * 2**20
"""Bytes of the largest file that is read."""
DIGEST = 16
"""Bytes before what is kept that tell whether it is whole."""


def place(folder: Path | None, kind: str, roots: Iterable[Path], *, whole: bool = True) -> Path | None:
    """The file for what of some kind is kept of these roots, None where there is no folder.

    What is kept of a part of them has a file of its own: it must not take the place of the whole.
    """
    named = "\0".join((*map(os.path.abspath, roots), *(() if whole else ("", "part")))).encode(
        "utf-8", "surrogateescape"
    )
    return folder / f"{kind}-{hashlib.blake2b(named, digest_size=8).hexdigest()}.cache" if folder else None


def read(path: Path | None) -> bytes:
    """What is kept in a file, empty where it is not there, damaged or no regular file."""
    try:
        if path is None or not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > CAP:
            return b""
        whole = path.read_bytes()
    except OSError:
        return b""
    return whole[DIGEST:] if whole[:DIGEST] == _digest(whole[DIGEST:]) else b""


def write(path: Path | None, content: bytes) -> None:
    """Keep this in a file of the user's alone, whole or not at all; a link gives way to it, what is no file stays."""
    if path is None:
        return
    with suppress(OSError):
        if path.exists() and not path.is_file():
            return
        for folder in (path.parent.parent, path.parent):  # a home that is not there is not made
            folder.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".kept-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(content) + content)
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()
