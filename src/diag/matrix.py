"""The version matrix: rows that become checks.

So far the known-bad cases that package versions alone decide; releases, rules and verdict levels come with the judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import yaml
from msgspec import Meta, Struct, convert
from packaging.specifiers import SpecifierSet

from diag.check import Answer, Check
from diag.facts import Facts, Package, PackageList
from diag.finding import Evidence, Finding, Undecided, Value
from diag.kb import Loader, Rule
from diag.versions import canonical, satisfies


class When(Struct, frozen=True, forbid_unknown_fields=True):
    """The packages that must all be in their ranges; a missing one leaves the row undecided."""

    packages: Annotated[dict[str, str], Meta(min_length=1)]

    def __post_init__(self) -> None:
        for allowed in self.packages.values():
            SpecifierSet(allowed)

    def met(self, facts: Facts) -> list[Package]:
        """The packages that meet the row, empty unless all do."""
        found = [facts.package(canonical(name)) for name in self.packages]
        pairs = zip(found, self.packages.values(), strict=True)
        met = [package for package, allowed in pairs if package and satisfies(package.version, allowed)]
        return met if len(met) == len(self.packages) else []

    def undecided(self, facts: Facts) -> str:
        """Which package the row needs and no list names."""
        absent = [name for name in self.packages if facts.package(canonical(name)) is None]
        return f"{', '.join(absent)} not among the packages" if absent else ""


class Case(Rule, frozen=True, kw_only=True):
    """A set of versions that is known to fail."""

    id: str
    when: When

    def not_applicable(self, facts: Facts) -> str:
        """Why the row does not concern this machine: a package of it is known not to be installed."""
        return self.when.undecided(facts) if facts.first(PackageList) else ""

    def run(self, facts: Facts) -> Iterator[Answer]:
        """A finding where every package of the row is in its range."""
        if reason := self.when.undecided(facts):
            yield Undecided(reason=reason)
        elif met := self.when.met(facts):
            values: dict[str, Value] = {"packages": ", ".join(f"{package.name} {package.version}" for package in met)}
            evidence = tuple(Evidence.of(package) for package in met)
            yield Finding(values=values, confidence=self.confidence, evidence=evidence)


class Subject(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the matrix."""

    cases: tuple[Case, ...] = ()


def load(path: Path, root: Path) -> Iterator[Check]:
    """The checks a matrix file becomes, named `matrix/<file>/<row>`."""
    subject = convert(yaml.load(path.read_text(encoding="utf-8"), Loader), Subject)
    folder = path.relative_to(root / "kb" / "matrix").with_suffix("").as_posix()
    for case in subject.cases:
        stated = case.stated("matrix")
        yield Check(
            id=f"matrix/{folder}/{case.id}",
            needs=(Package,),
            uses=(PackageList,),
            run=case.run,
            applies=case.not_applicable,
            **stated,
        )
