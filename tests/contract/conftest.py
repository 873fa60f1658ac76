"""A test that asks for a `rule`, a `vector` or a `probe` is run for each there is."""

from __future__ import annotations

import pytest

from .loaded import PROBES, RULES, VECTORS, Vector

ALIKE = ("test_redaction_changes_nothing", "test_same_everywhere")
"""Modules for which a line that only asks about a set of versions is like any other: one of each subject is run."""


def _asked(vector: Vector) -> bool:
    return vector.text.strip().startswith("$ diag matrix check") and "\n" not in vector.text.strip()


def _apart() -> list[Vector]:
    """All vectors, of those that only ask the first of each subject."""
    first = {vector.rule.id.rpartition("/")[0]: vector for vector in reversed(VECTORS) if _asked(vector)}
    return [vector for vector in VECTORS if not _asked(vector) or vector in first.values()]


EACH = {
    "rule": (RULES, [rule.id for rule in RULES]),
    "vector": (VECTORS, [vector.name for vector in VECTORS]),
    "probe": (PROBES, [probe.key for probe in PROBES]),
}
APART = _apart()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, (values, ids) in EACH.items():
        if name in metafunc.fixturenames:
            if name == "vector" and metafunc.module.__name__.endswith(ALIKE):
                values, ids = APART, [vector.name for vector in APART]
            metafunc.parametrize(name, values, ids=ids)
