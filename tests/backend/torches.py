"""The detectors on other releases of torch, in environments made for it and thrown away: `make full`.

An x86 wheel of torch from the public index is a build for CUDA with gigabytes of libraries; those for aarch64 are CPU
builds. They run under `qemu-aarch64-static` with a Python of Debian's that is unpacked, not installed, and the device
of this folder is compiled across. Needs root, network, `qemu-user-static`, `debootstrap` and `g++-aarch64-linux-gnu`;
where something cannot be had it says so and ends well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RELEASES = ("2.5.1", "2.9.1")
BESIDE = ("typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock")
"""What `import torch` needs, in any platform's form."""
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_28_aarch64")
TOOLS = ("qemu-aarch64-static", "debootstrap", "aarch64-linux-gnu-g++")
PACKAGES = ("qemu-user-static", "debootstrap", "g++-aarch64-linux-gnu")
INCLUDED = "python3,libgomp1,libstdc++6"
HERE = Path(__file__).parent
PATIENCE = 1800


def main() -> int:
    """Ask each release; 1 where one answers otherwise."""
    if missing := [one for one in TOOLS if not shutil.which(one)]:
        subprocess.run(("apt-get", "install", "-y", "-q", *PACKAGES), capture_output=True)
        if missing := [one for one in missing if not shutil.which(one)]:
            return left_out(f"no {', '.join(missing)}")
    if os.getuid():
        return left_out("unpacking a Debian needs root")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        python = interpreter(root)
        if python is None:
            return left_out("no Python for aarch64 can be had")
        return max(asked(release, Path(folder), root, python) for release in RELEASES)


def left_out(reason: str) -> int:
    """Why a release is not asked."""
    sys.stdout.write(f"left out: {reason}\n")
    return 0


def interpreter(root: Path) -> Path | None:
    """Debian's Python for aarch64, unpacked below a folder."""
    suite = next(
        line for line in Path("/etc/os-release").read_text().splitlines() if line.startswith("VERSION_CODENAME")
    )
    first = ("debootstrap", "--foreign", "--arch=arm64", "--variant=minbase", f"--include={INCLUDED}")
    if not went((*first, suite.partition("=")[2], str(root))):
        return None
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        if not went(("dpkg-deb", "-x", str(package), str(root))):
            return None
    return next(iter(sorted((root / "usr/bin").glob("python3.[0-9]*"))), None)


def asked(release: str, folder: Path, root: Path, python: Path) -> int:
    """The tests of the detectors with this release; 0 where it cannot be had."""
    target = folder / f"torch-{release}"
    pip = (sys.executable, "-m", "pip", "install", "-q", "--target", str(target))
    wheels = tuple(f"--platform={one}" for one in PLATFORMS)
    built = (f"--python-version={python.name.removeprefix('python')}", "--implementation=cp", "--only-binary=:all:")
    if not went((*pip, "--no-deps", *wheels, *built, f"torch=={release}")) or not went((*pip, *BESIDE)):
        return left_out(f"no torch {release} for aarch64 can be had")
    environment = {
        **os.environ,
        "DIAG_TEST_PYTHON": f"qemu-aarch64-static -L {root} {python}",
        "DIAG_TEST_PATH": str(target),
        "CXX": "aarch64-linux-gnu-g++",
        "XDG_CACHE_HOME": str(folder),
        "PYTHONPATH": os.pathsep.join((str(HERE), str(target))),
    }
    said = subprocess.run(
        (*environment["DIAG_TEST_PYTHON"].split(), str(HERE / "dispatched.py")),
        env=environment,
        capture_output=True,
        text=True,
    )
    saved = next((HERE / "texts").glob(f"torch-{release}*.txt")).read_text()
    sys.stdout.write(
        f"torch {release}: its dispatcher's texts are {'the saved ones' if said.stdout == saved else 'OTHERS'}\n"
    )
    del environment["PYTHONPATH"]
    wanted = "table or tree_tells or together or accelerator or raises"
    tests = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        str(HERE / "test_detectors.py"),
        "-k",
        wanted,
    )
    return int(said.stdout != saved or subprocess.run(tests, env=environment).returncode != 0)


def went(command: tuple[str, ...]) -> bool:
    """Whether a command ended well."""
    return subprocess.run(command, capture_output=True, timeout=PATIENCE).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
