"""Builds the device with the machine's own compiler, once for each torch: `python tests/backend/hostbuild.py`."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent / "hostdev" / "csrc"
STANDARD = ["-std=c++20", "-O1", "-fPIC"]


def compiler() -> str:
    """The C++ compiler of this machine."""
    found = shutil.which(os.environ.get("CXX") or "g++") or shutil.which("c++")
    if found is None:
        raise LookupError("no C++ compiler")
    return found


def cache() -> Path:
    """Where builds lie: a folder for each torch and state of the sources."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diag-tests" / "hostdev"


def command(torch_folder: Path, abi: bool, target: Path) -> list[str]:
    """The one call of the compiler."""
    include, library = torch_folder / "include", torch_folder / "lib"
    paths = [f"-I{include}", f"-I{include}/torch/csrc/api/include", f"-L{library}", f"-Wl,-rpath,{library}"]
    defined = f"-D_GLIBCXX_USE_CXX11_ABI={int(abi)}"
    return [compiler(), *STANDARD, defined, *paths, "-shared", str(SOURCES / "all.cpp"), "-o", str(target),
            "-ltorch", "-ltorch_cpu", "-lc10"]  # fmt: skip


def library() -> Path:
    """The device as a shared library for the torch of this interpreter, built if it is not there yet."""
    import torch

    text = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    state = hashlib.sha256(text + " ".join(STANDARD).encode()).hexdigest()[:12]
    folder = cache() / f"torch-{torch.__version__}-{state}"
    folder.mkdir(parents=True, exist_ok=True)
    target, partial = folder / "hostdev.so", folder / "hostdev.partial"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            subprocess.run(command(Path(torch.__file__).parent, torch._C._GLIBCXX_USE_CXX11_ABI, partial), check=True)
            partial.rename(target)
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{library()}\n")
