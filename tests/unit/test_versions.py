import pytest

from diag import versions


@pytest.mark.parametrize(
    ("version", "minimum", "answer"),
    [
        ("570.124.06", "570.26", True),
        ("470.82.01", "525.60.13", False),
        ("12", "12.0", True),
        ("6.3.30-V1.4.1a", "6.3.30", True),
        ("", "1", None),
        ("unknown", "1", None),
    ],
)
def test_drivers_compare_number_by_number(version, minimum, answer):
    assert versions.at_least(version, minimum) is answer


@pytest.mark.parametrize(
    ("version", "specifier", "answer"),
    [
        ("2.9.0+cu128", "==2.9.0", True),
        ("2.9.0rc1", ">=2.8", True),
        ("2.5.1+das.opt1.dtk2604", "<2.6", True),
        ("8.3.RC2", ">=8", True),
        ("not a version", ">=1", None),
        ("1.0", "nonsense", None),
    ],
)
def test_packages_compare_by_pep_440_without_the_local_part(version, specifier, answer):
    assert versions.satisfies(version, specifier) is answer


def test_names_and_parts():
    assert versions.canonical("Torch_C--dlpack.ext") == "torch-c-dlpack-ext"
    assert (versions.public("2.9.1+cu128"), versions.local("2.9.1+cu128")) == ("2.9.1", "cu128")
    assert versions.minor("2.9.1+cu128") == "2.9"
