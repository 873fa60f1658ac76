"""A test that asks for a `rule`, a `vector` or a `probe` is run for each there is."""

from __future__ import annotations

import pytest

from .loaded import PROBES, RULES, VECTORS

EACH = {
    "rule": (RULES, [rule.id for rule in RULES]),
    "vector": (VECTORS, [vector.name for vector in VECTORS]),
    "probe": (PROBES, [probe.key for probe in PROBES]),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, (values, ids) in EACH.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values, ids=ids)
