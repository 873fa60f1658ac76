"""The nearest sets that work: every way in the order of its cost, each put to the judge of sets that are asked about.

A way whose versions fail together, whatever driver, Python and C library there are, is given up with the rule that
refused it: what remains of these, where no way is left, is the proof that none is known.
"""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from diag import engine
from diag.check import Check
from diag.facts import MatrixVerdict, Reference, Suggestion
from diag.matrix.verdict import verdicts
from diag.plugins import Loaded
from diag.sources import Asked
from diag.versions import numbers, parse
from diag.ways import COST, Tables, Versions, Wanted, Way, ways

GOOD = ("verified", "reported", "allowed-by-metadata")
BAD = ("known-bad", "metadata-conflict")
BUDGET = 400
"""Sets that are judged at most for one wish."""
SHOWN = 4
"""Ways that are shown at most."""
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
    """All rows of reference."""
    later: Iterable[Reference] = chain.from_iterable(one.rows() for one in loaded.later)
    return Tables((*loaded.references, *later))


def nearest(
    given: Versions, wanted: Wanted, tables: Tables, makers: frozenset[str], decide: Judge
) -> tuple[list[Suggestion], dict[str, list[str]]]:
    """The nearest ways, each costlier one for what it gains, and by rule what it refused where no way was found."""
    found: list[tuple[Way, Suggestion]] = []
    refused: dict[str, list[str]] = {}
    judged = 0
    newest_first = sorted(ways(given, wanted, tables, makers), key=lambda way: numbers(way.version), reverse=True)
    for way in sorted(newest_first, key=_distance):
        if len(found) == SHOWN or judged >= BUDGET or any(_no_worse(one, way) for one in found):
            continue
        judged += 1
        loose = {name: version for name, version in way.versions.items() if name not in MACHINE}
        for versions in (loose, way.versions):
            verdict = decide(versions)
            if verdict.verdict not in GOOD or any(
                one.verdict in BAD and one.severity != "info" for one in verdict.reasons
            ):
                _note(refused, verdict, way)
                break
        else:
            found.append((way, _suggested(way, verdict)))
    return [one for _, one in found], {} if found else refused


def _distance(way: Way) -> tuple[bool, bool, bool, int, int]:
    """The order of ways: that leave the machine as it is, of these what ran, no pre-release, the cheapest, the best."""
    version = parse(way.version)
    early = version is not None and version.is_prerelease
    return way.cost >= COST["container"], way.kind != "known", early, way.cost, GOOD.index(way.level)


def _no_worse(found: tuple[Way, Suggestion], way: Way) -> bool:
    """Whether a way that was found, and costs no more, gives what this one would: as new a version, as well known."""
    one, suggestion = found
    newer = parse(way.version), parse(one.version)
    gains = newer[0] is not None and newer[1] is not None and newer[0] > newer[1]
    better = way.kind == "known" and suggestion.level == GOOD[-1]
    return not better and (way.kind == one.kind or not gains)


def _suggested(way: Way, verdict: MatrixVerdict) -> Suggestion:
    first = next((one for one in verdict.deciding if way.source in one.says), verdict.deciding[0])
    return Suggestion(
        changes=way.changes,
        commands=way.commands,
        level=verdict.verdict,
        says=first.says,
        source=first.source,
        checked=first.checked,
    )


def _note(refused: dict[str, list[str]], verdict: MatrixVerdict, way: Way) -> None:
    against = [one.rule for one in verdict.reasons if one.verdict in BAD and one.severity != "info"]
    rule = against[0] if against else ""
    names = refused.setdefault(rule, [])
    if way.source not in names:
        names.append(way.source)
