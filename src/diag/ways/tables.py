"""The rows that ways are made from: releases, sets that ran, how they are published, what known faults are about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TypeVar

from diag.facts import ComponentName, KnownSet, Pin, Published, Reference, Release, RuntimeDriver, Vendor
from diag.text import matches
from diag.versions import numbers, parse, public, same, satisfies

PINNED = re.compile(r"==[\w.]+(?:\+[\w.]+)?")
SERIES = re.compile(r"==([\w.]+)\.\*")
TORCH = "torch"
R = TypeVar("R", bound=Reference)
Versions = Mapping[str, str]
Ranges = Mapping[str, tuple[str, ...]]


def exact(release: Release) -> dict[str, str]:
    """What a release pins to one version, by name."""
    return {name: pin[2:] for name, pin in release.pins.items() if PINNED.fullmatch(pin)}


def ranged(release: Release) -> dict[str, str]:
    """The distributions that a release gives a range for."""
    return {name: pin for name, pin in release.pins.items() if name != "python" and not PINNED.fullmatch(pin)}


def is_on(name: str, patterns: Iterable[str]) -> bool:
    """Whether a device goes by one of the names, with the maker's word or without."""
    words = [word for word in (name.lower(), name.lower().partition(" ")[2]) if word]
    return any(matches(word, one) for one in patterns for word in words)


class Tables:
    """The rows that ways are made from; `faults` are the versions that each known fault is about, by its rule."""

    def __init__(self, rows: Iterable[Reference], faults: Mapping[str, Ranges] | None = None) -> None:
        self.faults = faults or {}
        self._rows: dict[type[Reference], list[Reference]] = {}
        for row in rows:
            self._rows.setdefault(type(row), []).append(row)

    def of(self, kind: type[R]) -> list[R]:
        """The rows of one kind."""
        return self._rows.get(kind, [])  # type: ignore[return-value]

    @cached_property
    def releases(self) -> dict[str, list[Release]]:
        """The releases of each distribution, the newest first."""
        found: dict[str, list[Release]] = {}
        for row in self.of(Release):
            if parse(row.version):
                found.setdefault(row.package, []).append(row)
        for rows in found.values():
            rows.sort(key=lambda one: parse(one.version) or 0, reverse=True)
        return found

    @cached_property
    def parts(self) -> dict[str, ComponentName]:
        """The parts that are no distributions, by name."""
        return {row.name: row for row in self.of(ComponentName)}

    @cached_property
    def published(self) -> dict[str, Published]:
        """How each distribution is published."""
        return {row.package: row for row in reversed(self.of(Published))}

    @cached_property
    def versions(self) -> dict[str, list[str]]:
        """The versions of each distribution that a release pins or that ran, the newest first."""
        told = [item for one in self.of(Release) for item in exact(one).items()]
        told += [item for one in self.of(KnownSet) for item in (one.versions | one.beside).items()]
        told += [(one.package, one.version) for one in self.of(Release)]
        found: dict[str, set[str]] = {}
        for name, version in told:
            if name not in self.parts and parse(version):
                found.setdefault(name, set()).add(public(version))
        return {name: sorted(all_, key=lambda one: parse(one) or 0, reverse=True) for name, all_ in found.items()}

    @cached_property
    def _names(self) -> frozenset[str]:
        pins = {name for one in self.of(Release) for name in (one.package, *one.pins)}
        pins |= {name for one in self.of(Pin) for name in (one.package, one.name)}
        return frozenset(pins.union(self.versions, *self.faults.values()))

    def knows(self, name: str) -> bool:
        """Whether a pin, a set that ran or a known fault names this distribution."""
        return name in self._names or any(matches(name, one) for one in self._names if "*" in one)

    def publisher(self, known: KnownSet) -> Published | None:
        """How a distribution of a set that ran is published for devices of its maker."""
        rows = self.of(Published)
        return next((one for one in rows if one.vendor == known.vendor and one.package in known.versions), None)

    def image(self, release: Release, device: str) -> str:
        """The image of a release for a device, empty where none is published."""
        row = self.published.get(release.package)
        return (
            self.fitting(row.image.replace("{version}", release.version), row, release.version, device) if row else ""
        )

    def fitting(self, image: str, row: Published, version: str, device: str) -> str:
        """An image in the variant for a device; empty where that variant is not published of this version."""
        for one in row.variants if image and image == row.image.replace("{version}", version) else ():
            if is_on(device, one.gpu):
                return image + one.suffix if satisfies(version, f">={one.since}") else ""
        return image

    def kind(self, name: str) -> str:
        """What a part is: as `ComponentName` has it, else a distribution."""
        return self.parts[name].kind if name in self.parts else "distribution"

    def release(self, package: str, version: str) -> Release | None:
        """The release of this public version."""
        return next((one for one in self.releases.get(package, ()) if same(one.version, version)), None)

    def companions(self, given: Versions, torch: str, pinned: set[str]) -> dict[str, str]:
        """What is there and was compiled for another torch: the version that is for this one, empty where none is."""
        rows: dict[str, list[Pin]] = {}
        for row in self.of(Pin) if torch else ():
            if row.name == TORCH and row.package in given and row.package not in (*pinned, TORCH):
                rows.setdefault(row.package, []).append(row)
        moved = {}
        for name, known in rows.items():
            fitting = [one.version for one in known if satisfies(torch, one.specifier)]
            if name not in self.releases and not any(
                f"{public(given[name])}.".startswith(f"{version}.") for version in fitting
            ):
                newest = fitting[-1] if fitting else ""
                moved[name] = f"{newest}.0" if newest.count(".") == 1 else newest
        return moved

    def fits(self, release: Release, makers: frozenset[str]) -> bool:
        """Whether a release is for devices of these makers: as their plug-in, else by its build or by torch's."""
        if owners := {one.vendor for one in self.of(Vendor) if release.package in one.packages}:
            return not makers or not owners.isdisjoint(makers)
        built = (release, *self.releases.get(TORCH, ()))
        runtime = next((self.parts[one.runtime] for one in built if one.runtime in self.parts), None)
        return not makers or (runtime is not None and runtime.vendor in makers)

    def oldest_driver(self, runtime: str, version: str) -> str:
        """The oldest driver on which a runtime of this major version starts; empty where no row tells."""
        same = [one for one in self.of(RuntimeDriver) if one.runtime == runtime]
        major = [one for one in same if numbers(one.version)[:1] == numbers(version)[:1]]
        return next((one.compatible_driver for one in major if one.compatible_driver), "")

    def lowest(self, name: str, pin: str) -> str:
        """The version to go to for a range: the oldest that it names and allows, else the newest known in it."""
        named: list[str] = [*re.findall(r">=\s*([\w.]+)", pin), *SERIES.findall(pin)]
        if len(named) == 1 and satisfies(named[0], pin) is not False:
            return named[0]
        return next((one for one in self.versions.get(name, ()) if satisfies(one, pin)), "")

    def outside(self, name: str, version: str, pin: str, ranges: Iterable[str]) -> str:
        """The final version nearest to one, in a pin and in none of a fault's ranges; an older before a newer."""
        bad = tuple(ranges)
        final = [one for one in self.versions.get(name, ()) if (parsed := parse(one)) and not parsed.is_prerelease]
        free = [one for one in final if satisfies(one, pin) and not any(satisfies(one, range_) for range_ in bad)]
        older = [one for one in free if satisfies(one, f"<{public(version)}")]
        return older[0] if older else free[-1] if free else ""
