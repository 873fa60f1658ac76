"""Versions compared by the rules of whoever numbers them.

Python packages follow PEP 440, with the local part (`+cu128`) as a field of its own; drivers and toolkits are dotted
numbers. A version that cannot be read compares as unknown (`None`), never as older or newer.
"""

from __future__ import annotations

import re
from functools import lru_cache

from packaging.specifiers import SpecifierSet
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
        return None if parsed is None else SpecifierSet(specifier).contains(parsed, prereleases=True)
    except ValueError:  # no range, or one of more digits than Python makes a number of
        return None


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


EARLIER = {"dev": 0, "alpha": 1, "beta": 2, "rc": 3}
"""Words that make a version one before the release of the same numbers, the earliest first."""
PIECE = re.compile(r"[0-9]{1,18}|[a-z]+")
ZERO, END = (1, 0), (0,)
CLAUSE = re.compile(r"(===|==|!=|<=|>=|<|>)?\s{0,9}v?([0-9][\w.+-]*?)(\.\*)?")
Key = tuple[tuple[int, ...], ...]


def within(version: str, specifier: str, *, series: bool = False) -> bool | None:
    """Whether a version of a driver or a toolkit lies in a range written as for packages (`>=570.26,<580`, `8.3.RC1`).

    Ordered are dotted numbers, then what stands behind them: `8.3.RC1` comes before `8.3`, `6.3.30-V1.4.1` before
    `6.3.30-V1.4.1a`. A bare version in the range must be equal. With `series` a version of fewer numbers names all that
    begin so, and None is the answer where some of them lie in the range and some do not.
    """
    answers = [_holds(version, clause, series) for clause in specifier.split(",")]
    if False in answers:
        return False
    return None if None in answers else True


def _holds(version: str, clause: str, series: bool) -> bool | None:
    found = CLAUSE.fullmatch(clause.strip())
    have = order(version)
    need = order(found[2]) if found else ()
    if found is None or not have or not need:
        return None
    sign, prefix = found[1] or "==", found[3]
    if prefix:
        known = have[: len(need)] == need if len(have) >= len(need) else None if have == need[: len(have)] else False
        return known if known is None or sign != "!=" else not known
    if series and len(have) < len(short := _short(need)) and have == short[: len(have)]:
        return None
    one, other = _filled(have, need), _filled(need, have)
    return {
        "==": one == other,
        "===": one == other,
        "!=": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[sign]


def order(version: str) -> Key:
    """What versions of drivers and toolkits are compared by; empty where they do not begin with a number.

    Of a version in several parts (`5.7.1-6.2.26-V1.5`) those between the first and the last are a build's own.
    """
    first, *rest = version.strip().lower().removeprefix("v").split("-")
    pieces = PIECE.findall(first + ("." + rest[-1] if rest else ""))
    if not re.match(r"[0-9]", first):
        return ()
    keys: list[tuple[int, ...]] = []
    for piece in pieces:
        if piece.isdigit():
            keys.append((1, int(piece)))
        elif piece in EARLIER:
            keys.append((-1, EARLIER[piece]))
        elif piece != "v":
            keys.append((0, *map(ord, piece)))
    return tuple(keys)


def _filled(key: Key, other: Key) -> Key:
    """The key with as many numbers as the other begins with, unless it is one before a release: `8.0.RC3` stays so."""
    have, want = _leading(key), _leading(other)
    early = len(key) > have and key[have][0] < 0
    zeros = () if early else (ZERO,) * (want - have)
    return (*key[:have], *zeros, *key[have:], END)


def _leading(key: Key) -> int:
    """How many numbers a key begins with."""
    return next((place for place, one in enumerate(key) if one[0] != 1), len(key))


def _short(key: Key) -> Key:
    """The key without the zeros at its end."""
    kept = list(key)
    while len(kept) > 1 and kept[-1] == ZERO:
        kept.pop()
    return tuple(kept)
