"""The example of a root that holds knowledge alone: proved beside the bundled one, it answers what that one cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from held import ROOTS

from diag import plugins
from diag.check import Check
from diag.selftest import proved

from .loaded import LOADED, REPO
from .shell import diag, examine

EXAMPLE = REPO / "examples/vendor-root"
BESIDE = plugins.load([*ROOTS, EXAMPLE])
ENTRIES = EXAMPLE / "kb/entries"
IDS = sorted(path.relative_to(ENTRIES).with_suffix("").as_posix() for path in ENTRIES.rglob("*.yaml"))
ADDED = [BESIDE.checks[id] for id in IDS]
NEAR = f"{ADDED[0].fires[0]}\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5f7f0e5d-0b2a-4f3e-9a55-1c2d3e4f5a6b)\n"


def explained(home: Path, *options: str) -> dict[str, set[str]]:
    """What `diag explain` finds in the first firing vector of each entry, by the entry's id."""
    texts = {f"{number}.txt": one for number, one in enumerate(ADDED)}
    for name, one in texts.items():
        (home / name).write_text(one.fires[0])
    done = diag(home, "explain", "--format", "json", *options, *(str(home / name) for name in texts))
    found: dict[str, set[str]] = {one.id: set() for one in ADDED}
    for finding in json.loads(done.stdout)["findings"]:
        found[texts[finding["evidence"][0]["capture"]].id].add(finding["id"])
    return found


def test_ten_entries_load_and_no_id_is_of_the_bundled_root() -> None:
    assert BESIDE.broken == ()
    assert len(IDS) == 10
    assert set(BESIDE.checks) == {*LOADED.checks, *IDS}
    assert set(LOADED.checks).isdisjoint(IDS)


@pytest.mark.parametrize("entry", ADDED, ids=IDS)
def test_an_entry_is_proved(entry: Check) -> None:
    assert list(proved(entry, BESIDE)) == []


def test_the_root_holds_no_code() -> None:
    assert {path.suffix for path in EXAMPLE.rglob("*") if path.is_file()} == {".yaml", ".md"}


def test_a_vector_is_explained_with_the_root_alone(tmp_path: Path) -> None:
    assert explained(tmp_path, "--root", str(EXAMPLE)) == {id: {id} for id in IDS}
    assert sum(not ids for ids in explained(tmp_path).values()) >= 8


def test_its_row_makes_the_vendor_a_platform(tmp_path: Path) -> None:
    why = diag(tmp_path, "checks", "why", IDS[0], "-", "--root", str(EXAMPLE), text=NEAR).stdout
    assert f"this machine has nvidia, not {ADDED[0].about}" in why


def test_a_package_without_code_offers_it(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "site/neuron_diag")
    (tmp_path / "site/neuron_diag.dist-info").mkdir()
    (tmp_path / "site/neuron_diag.dist-info/METADATA").write_text("Name: neuron-diag\nVersion: 1\n")
    (tmp_path / "site/neuron_diag.dist-info/entry_points.txt").write_text("[diag.roots]\nneuron = neuron_diag\n")
    document = examine(tmp_path, ADDED[0].fires[0], PYTHONPATH=str(tmp_path / "site"))
    assert [one["id"] for one in document["findings"]] == [IDS[0]]
