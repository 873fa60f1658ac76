"""A named output: written whole, or what was there before stays."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from diag.errors import DiagError


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, put in the place of `path` at the end; a device or a pipe is written to as it is."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        # A link stays one: what it points to is replaced.
        path = Path(os.path.realpath(path))
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".diag-")
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise DiagError(f"cannot write {path}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
