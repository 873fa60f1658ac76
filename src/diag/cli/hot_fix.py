"""`diag ops --hot-fix`: write out a kernel that takes the place of an operator's fallback, for servers to load."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from diag import plugins
from diag.errors import DiagError

SOURCE = Path("checks/operators/_exponential")
"""What is written: the module, and what lets a server find it where the folder is on PYTHONPATH, not installed."""
USE = "USE.txt"


def run(folder: Path) -> int:
    """Write the folder, and say how it is used; one that exists is left alone."""
    if os.path.lexists(folder):
        raise DiagError(f"{folder} is there already")
    try:
        shutil.copytree(plugins.bundled() / SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        told = (folder / USE).read_text("utf-8")
    except (OSError, shutil.Error) as error:
        raise DiagError(f"cannot write {folder}: {getattr(error, 'strerror', '') or error}") from error
    sys.stdout.write(told.replace("{folder}", str(folder)))
    return 0
