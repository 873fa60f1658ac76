"""What an interpreter has installed, read from its own path without importing any of it.

Prints `diag/packages/1`: the interpreter, its C library, every distribution found on `sys.path` (the first holder of a
name is the one that is imported), and what torch's own `version.py` says.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

SUFFIXES = (".dist-info", ".egg-info")
TORCH_WORDS = ("__version__", "debug", "cuda", "hip", "xpu", "git_version")


def distributions(folder: str) -> Iterator[dict[str, str]]:
    """Name and version of each distribution in one folder, from its `*.dist-info` or `*.egg-info`."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for entry in names:
        stem, suffix = os.path.splitext(entry)
        if suffix not in SUFFIXES:
            continue
        name, _, rest = stem.partition("-")
        version = rest.split("-")[0]
        if not version:
            name, version = headers(os.path.join(folder, entry))
        path = os.path.join(folder, entry)
        yield {"name": name, "version": version, "location": folder, "installer": installer(path)}


def headers(path: str) -> tuple[str, str]:
    """Name and version from the metadata file, where the folder's name does not hold them."""
    for candidate in (os.path.join(path, "METADATA"), os.path.join(path, "PKG-INFO"), path):
        try:
            with open(candidate, encoding="utf-8", errors="replace") as file:
                lines = file.read(65536).split("\n\n")[0].splitlines()
        except OSError:
            continue
        found = dict(line.split(": ", 1) for line in lines if ": " in line)
        return found.get("Name", ""), found.get("Version", "")
    return "", ""


def installer(path: str) -> str:
    """Who installed a distribution, empty where nobody says."""
    try:
        with open(os.path.join(path, "INSTALLER"), encoding="utf-8", errors="replace") as file:
            return file.read(100).strip()
    except OSError:
        return ""


def torch_words(folders: list[str]) -> dict[str, Any] | None:
    """What `torch/version.py` assigns, from the first torch on the path; None without one."""
    for folder in folders:
        path = os.path.join(folder, "torch", "version.py")
        if not os.path.isfile(path):
            continue
        words: dict[str, Any] = {}
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                exec(compile(file.read(65536), path, "exec"), words)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return {name: words[name] for name in TORCH_WORDS if isinstance(words.get(name, 0), (str, bool, type(None)))}
    return None


def libc() -> str:
    """The C library as `glibc-2.36`, empty where the system does not say."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").replace(" ", "-")
    except (ValueError, OSError, AttributeError):
        return ""


def main() -> None:
    """Print the document."""
    folders = list(dict.fromkeys(path for path in sys.path if path and os.path.isdir(path)))
    system = os.uname()
    document = {
        "schema": "diag/packages/1",
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "libc": libc(),
        "kernel": system.release,
        "machine": system.machine,
        "path": folders,
        "torch": torch_words(folders),
        "packages": [one for folder in folders for one in distributions(folder)],
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
