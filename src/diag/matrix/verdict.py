"""The verdict on the versions of one machine: a fold over what the checks about versions answered, and the known sets.

One judge: what a check found, and what it compared and found in order, are the reasons; the first level that a reason
holds up is the verdict. A fault on one reporter's word never displaces a set that was verified; information decides
nothing; where the pins of an engine are not known, nothing else makes the set allowed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from diag.check import Check
from diag.facts import (
    LEVELS,
    Component,
    ComponentName,
    Engine,
    Facts,
    KnownSet,
    Level,
    MatrixVerdict,
    Origin,
    Package,
    Reason,
    Release,
)
from diag.facts.parts import parts_named
from diag.finding import Result
from diag.matrix.known import ran
from diag.versions import parse, public

STRANGE = "matrix/unknown-device"
"""What stands for a rule where a device that is asked about is not known."""
AGE = dt.timedelta(days=90)
"""How old the newest of the data may be before that is said."""


def verdicts(
    facts: Facts, results: Sequence[Result], checks: Mapping[str, Check], *, language: str, today: dt.date
) -> Iterator[MatrixVerdict]:
    """The verdict on each machine of which versions are told."""
    for scope in facts.scopes():
        view = facts.within(scope)
        if view.first(Component) or view.first(Engine) or view.package("torch"):
            own = [one for one in results if one.scope == scope and checks[one.check].verdict]
            yield _verdict(view, scope, own, checks, language=language, today=today)


def _verdict(
    view: Facts, scope: str, results: Sequence[Result], checks: Mapping[str, Check], *, language: str, today: dt.date
) -> MatrixVerdict:
    reasons = [reason for one in results for reason in _reasons(one, checks[one.check], view, language)]
    reasons += [reason for one in view.all(KnownSet) if (reason := ran(one, view, language))]
    reasons += _strange(view)
    reasons.sort(key=lambda one: (LEVELS.index(one.verdict), one.severity == "info"))
    return MatrixVerdict(
        origin=Origin(capture="matrix", scope=scope),
        verdict=_level(reasons),
        components=_components(view),
        reasons=tuple(reasons),
        notes=tuple(_notes(view, today)),
        undecided=() if reasons else tuple(_open(view, results, checks)),
    )


def _reasons(result: Result, check: Check, view: Facts, language: str) -> Iterator[Reason]:
    level = check.verdict or "unknown"
    for finding in result.findings:
        says = check.say("summary", language, finding.values)
        source = check.sources[0] if check.sources else ""
        yield Reason(
            rule=check.id, verdict=level, severity=check.severity, says=says, source=source, checked=check.checked
        )
    for one in result.fits:
        yield Reason(
            rule=check.id,
            verdict="allowed-by-metadata",
            severity="info",
            says=one.says[language],
            source=one.source,
            checked=one.checked,
        )
    asked = result.status != "not-applicable" and all(view.first(kind) for kind in check.needs)
    if level == "metadata-conflict" and result.reason and asked:
        yield Reason(rule=check.id, verdict="unknown", severity="info", says=result.reason, source="", checked="")


def _open(view: Facts, results: Sequence[Result], checks: Mapping[str, Check]) -> Iterator[str]:
    """Why nothing decides: what the rules asked for of which all facts were told."""
    for one in results:
        check = checks[one.check]
        asked = check.kind == "check" and one.status == "skip" and check.needs
        if asked and all(view.first(kind) for kind in check.needs):
            yield f"{check.id}: {one.reason}"


def _strange(view: Facts) -> Iterator[Reason]:
    """The devices asked about whose model is not known: whatever else fits, of them nothing is."""
    for one in view.devices() if view.first(Component) else ():
        if not one.vendor:
            says = f"no device is known here as {one.name!r}"
            yield Reason(rule=STRANGE, verdict="unknown", severity="info", says=says, source="", checked="")
            return


def _level(reasons: Iterable[Reason]) -> Level:
    found: dict[Level, set[str]] = {}
    for one in reasons:
        found.setdefault(one.verdict, set()).add(one.severity)
    bad = found.get("known-bad", set())
    if "error" in bad or ("warning" in bad and "verified" not in found):
        return "known-bad"
    for level in ("verified", "reported", "metadata-conflict", "unknown", "allowed-by-metadata"):
        if level in found:
            return level
    return "unknown"


def _components(view: Facts) -> dict[str, str]:
    """The parts that were judged: those asked about, else those that the data knows."""
    names = {one.name: None for one in view.all(Component)}
    if not names:
        known = {name for one in view.all(Release) for name in (one.package, *one.pins)}
        names = {one.name: None for one in view.all(Package) if one.name in known}
        names |= {one.name: None for one in view.all(ComponentName)}
    told = {name: [part.version for part in parts_named(view, name)] for name in names}
    told["gpu"] = list(dict.fromkeys(one.name or one.architecture for one in view.devices()))
    return {name: ", ".join(dict.fromkeys(filter(None, versions))) for name, versions in told.items() if any(versions)}


def _notes(view: Facts, today: dt.date) -> Iterator[str]:
    """What limits the answer: newer versions than the data knows, parts that it does not know, its age."""
    releases = view.all(Release)
    newest: dict[str, str] = {}
    for one in releases:
        if _newer(one.version, newest.get(one.package, "0")):
            newest[one.package] = one.version
    for package in view.all(Package):
        last = newest.get(package.name)
        if last and _newer(public(package.version), last):
            yield f"{package.name} {package.version} is newer than the newest that is known here ({last})"
    named = {one.name for one in view.all(ComponentName)}
    for component in view.all(Component):
        if component.name not in named and component.name not in newest and not _asked_for(component.name, view):
            yield f"nothing is known here of {component.name}"
    with suppress(ValueError):
        last_day = dt.date.fromisoformat(max((one.checked for one in releases), default=""))
        if today - last_day > AGE:
            yield f"the newest of the data was checked on {last_day}, {(today - last_day).days} days ago"


def _asked_for(name: str, view: Facts) -> bool:
    rows: Iterable[Mapping[str, str]] = (*(one.pins for one in view.all(Release)), *_sets(view))
    return any(name in row for row in rows)


def _sets(view: Facts) -> Iterator[Mapping[str, str]]:
    for one in view.all(KnownSet):
        yield one.versions
        yield one.beside


def _newer(version: str, other: str) -> bool:
    one, two = parse(version), parse(other)
    return one is not None and two is not None and one > two
