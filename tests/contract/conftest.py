"""A test that asks for a `rule`, a `vector` or a `probe` is run for each there is."""

from __future__ import annotations

import os

import pytest

from .loaded import PROBES, RULES, VECTORS, Vector

ALIKE = ("test_redaction_changes_nothing", "test_same_everywhere", "test_rules")
"""Modules for which a line that only asks about a set of versions, or an entry, is like any other: one of each subject
is run, and all of them where more examples are asked for."""


def _asked(vector: Vector) -> bool:
    return vector.text.strip().startswith("$ diag matrix check") and "\n" not in vector.text.strip()


def _apart() -> list[Vector]:
    """All vectors, of those that only ask, and of entries, the first of each subject."""
    if "DIAG_EXAMPLES" in os.environ:
        return VECTORS
    alike = [vector for vector in VECTORS if _asked(vector) or vector.rule.kind == "entry"]
    first = {(vector.rule.kind, vector.rule.id.rpartition("/")[0]): vector for vector in reversed(alike)}
    kept = {vector.name for vector in VECTORS} - {vector.name for vector in alike}
    kept |= {vector.name for vector in first.values()}
    return [vector for vector in VECTORS if vector.name in kept]


EACH = {
    "rule": (RULES, [rule.id for rule in RULES]),
    "vector": (VECTORS, [vector.name for vector in VECTORS]),
    "probe": (PROBES, [probe.key for probe in PROBES]),
}
APART = _apart()
APART_RULES = [rule for rule in RULES if rule.kind != "entry" or rule.id in {vector.rule.id for vector in APART}]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, (values, ids) in EACH.items():
        if name in metafunc.fixturenames:
            if name == "vector" and metafunc.module.__name__.endswith(ALIKE):
                values, ids = APART, [vector.name for vector in APART]
            if name == "rule" and metafunc.module.__name__.endswith("test_formats"):
                values, ids = APART_RULES, [rule.id for rule in APART_RULES]
            metafunc.parametrize(name, values, ids=ids)
