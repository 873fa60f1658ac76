"""Versions compared by the rules of whoever numbers them.

Python packages follow PEP 440, with the local part (`+cu128`) as a field of its own; drivers and toolkits are dotted
numbers. A version that cannot be read compares as unknown (`None`), never as older or newer.
"""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version


@lru_cache(maxsize=4096)
def parse(version: str) -> Version | None:
    """The PEP 440 reading of a version, or None where it has none."""
    try:
        return Version(version)
    except ValueError:  # no version, or one of more digits than Python makes a number of
        return None


def public(version: str) -> str:
    """The version without its local part: `2.9.1+cu128` is `2.9.1`."""
    return version.partition("+")[0]


def local(version: str) -> str:
    """The local part of a version, empty without one: `2.9.1+cu128` gives `cu128`."""
    return version.partition("+")[2]


def minor(version: str) -> str:
    """The first two numbers of a version: `2.9.1+cu128` gives `2.9`."""
    return ".".join(map(str, numbers(version)[:2]))


def satisfies(version: str, specifier: str) -> bool | None:
    """Whether a package version lies in a PEP 440 range, its local part left out; None where either cannot be read."""
    parsed = parse(public(version))
    try:
        allowed = SpecifierSet(specifier)
    except InvalidSpecifier:
        return None
    return None if parsed is None else allowed.contains(parsed, prereleases=True)


def canonical(name: str) -> str:
    """A distribution name as PEP 503 compares it: lower case, runs of `-_.` as one dash."""
    return re.sub(r"[-_.]+", "-", name).lower()


def numbers(version: str) -> tuple[int, ...]:
    """The leading dotted numbers of a version: `570.124.06` gives (570, 124, 6); empty where there are none."""
    found = re.match(r"\s*v?([0-9]{1,18}(?![0-9])(?:\.[0-9]{1,18}(?![0-9]))*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()


def count(text: str) -> int | None:
    """A number of things as somebody typed it; None where it is none, or has more digits than things can have."""
    return int(text) if re.fullmatch(r"[0-9]{1,12}", text.strip()) else None


def at_least(version: str, minimum: str) -> bool | None:
    """Whether a dotted version is not below a minimum; None where one of them has no numbers."""
    have, need = numbers(version), numbers(minimum)
    if not have or not need:
        return None
    width = max(len(have), len(need))
    return have + (0,) * (width - len(have)) >= need + (0,) * (width - len(need))
