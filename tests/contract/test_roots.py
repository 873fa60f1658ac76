"""Roots: a wheel, the config folder, an option and a variable go one way; what is broken stops nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from held import ROOTS

from diag import plugins

from .acme import CHECK, entry, project, write
from .loaded import LOADED
from .shell import diag, examine

PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
FLUX = "checks/acme/flux_low.py"
VALVE = "kb/entries/acme/valve.yaml"
BROKEN = {
    "syntax error": (FLUX, "def ("),
    "exception at import": (FLUX, "raise RuntimeError('no')"),
    "exit at import": (FLUX, "import sys\nsys.exit(0)"),
    "import of what is not there": (FLUX, "import nothing_of_this_name"),
    "not UTF-8": (FLUX, "x = '\udcff'"),
    "id is not the path": (FLUX, CHECK.replace("acme/flux-low", "acme/flux")),
    "no Chinese in a check": (FLUX, CHECK.replace('"zh": {"title"', '"fr": {"title"')),
    "half of the Chinese in a check": (FLUX, CHECK.replace('"summary": "磁通为 {webers} Wb", ', "")),
    "no such severity": (FLUX, CHECK.replace('severity="error"', 'severity="fatal"')),
    "bad YAML": (VALVE, "title: [\n"),
    "empty YAML": (VALVE, ""),
    "YAML of another shape": (VALVE, "- 1\n"),
    "unknown field": (VALVE, entry("valve") + "colour: red\n"),
    "no Chinese in an entry": (VALVE, entry("valve").replace(", zh: 阀门卡住", "")),
    "no vectors": (VALVE, entry("valve").partition("vectors:")[0]),
    "bad regular expression": (VALVE, entry("valve").replace("[valve stuck]", "[valve stuck], any: ['(']")),
    "bad version range": (VALVE, entry("valve") + "applies: {component: torch, version: 'about 2'}\n"),
    "matrix without rows of its shape": ("kb/matrix/acme.yaml", "cases: [{id: x}]\n"),
    "reference of no kind": ("kb/reference/acme.yaml", "fact: Nothing\nrows: []\n"),
    "reference without its fields": ("kb/reference/acme.yaml", "fact: RuntimeDriver\nrows: [{vendor: acme}]\n"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a third party's wheel is installed."""
    for module in ("hatchling", "pip"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed, so that no wheel can be built and installed")
    folder = tmp_path_factory.mktemp("acme")
    build = (*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(folder / "dist"))
    subprocess.run([*build, str(project(folder / "project"))], check=True)
    built = str(next((folder / "dist").glob("*.whl")))
    install = (*PIP, "install", "--no-index", "--no-deps", "--target", str(folder / "site"))
    subprocess.run([*install, built], check=True)
    return folder / "site"


def found(document: dict[str, list[dict[str, str]]]) -> list[str]:
    assert document["broken"] == []
    return sorted(one["id"] for one in document["findings"])


@pytest.mark.slow
def test_wheel_of_a_third_party(wheel: Path, tmp_path: Path) -> None:
    ids = found(examine(tmp_path, "ACME flux: 3\nthe valve stuck\n", PYTHONPATH=str(wheel)))
    assert ids == ["acme/flux-low", "acme/valve"]
    assert found(examine(tmp_path, "ACME flux: 30\nthe valve moves\n", PYTHONPATH=str(wheel))) == []


@pytest.mark.slow
def test_every_kind_of_root_at_once(wheel: Path, tmp_path: Path) -> None:
    write(tmp_path / "config/diag", {"kb/entries/home/pump.yaml": entry("pump")})
    named = write(tmp_path / "named", {"kb/entries/site/fan.yaml": entry("fan")})
    listed = write(tmp_path / "listed", {"kb/entries/site/door.yaml": entry("door")})
    text = "ACME flux: 3\n" + "".join(f"the {word} stuck\n" for word in ("valve", "pump", "fan", "door"))
    document = examine(tmp_path, text, "--root", str(named), PYTHONPATH=str(wheel), DIAG_ROOTS=str(listed))
    assert found(document) == ["acme/flux-low", "acme/valve", "home/pump", "site/door", "site/fan"]


@pytest.mark.slow
def test_rules_of_a_wheel_are_listed_and_prove_themselves(wheel: Path, tmp_path: Path) -> None:
    listed = diag(tmp_path, "checks", "list", PYTHONPATH=str(wheel)).stdout
    assert {"acme/flux-low", "acme/valve"} <= {line.split()[0] for line in listed.splitlines()}
    proved = diag(tmp_path, "selftest", PYTHONPATH=str(wheel))
    assert "acme/valve: silent vector 1" in proved.stdout
    assert (proved.returncode, "acme/flux-low" in proved.stdout) == (1, False)


def test_config_folder_runs_code_too(tmp_path: Path) -> None:
    write(tmp_path / "config/diag", {FLUX: CHECK})
    assert found(examine(tmp_path, "ACME flux: 3")) == ["acme/flux-low"]


def test_working_directory_is_no_root(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {FLUX: "raise RuntimeError", VALVE: entry("valve")})
    assert found(examine(tmp_path, "the valve stuck")) == []


def test_config_folder_need_not_be_a_root(tmp_path: Path) -> None:
    write(tmp_path / "config/diag", {"diag.toml": ""})
    assert examine(tmp_path, "some words")["broken"] == []


def test_broken_entry_point_stops_nothing(tmp_path: Path) -> None:
    names = {"acme.dist-info/METADATA": "Name: acme\nVersion: 1\n"}
    names["acme.dist-info/entry_points.txt"] = "[diag.roots]\na = acme_gone.inner\nb = acme_gone\n"
    document = examine(tmp_path, "the valve stuck", PYTHONPATH=str(write(tmp_path / "site", names)))
    assert ["acme_gone" in one["where"] + one["error"] for one in document["broken"]] == [True, True]


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_file_is_listed_and_stops_nothing(kind: str, tmp_path: Path) -> None:
    place, content = BROKEN[kind]
    root = write(tmp_path, {"kb/entries/acme/fan.yaml": entry("fan"), "checks/zeta/probes.py": "", "reports/x.j2": ""})
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_bytes(content.encode(errors="surrogateescape"))
    loaded = plugins.load([*ROOTS, root])
    assert [one.where for one in loaded.broken] == [str(root / place)]
    assert all(one.error and "\n" not in one.error for one in loaded.broken)
    assert set(loaded.checks) == {*LOADED.checks, "acme/fan"}


@pytest.mark.parametrize(("place", "content"), [(FLUX, CHECK), (VALVE, entry("valve"))])
def test_later_root_cannot_replace_an_id(place: str, content: str, tmp_path: Path) -> None:
    first = write(tmp_path / "1", {place: content})
    second = write(tmp_path / "2", {place: content.replace("error", "info"), "kb/entries/acme/fan.yaml": entry("fan")})
    loaded = plugins.load([*ROOTS, first, second])
    assert {one.severity for one in loaded.checks.values() if one.id.startswith("acme/")} == {"error"}
    assert [one.where for one in loaded.broken] == [str(second / place)]
    assert "acme/fan" in loaded.checks


def test_same_id_in_code_and_data_is_broken(tmp_path: Path) -> None:
    root = write(tmp_path, {FLUX: CHECK, "kb/entries/acme/flux-low.yaml": entry("flux")})
    loaded = plugins.load([root])
    assert loaded.checks["acme/flux-low"].kind == "check"
    assert [one.where for one in loaded.broken] == [str(root / "kb/entries/acme/flux-low.yaml")]


def test_later_template_cannot_replace_one(tmp_path: Path) -> None:
    names = list(LOADED.templates)
    loaded = plugins.load([*ROOTS, write(tmp_path, {f"reports/{name}": "mine" for name in names})])
    assert names
    assert loaded.templates == LOADED.templates


def test_a_folder_that_is_no_root_is_said(tmp_path: Path) -> None:
    assert [one.where for one in plugins.load([tmp_path]).broken] == [str(tmp_path)]
    gone = diag(tmp_path, "checks", "list", "--root", str(tmp_path / "gone"))
    assert (gone.returncode, len(gone.stderr.splitlines())) == (2, 1)
