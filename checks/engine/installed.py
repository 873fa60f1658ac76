"""Which engines are installed: a distribution of an engine's name in a list of packages.

A report that names the engine itself is not repeated. What this cannot know: an engine run from its sources without
being installed.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Engine, Fact, Facts, Package, deduction

DISTRIBUTIONS = ("vllm", "sglang")
"""Distributions that are named as the engine is."""


@deduction(needs=(Package,), uses=(Engine,), tells=(Engine,))
def installed_engines(facts: Facts) -> Iterator[Fact]:
    """The engines among the installed packages that no report has named with their version."""
    told = {one.name for one in facts.all(Engine) if one.role == "installed" and one.version}
    for name in DISTRIBUTIONS:
        package = facts.package(name)
        if package and name not in told:
            yield Engine(origin=package.origin, name=name, version=package.version)
