"""The reference rows of the matrix: devices, builds of torch, forward compatibility, and the releases of torch."""

from fnmatch import fnmatchcase

import pytest
from held import LOADED
from packaging.specifiers import SpecifierSet

from diag.facts import DeviceModel, ForwardCompatibility, Reference, Release, TorchArchitectures
from diag.versions import numbers, satisfies

ROWS: tuple[Reference, ...] = (*LOADED.references, *(row for one in LOADED.later for row in one.rows()))
DEVICES = [one for one in ROWS if isinstance(one, DeviceModel)]
BUILDS = [one for one in ROWS if isinstance(one, TorchArchitectures)]
TORCH = [one for one in ROWS if isinstance(one, Release) and one.package == "torch"]


def models(name: str) -> list[DeviceModel]:
    return [one for one in DEVICES if any(fnmatchcase(name.lower(), known.lower()) for known in one.names)]


def test_a_typed_word_stands_for_one_row() -> None:
    words = [one.names[0].lower() for one in DEVICES]
    assert [one for one in set(words) if words.count(one) > 1] == []


@pytest.mark.parametrize(
    ("name", "architecture"),
    [
        *(("H20", "sm_90"), ("H200", "sm_90"), ("L4", "sm_89"), ("L40S", "sm_89"), ("A10", "sm_86"), ("A100", "sm_80")),
        *(("A10G", "sm_86"), ("Tesla V100-SXM2-32GB", "sm_70"), ("Tesla V100S-PCIE-32GB", "sm_70"), ("B300", "sm_103")),
        *(("GeForce RTX 5090 D", "sm_120"), ("GeForce RTX 5070 Ti", "sm_120"), ("Instinct MI300X VF", "gfx942")),
        *(("K100_AI", "gfx928"), ("K100", "gfx926"), ("GH200 480GB", "sm_90"), ("GeForce GTX 1080 Ti", "sm_61")),
    ],
)
def test_a_name_has_one_architecture(name: str, architecture: str) -> None:
    assert {one.architecture for one in models(name) if one.architecture} == {architecture}


@pytest.mark.parametrize("name", ["H20Z", "L20X", "A100X", "Tesla T10 Processor", "GeForce RTX 3050", "H2"])
def test_another_product_is_not_taken_for_one_of_like_name(name: str) -> None:
    assert models(name) == []


def test_models_of_a_name_agree_on_what_they_are() -> None:
    for device in DEVICES:
        alike = [one for name in device.names if not set("*?[") & set(name) for one in models(name)]
        assert len({one.architecture for one in alike if one.architecture}) <= 1
        assert len({one.data_center for one in alike if one.data_center is not None}) <= 1


def test_releases_of_torch_are_those_of_the_lists() -> None:
    assert len(TORCH) == 24
    for release in TORCH:
        assert release.runtime_version
        assert not release.builds or release.runtime_version in release.builds
        assert all(SpecifierSet(pin) for pin in release.pins.values())
        rows = [one for one in BUILDS if one.runtime == "cuda" and satisfies(release.version, one.torch)]
        assert any(fnmatchcase(release.runtime_version, one.version) for one in rows), release.version


def test_no_two_lists_are_of_one_build() -> None:
    for release in TORCH:
        for machine in ("x86_64", "aarch64"):
            rows = [one for one in BUILDS if one.machine == machine and satisfies(release.version, one.torch)]
            built = [one.version for one in rows if one.runtime == "cuda"]
            assert len(built) == len(set(built))


def test_packages_are_named_by_their_version() -> None:
    for row in (one for one in ROWS if isinstance(one, ForwardCompatibility)):
        assert row.package == f"cuda-compat-{row.version.replace('.', '-')}"
        assert all(numbers(branch) for branch in row.branches)
