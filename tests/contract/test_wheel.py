"""The wheel, made from the sdist, holds every rule of the checkout, and works where there is no checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from diag import plugins

from .loaded import REPO
from .shell import diag

PARTS = ("src", "checks", "kb", "reports")
FILES = ("pyproject.toml", "README.md", "LICENSE", ".gitignore")
MISSING = [module for module in ("build", "hatchling", "pip") if find_spec(module) is None]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that nobody edits while it is compared; leftovers of the interpreter and of editors are in it."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        shutil.copytree(REPO / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(REPO / file, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(checkout)]
    subprocess.run(build, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(folder), str(wheel)], check=True)
    return folder


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_every_file_of_the_roots_is_bundled(wheel: Path, checkout: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    bundled = sorted(name.removeprefix("diag/_bundled/") for name in names if name.startswith("diag/_bundled/"))
    assert bundled == sorted(f"{part}/{name}" for part in PARTS[1:] for name in files(checkout / part))
    assert len(names) == len(set(names))


def test_every_file_of_the_package_is_there_and_nothing_else(wheel: Path, checkout: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith("diag/_bundled/")]
    assert sorted(name for name in names if ".dist-info/" not in name) == files(checkout / "src")
    assert "diag/py.typed" in names


def test_installed_wheel_proves_the_same_rules(site: Path, checkout: Path, tmp_path: Path) -> None:
    loaded = plugins.load([checkout])
    done = diag(tmp_path, "selftest", PYTHONPATH=str(site))
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"{len(loaded.checks)} rules, ")


def test_installed_wheel_reads_its_own_roots(site: Path, tmp_path: Path) -> None:
    ask = "from diag import plugins; print(plugins.bundled())"
    call = [sys.executable, "-c", ask]
    done = subprocess.run(call, env={"PYTHONPATH": str(site)}, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(site / "diag/_bundled")


def test_command_of_the_installed_wheel(site: Path, tmp_path: Path) -> None:
    call = [str(site / "bin/diag"), "--version"]
    done = subprocess.run(call, env={"PYTHONPATH": str(site)}, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("diag ")
