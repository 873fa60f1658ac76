"""The parts of a machine that versions are told of, by the names that rules and people use.

A distribution goes by its own name; everything else (`driver`, `python`, the runtime that torch was built for, a
vendor's toolkit) by a name that `ComponentName` lists. What this cannot know: which of several toolkits a program uses;
where their versions differ, each is a part.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from diag.facts.bag import Facts
from diag.facts.base import Fact
from diag.facts.engine import Engine, LaunchArguments
from diag.facts.host import Host
from diag.facts.matrix import Component, ComponentName, Release
from diag.facts.models import present_makers
from diag.facts.software import Driver, Package, PackageList, Python, Runtime, TorchBuild
from diag.shell import Shell
from diag.text import matches
from diag.versions import canonical, count, local, parse, public, same, satisfies, within

EARLY = re.compile(r"\d(?:a|b|rc|\.dev)\d")
"""A range that names a version before a release means such versions."""
TORCH = "torch"
SERIES = ("driver", "python")
"""Kinds whose version may be told as a series alone (`535`, `3.12`)."""


class Part(NamedTuple):
    """One version of one part, and the fact that told it; `kind` as in `ComponentName`, or `distribution`.

    `of` is what brings it along, where that is concluded.
    """

    name: str
    version: str
    kind: str
    fact: Fact
    of: str = ""

    def lies_in(self, specifiers: tuple[str, ...]) -> bool | None:
        """Whether the version is in one of these ranges; None where it cannot be told."""
        if self.kind == "distribution":
            answers = [_within(self.version, one) for one in specifiers]
        else:
            answers = [within(self.version, one, series=self.kind in SERIES) for one in specifiers]
        return True if True in answers else None if None in answers else False


def _within(version: str, specifier: str) -> bool | None:
    """Whether a version is in a range; of one before a release that is in another answer than it, None."""
    answer, parsed = satisfies(version, specifier), parse(public(version))
    early = parsed and parsed.is_prerelease and not EARLY.search(specifier)
    if parsed and early and answer != satisfies(parsed.base_version, specifier):
        return None
    return answer


def parts_named(facts: Facts, name: str, vendor: str = "") -> list[Part]:
    """The parts of this name: of several distributions for a pattern, of a vendor's driver where one is meant."""
    row = facts.concluded(_names).get(name)
    if row is None:
        wanted = name if any(sign in name for sign in "*?[") else canonical(name)
        found = [one for one in facts.all(Package) if matches(one.name, wanted)]
        told = [Part(one.name, one.version, "distribution", one) for one in found]
        return told or list(_unlisted(facts, wanted))
    known = _told(facts, row, vendor)
    return [*{one.version: one for one in reversed([*known])}.values()][::-1]


def _names(facts: Facts) -> dict[str, ComponentName]:
    """The first row of each name."""
    return {one.name: one for one in reversed(facts.all(ComponentName))}


def _unlisted(facts: Facts, name: str) -> Iterator[Part]:
    """The version of what no list names: of an engine that a report tells or whose image is started, and of torch."""
    for engine in facts.all(Engine):
        if engine.name == name and engine.version:
            yield Part(name, engine.version, "distribution", engine)
    for launch in facts.all(LaunchArguments):
        if launch.engine == name and launch.version:
            yield Part(name, launch.version, "distribution", launch)
    for build in facts.all(TorchBuild) if name == "torch" else ():
        if build.version and not build.inferred:
            yield Part(name, build.version, "distribution", build)


def brought(facts: Facts, name: str) -> list[Part]:
    """The distribution that what is asked about or started in an image pins to one version, itself or by its torch.

    Only where torch is built for the runtime that the pins are for, and no other maker stands here.
    """
    for fact, release in facts.concluded(_bringing):
        if exact := release.pinned(name):
            return [Part(name, exact, "distribution", fact, f"{release.package} {release.version}")]
    return []


def _bringing(facts: Facts) -> tuple[tuple[Fact, Release], ...]:
    """The releases of which a plain installation brings what they pin, and what told of each."""
    asked = {one.origin for one in facts.all(Component)}
    told: list[tuple[Fact, str, str]] = [
        (one, one.name, one.version) for one in facts.all(Package) if one.origin in asked
    ]
    told += [(one, one.engine, one.version) for one in facts.all(LaunchArguments) if one.image]
    names = {TORCH, *(name for _, name, _ in told)}
    rows = [one for one in facts.all(Release) if one.package in names] if told else []
    own, found = facts.package(TORCH), []
    for fact, package, version in told:
        release = _release(rows, package, version)
        pinned = release.pinned(TORCH) if release else ""
        torch = _release(rows, TORCH, own.version if own else pinned)
        found += [(fact, one) for one in (release, torch) if one and _default(facts, torch or one)]
    return tuple(found)


def _release(rows: list[Release], package: str, version: str) -> Release | None:
    own = bool(version) and not (local(version) and not local(version).startswith("cu"))
    return next((one for one in rows if own and one.package == package and same(one.version, version)), None)


def _default(facts: Facts, torch: Release) -> bool:
    builds = {one.backend for one in facts.all(TorchBuild) if one.backend}
    own = {one.vendor for one in facts.all(ComponentName) if one.kind == "build" and one.name == torch.runtime}
    return builds == {torch.runtime} and present_makers(facts) <= own


def absent(facts: Facts, name: str) -> bool:
    """Whether a part is known not to be there: not in a whole list of distributions, not what torch was built for."""
    row = facts.concluded(_names).get(name)
    if row:
        builds = [one.backend for one in facts.all(TorchBuild) if one.backend]
        return row.kind == "build" and bool(builds) and name not in builds
    return facts.first(PackageList) is not None and not parts_named(facts, name)


def _told(facts: Facts, row: ComponentName, vendor: str) -> Iterator[Part]:
    for component in facts.all(Component):
        if component.name == row.name and row.kind not in ("driver", "device"):
            yield Part(row.name, component.version, row.kind, component)
    for version, fact in _versions(facts, row, vendor):
        if version:
            yield Part(row.name, version, row.kind, fact)


def _versions(facts: Facts, row: ComponentName, vendor: str) -> Iterator[tuple[str, Fact]]:
    name = row.runtime or row.name
    if row.kind == "python":
        yield from ((one.version, one) for one in facts.all(Python))
    elif row.kind == "libc":
        yield from ((one.libc.removeprefix("glibc-"), one) for one in facts.all(Host) if one.libc.startswith("glibc-"))
    elif row.kind == "driver":
        yield from ((one.version, one) for one in facts.all(Driver) if not vendor or one.vendor == vendor)
    elif row.kind == "ranks":
        yield from _ranks(facts, row)
    elif row.kind == "model":
        yield from ((one.model, one) for one in facts.all(LaunchArguments))
    elif row.kind == "build":
        yield from ((one.backend_version, one) for one in facts.all(TorchBuild) if one.backend == name)
    elif row.kind in ("runtime", "toolkit"):
        for one in facts.all(Runtime):
            if one.name == name and (row.kind == "runtime" or one.kind == "toolkit"):
                yield one.version, one


def _ranks(facts: Facts, row: ComponentName) -> Iterator[tuple[str, Fact]]:
    """The tensor-parallel size of what starts a server; one that is not given is one."""
    for launch in facts.all(LaunchArguments):
        if launch.subcommand == "serve":
            given = next((value for name, value in launch.flags if name in row.flags), "1")
            if count(given):
                yield given, launch


def asked_words(facts: Facts) -> Shell:
    """The set that somebody asks about, in the words of `diag matrix`, quoted for a shell; empty where none is."""
    distributions = {(one.origin, one.name) for one in facts.all(Package)}
    words = (
        f"{one.name}{'==' if (one.origin, one.name) in distributions else '='}"
        f"{f'{one.count}x' if one.count else ''}{one.version}"
        for one in facts.all(Component)
    )
    return Shell(shlex.join(words))
