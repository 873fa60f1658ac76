"""The nearest sets that work: every way in the order of its cost, each put to the judge of sets that are asked about.

A way whose versions fail together, whatever driver, Python and C library there are, is given up with the rule that
refused it: what remains of these, where no way is left, is the proof that none is known.
"""

from __future__ import annotations

import datetime as dt
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace
from packaging.version import Version

from diag import engine
from diag.check import Check
from diag.facts import MatrixVerdict, Reason, Reference, Suggestion
from diag.matrix.verdict import verdicts
from diag.plugins import Loaded
from diag.sources import Asked
from diag.versions import numbers, parse, satisfies
from diag.ways.commands import commands, told
from diag.ways.enumerated import COST, ways
from diag.ways.tables import Tables, Versions
from diag.ways.wished import Given, Wanted, Way

GOOD = ("verified", "reported", "allowed-by-metadata")
BAD = ("known-bad", "metadata-conflict")
BUDGET = 200
"""Ways that are judged at most."""
SHOWN = 4
"""Ways that are shown at most."""
MENDED = 4
"""How often the versions of a way are changed for faults that are known of it."""
OLDEST = re.compile(r">=\s*([\w.]+)")
ZERO = Version("0")
MACHINE = ("driver", "python", "glibc")
"""What a way may change of the machine; without these only the versions are judged."""
Judge = Callable[[Versions], MatrixVerdict]


def judge(loaded: Loaded, checks: Sequence[Check], *, language: str, today: dt.date) -> Judge:
    """The judge of sets of versions, by the checks given."""
    known: dict[str, MatrixVerdict] = {}
    parts = Tables(loaded.references).parts

    def verdict(versions: Versions) -> MatrixVerdict:
        words = [f"{name}={version}" if name in parts else f"{name}=={version}" for name, version in versions.items()]
        text = f"diag matrix check {shlex.join(words)}"
        if text not in known:
            found = engine.examine(Asked({"matrix": text}).captures(()), loaded, checks)
            by_id = {one.id: one for one in checks}
            known[text] = next(verdicts(found.facts, found.results, by_id, language=language, today=today))
        return known[text]

    return verdict


def rows(loaded: Loaded) -> Tables:
    """All rows of reference, and what the known faults are about."""
    later: Iterable[Reference] = chain.from_iterable(one.rows() for one in loaded.later)
    faults = {one.id: one.ranges for one in loaded.checks.values() if one.verdict and one.ranges}
    return Tables((*loaded.references, *later), faults)


class Found(NamedTuple):
    """The nearest ways, what each rule refused where there is none, and whether not all that could be was judged."""

    ways: list[Suggestion]
    refused: dict[str, list[str]]
    cut: bool


def nearest(given: Given, wanted: Sequence[Wanted], tables: Tables, decide: Judge, language: str) -> Found:
    """The nearest ways: each has something that none before it has, and all grant every wish."""
    found: list[Way] = []
    shown: list[Suggestion] = []
    refused: dict[str, list[str]] = {}
    judged = 0
    for way in sorted(ways(given, wanted, tables), key=_distance(tables)):
        if len(found) == SHOWN or any(_no_worse(one, way, tables) for one in found):
            continue
        if judged == BUDGET:
            break
        judged += 1
        mended, verdict = _admitted(way, tables, decide)
        if _refusing(verdict):
            _note(refused, verdict, way)
        else:
            shown.append(_suggested(mended, verdict, tables, language))
            found.append(replace(mended, level=shown[-1].level))
    return Found(shown, {} if shown else refused, judged == BUDGET and len(found) < SHOWN)


def _distance(tables: Tables) -> Callable[[Way], tuple[object, ...]]:
    """The order of ways: that leave the machine as it is, of these what ran, no pre-release, the cheapest, the best."""

    def key(way: Way) -> tuple[object, ...]:
        own = way.release.version if way.release else ""
        return (
            way.cost >= COST["container"],
            way.known is None,
            _early(way),
            way.cost,
            GOOD.index(way.level),
            not _complete(way, tables),
            tuple(-one for one in numbers(way.version)),
            tuple(-one for one in numbers(own)),
        )

    return key


def _no_worse(one: Way, way: Way, tables: Tables) -> bool:
    """Whether a way that was found is in no respect worse than this one would be: then this one gains nothing."""
    have, new = parse(one.version), parse(way.version)
    newer = have is not None and new is not None and new > have and (_early(one) or not _early(way))
    older_driver = () < _driver(way) < _driver(one)
    return (
        one.subject == way.subject
        and one.cost <= way.cost
        and not (newer or older_driver or (_early(one) and not _early(way)))
        and GOOD.index(one.level) <= GOOD.index(way.level)
        and (_complete(one, tables) or not _complete(way, tables))
    )


def _complete(way: Way, tables: Tables) -> bool:
    """Whether the commands of a way are known, or none are needed."""
    return bool(commands(way, tables)) or not (way.image or any(name not in tables.parts for name in way.changed))


def _early(way: Way) -> bool:
    """Whether a version before a release is to be installed: of what is wished for, or of its plug-in."""
    versions = {way.subject: way.version, way.engine: way.release.version if way.release else way.version}
    moved = [one for name, one in versions.items() if name in way.changed]
    return any(parsed.is_prerelease for one in moved if (parsed := parse(one)))


def _driver(way: Way) -> tuple[int, ...]:
    return numbers(way.needs.get("driver", ""))


def _admitted(way: Way, tables: Tables, decide: Judge) -> tuple[Way, MatrixVerdict]:
    """The way as the judge lets it pass, or as it was refused at last: with versions that no known fault is about."""
    for _ in range(MENDED):
        verdict = decide(_loose(way))
        other = _mended(way, verdict, tables) if _refusing(verdict) else None
        if other is None:
            break
        way = other
    if not _refusing(verdict):
        verdict = decide(way.versions)
    return (way if _refusing(verdict) else _bounded(way, tables, decide)), verdict


def _loose(way: Way) -> dict[str, str]:
    return {name: version for name, version in way.versions.items() if name not in MACHINE}


def _refusing(verdict: MatrixVerdict) -> bool:
    return verdict.verdict not in GOOD or bool(_against(verdict))


def _against(verdict: MatrixVerdict) -> list[Reason]:
    return [one for one in verdict.reasons if one.verdict in BAD and one.severity != "info"]


def _mended(way: Way, verdict: MatrixVerdict, tables: Tables) -> Way | None:
    """The way with another version of what stays and a known fault names, where the release leaves a choice of it."""
    for reason in _against(verdict):
        for name, bad in tables.faults.get(reason.rule, {}).items():
            have = way.versions.get(name, "")
            other = tables.outside(name, have, way.ranges[name], bad) if have and name in way.ranges and bad else ""
            if other:
                changed = way.changed if name in way.changed else {**way.changed, name: have}
                moved = replace(way, versions={**way.versions, name: other}, changed=changed)
                return replace(moved, cost=way.cost + (0 if way.fresh or name in way.changed else COST["package"]))
    return None


def _bounded(way: Way, tables: Tables, decide: Judge) -> Way:
    """The way with bounds for what it leaves open and the newest of which is known to fail beside it."""
    there = _loose(way)
    for name, pin in way.ranges.items() if not way.image else ():
        ties = [one for one in tables.faults.values() if name in one and there.keys() >= one.keys() - {name}]
        ends = {end for one in ties for range_ in one[name] for end in OLDEST.findall(range_)}
        probes = sorted({*tables.versions.get(name, ()), *ends}, key=lambda one: parse(one) or ZERO, reverse=True)
        bound = ""
        for probe in probes if ties and name not in there else ():
            if not satisfies(probe, f"{pin}{bound and ','}{bound}"):
                continue
            rules = {one.rule for one in _against(decide({**there, name: probe}))}
            ranges = [range_ for rule in rules for range_ in tables.faults.get(rule, {}).get(name, ())]
            lowest = [end for one in ranges if satisfies(probe, one) for end in OLDEST.findall(one)]
            if not lowest:
                break
            bound = f"<{min(lowest, key=lambda one: parse(one) or ZERO)}"
        if bound:
            way = replace(way, bounds={**way.bounds, name: bound})
    return way


def _suggested(way: Way, verdict: MatrixVerdict, tables: Tables, language: str) -> Suggestion:
    own = [one for one in verdict.reasons if way.known and one.rule.endswith(f"/{way.source}")]
    first = next(iter((*own, *(one for one in verdict.deciding if way.source in one.says), *verdict.deciding)))
    return Suggestion(
        changes=told(way, language),
        commands=tuple(map(str, commands(way, tables))),
        level=own[0].verdict if own else verdict.verdict,
        says=first.says,
        source=first.source,
        checked=first.checked,
    )


def _note(refused: dict[str, list[str]], verdict: MatrixVerdict, way: Way) -> None:
    against = _against(verdict)
    names = refused.setdefault(against[0].rule if against else "", [])
    if way.source not in names:
        names.append(way.source)
