"""Where things lie on this machine: the user's folders, the key of the exit gate, the interpreter to examine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from diag.errors import DiagError

KEY_BYTES = 32


def config_folder() -> Path | None:
    """The user's own root."""
    return _folder("XDG_CONFIG_HOME", ".config")


def cache_folder() -> Path | None:
    """What may be deleted at any time."""
    return _folder("XDG_CACHE_HOME", ".cache")


def _folder(variable: str, default: str) -> Path | None:
    bases = (os.environ.get(variable, ""), os.path.join(os.path.expanduser("~"), default))
    # A relative one would be a folder of whatever directory diag is called in.
    return next((Path(base) / "diag" for base in bases if os.path.isabs(base)), None)


def redact_key() -> bytes:
    """The key of the exit gate: this user's, kept in the cache, or a new one where that cannot be written."""
    folder = cache_folder()
    return _kept(folder / "redact.key") if folder else os.urandom(KEY_BYTES)


def _kept(path: Path) -> bytes:
    try:
        if path.is_file() and path.stat().st_size == KEY_BYTES:
            return path.read_bytes()
    except OSError:
        pass
    key = os.urandom(KEY_BYTES)
    try:
        for folder in (path.parent.parent, path.parent):  # a home that is not there is not made
            folder.mkdir(exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o600), "wb") as file:
            file.write(key)
    except OSError:
        pass
    return key


def target_python(asked: str | None) -> str:
    """The interpreter to examine: the one asked for, else diag's own if torch is there, else the active one."""
    if asked:
        found = shutil.which(os.path.expanduser(asked))
        if not found:
            raise DiagError(f"--python {asked}: no such program")
        return found
    if importlib.util.find_spec("torch"):
        return sys.executable
    active = (os.environ.get(name) for name in ("VIRTUAL_ENV", "CONDA_PREFIX"))
    candidates = [shutil.which(os.path.join(prefix, "bin", "python")) for prefix in active if prefix]
    return next(filter(None, [*candidates, shutil.which("python3")]), sys.executable)
