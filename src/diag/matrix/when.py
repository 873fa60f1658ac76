"""When a row of the matrix applies: conditions on versions, devices and the launch, all of which must be met.

Each condition is met, not met, or undecided because what it asks was not told; a row with an undecided condition is
never met.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct, field
from packaging.specifiers import SpecifierSet

from diag.facts import (
    Accelerator,
    Driver,
    Fact,
    Facts,
    LaunchArguments,
    Vendor,
)
from diag.facts.models import architecture_of, named
from diag.facts.parts import Part, absent, brought, parts_named
from diag.finding import Evidence
from diag.text import matches
from diag.versions import public, within

CAPABILITY = re.compile(r"sm_([0-9]{1,3})([0-9])[a-z]?")
UNSET = "unset"
"""The value that a variable has in a condition which asks that nothing tells of it."""
RELEASED = re.compile(r"[0-9]+(?:\.[0-9]+)*(?:\.?(?:post|rc)[0-9]+)?(?:\+cu[0-9]{3})?")
"""A version as the package index has it, for any build of the maker's own."""

ABSENT = "absent"
"""The value that a flag or a variable has in a condition which asks that it is not set."""


class Answer(NamedTuple):
    """Whether a condition is met (None where that is not told), what met it, or what is not known."""

    met: bool | None
    shown: tuple[tuple[str, Fact], ...] = ()
    unknown: str = ""


class When(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The conditions of a row: see `docs/guide.md`."""

    versions: dict[str, str | list[str]] = field(default_factory=dict)
    capability: str = ""
    architecture: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    flags: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    differs: tuple[str, ...] = ()
    compat: dict[str, str] = field(default_factory=dict)
    released: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, stated in self.versions.items():
            if not name or not _several(stated) or not all(_several(stated)):
                raise ValueError(f"{name}: an empty range")
            for one in _several(stated):
                if within("1", one) is None:
                    SpecifierSet(one)
        if self.capability and within("1", self.capability) is None:
            raise ValueError(f"capability: {self.capability!r} is no range, as '>=8.0,<9' is")
        if self.differs and len(self.differs) != 2:
            raise ValueError("`differs` names two distributions")
        if not any((self.versions, self.capability, self.architecture, self.gpu, self.differs, self.flags)):
            raise ValueError("a row without a condition on versions, devices or flags")

    def answers(self, facts: Facts, about: str) -> Iterator[Answer]:
        """The answer to each condition, in the order in which they are best shown."""
        for name, stated in self.versions.items():
            yield _version(facts, name, _several(stated), about)
        if self.differs:
            yield _differing(facts, *self.differs)
        if self.capability or self.architecture or self.gpu:
            yield self._devices(facts, about)
        if self.model:
            yield _model(facts, self.model)
        for name, version in self.compat.items():
            yield _compat(facts, name, version)
        for name in self.released:
            yield _released(facts, name)
        for name, pattern in self.flags.items():
            yield _flag(facts, name, pattern)
        for name, pattern in self.variables.items():
            yield _variable(facts, name, pattern)

    def ranges(self) -> dict[str, tuple[str, ...]]:
        """The ranges of versions that the row is about, by the name of the part; any version of two that differ."""
        return {**dict.fromkeys(self.differs, ()), **{name: _several(one) for name, one in self.versions.items()}}

    def _devices(self, facts: Facts, about: str) -> Answer:
        """One device must meet all that is asked of devices."""
        listed = facts.devices()
        if not listed:
            return Answer(None, unknown="the devices are not told")
        answers = [(one, self._device(facts, one, about)) for one in listed]
        for device, met in answers:
            if met:
                return Answer(True, ((device.name or device.architecture, device),))
        unsure = next((one for one, met in answers if met is None), None)
        return Answer(None, unknown=f"what {unsure.name or 'the device'} is is not known") if unsure else Answer(False)

    def _device(self, facts: Facts, device: Accelerator, about: str) -> bool | None:
        if about and device.vendor and any(one.vendor == about for one in facts.all(Vendor)) and device.vendor != about:
            return False
        answers = []
        if self.gpu:
            answers.append(named(facts, device, self.gpu))
        if self.capability or self.architecture:
            known = architecture_of(facts, device)
            if self.architecture:
                answers.append(known in self.architecture if known else None)
            if self.capability:
                shown = CAPABILITY.fullmatch(known)
                answers.append(within(f"{shown[1]}.{shown[2]}", self.capability) if shown else False if known else None)
        return False if False in answers else None if None in answers else True


def _several(stated: str | list[str]) -> tuple[str, ...]:
    return (stated,) if isinstance(stated, str) else tuple(stated)


def _version(facts: Facts, name: str, allowed: tuple[str, ...], about: str) -> Answer:
    told = parts_named(facts, name, about if any(one.vendor == about for one in facts.all(Vendor)) else "")
    told = told or brought(facts, name)
    if not told:
        return Answer(False) if absent(facts, name) else Answer(None, unknown=f"{name} is not told")
    answers = [(part, part.lies_in(allowed)) for part in told]
    for part, met in answers:
        if met:
            return Answer(True, ((_said(part), part.fact),))
    unsure = next((part for part, met in answers if met is None), None)
    wanted = " or ".join(allowed)
    return Answer(None, unknown=f"whether {_said(unsure)} is {wanted} is not told") if unsure else Answer(False)


def _said(part: Part) -> str:
    return f"{part.name} {part.version}" + (f" ({part.of})" if part.of else "")


def _differing(facts: Facts, one: str, other: str) -> Answer:
    first, second = facts.package(one), facts.package(other)
    if first is None or second is None:
        gone = absent(facts, one) or absent(facts, other)
        return Answer(False) if gone else Answer(None, unknown=f"{one} and {other} are not both told")
    if public(first.version) == public(second.version):
        return Answer(False)
    return Answer(True, tuple((f"{part.name} {part.version}", part) for part in (first, second)))


def _model(facts: Facts, patterns: tuple[str, ...]) -> Answer:
    told = parts_named(facts, "model")
    for part in told:
        if any(matches(part.version, one) for one in patterns):
            return Answer(True, ((part.version, part.fact),))
    return Answer(False) if told else Answer(None, unknown="the model is not told")


def _compat(facts: Facts, name: str, version: str) -> Answer:
    """Whether the driver's own library is loaded: none of a part that stands in its place with this or a newer one."""
    offers = [part.version for part in parts_named(facts, name)]
    offers += [one.offers for one in facts.all(Driver) if one.offers]
    if any(within(one, f">={version}") for one in offers):
        return Answer(False)
    images = not offers and any(one.image for one in facts.all(LaunchArguments))
    return Answer(None, unknown=f"whether the image brings {name} is not told") if images else Answer(True)


def _released(facts: Facts, name: str) -> Answer:
    """Whether the version is one that the package index has, no build of another maker or of one's own."""
    told = parts_named(facts, name)
    return Answer(
        any(RELEASED.fullmatch(part.version) for part in told) if told else None, unknown=f"{name} is not told"
    )


def _flag(facts: Facts, name: str, pattern: str) -> Answer:
    launches = [one for one in facts.all(LaunchArguments) if one.subcommand == "serve"]
    for launch in launches:
        value = dict(launch.flags).get(name)
        if pattern == ABSENT and value is None:
            return Answer(True, ((f"no --{name}", launch),))
        if value is not None and matches(value, pattern):
            return Answer(True, ((f"--{name} {value}", launch),))
    return Answer(False) if launches else Answer(None, unknown="the launch is not told")


def _variable(facts: Facts, name: str, pattern: str) -> Answer:
    setting = facts.environment().get(name)
    whole = facts.listing("environment")
    if pattern == UNSET:
        return Answer(setting is None)
    if pattern == ABSENT:
        if setting:
            return Answer(False)
        shown = ((f"no {name}", whole),) if whole else ()
        return Answer(True, shown) if whole else Answer(None, unknown=f"the variable {name} is not told")
    if setting is None:
        return Answer(False) if whole else Answer(None, unknown=f"the variable {name} is not told")
    met = matches(setting.value, pattern)
    return Answer(met, ((f"{name}={setting.value}", setting),) if met else ())


def evidence(answers: Iterable[Answer]) -> tuple[Evidence, ...]:
    """What met the conditions, each fact once."""
    shown = {fact.origin: fact for answer in answers for _, fact in answer.shown}
    return tuple(map(Evidence.of, shown.values()))
