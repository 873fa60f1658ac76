"""The folders that engines write to, what is free there and whether this user may write: prints `diag/caches/1`.

It only asks for what is there; a folder of a file system that does not answer holds it up until it is stopped.
"""

from __future__ import annotations

import getpass
import json
import os
import sys

Place = tuple[str, tuple[tuple[str, str], ...]]


def places() -> list[Place]:
    """What for, and the variables that name the folder, the strongest first, each with what is below it; then the
    default, without a variable."""
    temporary = os.environ.get("TMPDIR") or "/tmp"
    return [
        (
            "models",
            (
                *(("HF_HUB_CACHE", ""), ("HUGGINGFACE_HUB_CACHE", ""), ("HF_HOME", "hub")),
                *(("XDG_CACHE_HOME", "huggingface/hub"), ("", "~/.cache/huggingface/hub")),
            ),
        ),
        ("models", (("MODELSCOPE_CACHE", ""),)),
        ("compiled", (("VLLM_CACHE_ROOT", ""), ("XDG_CACHE_HOME", "vllm"), ("", "~/.cache/vllm"))),
        ("compiled", (("TRITON_CACHE_DIR", ""), ("TRITON_HOME", ".triton/cache"), ("", "~/.triton/cache"))),
        ("compiled", (("TORCHINDUCTOR_CACHE_DIR", ""), ("", f"{temporary}/torchinductor_{user()}"))),
        ("compiled", (("FLASHINFER_WORKSPACE_BASE", ".cache/flashinfer"), ("", "~/.cache/flashinfer"))),
        ("temporary", (("TMPDIR", ""), ("", "/tmp"))),
    ]


def user() -> str:
    """The user's name, the number where there is none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def folder(purpose: str, names: tuple[tuple[str, str], ...]) -> dict[str, object] | None:
    """The folder that the first variable that is set names, else the default one."""
    for variable, below in names:
        base = os.environ.get(variable, "") if variable else below
        if base:
            path = os.path.expanduser(os.path.join(base, below) if variable and below else base)
            return {"purpose": purpose, "variable": variable, "path": path, **room(path)}
    return None


def room(path: str) -> dict[str, object]:
    """What the nearest folder that is there has; nothing of it where it cannot be asked or does not count blocks."""
    parent = os.path.abspath(path)
    while not os.path.exists(parent) and parent != "/":
        parent = os.path.dirname(parent)
    try:
        free = os.statvfs(parent)
    except OSError:
        return {"nearest": parent}
    writable = os.access(parent, os.W_OK | os.X_OK)
    told = {"free_bytes": free.f_bavail * free.f_frsize} if free.f_blocks else {}
    return {"nearest": parent, **told, "writable": writable}


def main() -> None:
    """Print the document."""
    found = [one for purpose, names in places() if (one := folder(purpose, names))]
    sys.stdout.write(json.dumps({"schema": "diag/caches/1", "folders": found}) + "\n")


if __name__ == "__main__":
    main()
