"""Where things lie on this machine: the user's folders, the key of the exit gate, the interpreter to examine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from diag import cache
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
    """The key of the exit gate: this user's, kept in the cache, or a new one where it is damaged or cannot be kept."""
    folder = cache_folder()
    path = folder / "redact.key" if folder else None
    key = cache.read(path)
    if len(key) != KEY_BYTES:
        key = os.urandom(KEY_BYTES)
        cache.write(path, key)
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
