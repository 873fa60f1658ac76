"""What a launch asks of a device's memory: its levers as told, else as the engine's release has them by default."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from diag.estimate.memory import Launch
from diag.estimate.model import Model
from diag.estimate.pool import Shares, Widths
from diag.facts.bag import Facts
from diag.facts.engine import LaunchArguments
from diag.facts.engine_memory import EngineDefault, EngineLever, Lever, of_releases
from diag.text import matches

UNITS = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30, "": 1}
NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s?([kKmMgG]?)")
OFF = ("false", "0", "no")
WIDE, HALF, EIGHT = 4, 2, 1
EIGHTS = ("fp8", "int8", "e4m3", "e5m2")
UNTOLD = 4096
"""Tokens of the longest request where neither launch nor model tells."""
WORDS = "ngram"
WIDTHS = {"float32": WIDE, "float": WIDE, "fp32": WIDE}


def amount(text: str) -> float | None:
    """A number as engines read it: `128k` are 128,000, `128K` are 131,072; None where it is none."""
    found = NUMBER.fullmatch(text.strip())
    return float(found[1]) * UNITS[found[2]] if found else None


@dataclass(frozen=True)
class Levers:
    """The levers that a launch tells: values by name; one that is switched off has no value that is on."""

    told: Mapping[Lever, str]
    flags: Mapping[Lever, str]

    @classmethod
    def of(cls, facts: Facts, one: LaunchArguments) -> Levers:
        """Those of a launch."""
        told: dict[Lever, str] = {}
        flags: dict[Lever, str] = {}
        given = dict(one.flags)
        for row in facts.all(EngineLever):
            if row.engine == one.engine:
                told.update((row.lever, given[name]) for name in row.flags if name in given)
                told.update((row.lever, "false") for name in row.without if name in given)
                flags.setdefault(row.lever, (row.flags or row.without)[0])
        return cls(told, flags)

    def number(self, lever: Lever) -> float | None:
        """Its number."""
        return amount(self.told[lever]) if lever in self.told else None

    def whole(self, lever: Lever) -> int | None:
        """Its number, where it is a whole one above zero."""
        value = self.number(lever)
        return int(value) if value and value >= 1 else None

    def on(self, lever: Lever, default: bool = False) -> bool:
        """Whether it is switched on."""
        return self.told[lever].lower() not in OFF if lever in self.told else default


@dataclass(frozen=True)
class Surroundings:
    """What defaults depend on: the engine's release, plug-ins' vendors, and the device's GiB and name."""

    version: str
    vendors: Collection[str]
    gib: float
    device: str


def defaults(facts: Facts, one: LaunchArguments, around: Surroundings, ranks: int) -> dict[Lever, float]:
    """The value of each lever that has one where it is not told."""
    found: dict[Lever, float] = {}
    for row in of_releases(facts.all(EngineDefault), one.engine, around.version, around.vendors):
        sized = row.from_gib <= around.gib and (row.below_gib is None or around.gib < row.below_gib)
        meant = one.subcommand.startswith(row.context) and ranks >= row.ranks
        if sized and meant and not any(matches(around.device, name) for name in row.unless):
            found.setdefault(row.lever, row.value)
    return found


def launch_of(facts: Facts, one: LaunchArguments, model: Model, around: Surroundings, *, state: str) -> Launch:
    """The launch as far as memory is concerned; `state` says whose type a recurrent state has: `config` or `model`."""
    levers = Levers.of(facts, one)
    ranks = levers.whole("ranks") or 1
    usual = defaults(facts, one, around, ranks)
    replicas = levers.whole("replicas") or 1
    apart = dict(one.flags).get("enable-dp-attention", "false").lower() not in OFF
    engines = levers.whole("engines") or (1 if apart else replicas)
    width = WIDTHS.get(levers.told.get("dtype", "auto"), WIDTHS.get(model.dtype, HALF))
    hybrid = bool(model.count("linear"))
    captured = levers.whole("captured") or usual.get("captured")
    fraction = levers.number("fraction")
    return Launch(
        tokens=levers.whole("tokens") or int(usual.get("tokens", UNTOLD)),
        requests=levers.whole("requests") or int(usual.get("requests", 0)),
        length=levers.whole("length") or model.context or UNTOLD,
        fraction=usual.get("fraction") if fraction is None else fraction,
        shares=Shares(
            ranks=ranks,
            stages=levers.whole("stages") or 1,
            replicas=replicas if apart else 1,
            more=drafts(model, levers.told.get("drafts", "")),
            experts=ranks * engines if levers.told.get("experts") == "true" else levers.whole("experts") or 1,
        ),
        width=width,
        kept=Widths(
            cache=EIGHT if any(word in levers.told.get("cache", "") for word in EIGHTS) else width,
            convolved=width,
            state=state_width(model, levers, state, width),
        ),
        eager=levers.on("eager"),
        cached_prefixes=levers.on("prefixes", default=bool(usual.get("prefixes")) or not hybrid),
        captured=int(captured) if captured else None,
        slots=levers.whole("slots"),
        engines=engines,
        pool_bytes=levers.number("bytes"),
        drafted=bool(levers.told.get("drafts")) and not model.drafts,
    )


def drafts(model: Model, asked: str) -> int:
    """Layers that draft and keep keys and values: the model's own where it has any, else one; none where words do."""
    return 0 if not asked or WORDS in asked.lower() else model.drafts or 1


def state_width(model: Model, levers: Levers, state: str, width: int) -> int:
    """Bytes of a number of a recurrent state."""
    if (asked := levers.told.get("state", "auto")) != "auto":
        return WIDTHS.get(asked, HALF)
    if model.state is None or model.state.kind == "kda":
        return WIDE
    return WIDTHS.get(model.state.dtype, width) if state == "config" else width


def said(levers: Levers, moved: Mapping[Lever, float]) -> Iterator[tuple[str, str]]:
    """The flags with which an engine is told these values."""
    for lever, value in moved.items():
        flag = levers.flags.get(lever)
        if flag and lever in ("cache", "eager"):
            yield flag, {"cache": "fp8", "eager": ""}[lever]
        elif flag:
            yield flag, f"{value:g}" if lever == "fraction" else str(int(value))
