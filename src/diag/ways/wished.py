"""What is wished for, what is there, and what a way from the one to the other is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field
from packaging.specifiers import SpecifierSet

from diag.facts import KnownSet, Level, Release
from diag.versions import canonical, satisfies

WISH = re.compile(r"([A-Za-z][\w.-]*)\s*((?:[<>!~]=?|===?).*)?")


class Wanted(NamedTuple):
    """What is wished for: a distribution in a range (empty for any version), and a model; either may be empty."""

    name: str = ""
    specifier: str = ""
    model: str = ""

    def granted(self, version: str) -> bool:
        """Whether a version is one that is wished for."""
        return bool(version) and (
            version == self.specifier.removeprefix("==") or satisfies(version, self.specifier) is True
        )


class Given(Struct, frozen=True):
    """What is there: versions by name, the distributions that were named in words, the makers of the devices."""

    versions: dict[str, str]
    asked: frozenset[str] = frozenset()
    makers: frozenset[str] = frozenset()

    @property
    def device(self) -> str:
        """The name of the device, empty where none is told."""
        return self.versions.get("gpu", "")


class Way(Struct, frozen=True, kw_only=True):
    """A set of versions, and how it is come by.

    `versions` is the whole set that is to be judged, `changed` what of it is another than was there (empty for what was
    not), `needs` what the machine must have of which nothing is told, `installed` what commands have to name beside the
    `engine`. `ranges` are the requirements of the release that leave a choice, `bounds` those that the known faults
    leave of it. `subject` is what was wished for, `version` that of it. `fresh` is an environment of its own; `python`,
    `driver` and `image` are to be changed to.
    """

    versions: dict[str, str]
    changed: dict[str, str] = field(default_factory=dict)
    needs: dict[str, str] = field(default_factory=dict)
    installed: list[str] = field(default_factory=list)
    ranges: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, str] = field(default_factory=dict)
    source: str
    engine: str = ""
    subject: str = ""
    version: str = ""
    level: Level = "allowed-by-metadata"
    release: Release | None = None
    known: KnownSet | None = None
    build: str = ""
    python: str = ""
    driver: str = ""
    image: str = ""
    fresh: bool = False
    cost: int = 0

    @property
    def asks_driver(self) -> str:
        """The driver that it takes: to be changed to, or needed."""
        return self.driver or self.needs.get("driver", "")


def wishes(words: Iterable[str]) -> list[Wanted]:
    """The wishes in words (`NAME`, `NAME>=1,<2`, `model=NAME`); ValueError, with the word, for what is none."""
    found: dict[str, str] = {}
    model = ""
    for word in words:
        split = WISH.fullmatch(word.strip())
        if word.startswith("model=") and word != "model=":
            model = word.removeprefix("model=")
        elif split is None:
            raise ValueError(word)
        else:
            allowed = re.sub(r"\+[\w.]+", "", split[2] or "")
            SpecifierSet(allowed)
            name = canonical(split[1])
            found[name] = ",".join(filter(None, (found.get(name, ""), allowed)))
    return [Wanted(name, allowed, model) for name, allowed in found.items()] or [Wanted(model=model)]
