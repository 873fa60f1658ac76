"""What kept a question from being answered: unknown is not healthy, so each of these makes a report incomplete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from diag import sources
from diag.archive import Logs
from diag.bundle import Bundle
from diag.check import Check
from diag.engine import Examination
from diag.facts import (
    Accelerator,
    Collective,
    CollectiveEarlier,
    CollectiveTrouble,
    CollectiveVerdict,
    CommandEnd,
    DeviceMemory,
    DeviceTrial,
    EngineState,
    Expected,
    Fact,
    Facts,
    HostLink,
    MatrixProduct,
    MemoryPlan,
    MemoryRead,
    Operator,
    OperatorScan,
    ProcessHolds,
    Python,
    RankTiming,
    Reading,
    Reference,
    Text,
    TorchBuild,
    Unavailable,
)
from diag.finding import Broken, Result
from diag.learn import SPOILT, key_of
from diag.text import cut
from diag.unexplained import Unexplained

STOPPED = "stopped"
SAID = 80
"""Characters of a line in the reason why a question was not answered."""
ERROR = "error"
"""The kind of a text that says that something failed."""
NO_TORCH = "No module named 'torch'"
BUS = ("pci", "node")
"""What tells of a device although no driver answers for it."""
MEASURED: Mapping[str, tuple[tuple[type[Fact], ...], str]] = {
    "collectives/": ((Collective,), "not measured"),
    "device/": ((DeviceMemory, HostLink, MatrixProduct), "not tested"),
    "operators/": ((OperatorScan, ProcessHolds), "not looked at"),
    "memory/": ((MemoryPlan, MemoryRead), "not planned"),
}
"""Of what a command measures: the facts that tell it, and the words where none does."""
Words = Mapping[str, str]


def unanswered(
    opened: Sequence[sources.Source], examination: Examination, checks: Mapping[str, Check], words: Words
) -> list[str]:
    """Why the question could not be answered, empty where it was."""
    reasons = list(_unread(opened, examination, words))
    if all(isinstance(fact, Reference) for fact in examination.facts):
        return [*reasons, words["nothing known"]]
    reasons += [*_unseen(examination.facts, words), *_unexplained(examination, words)]
    for result in examination.results:
        if result.status == "skip" and Expected in checks[result.check].needs and examination.facts.first(Expected):
            reasons.append(words["expectation"].format(reason=result.reason))
    if not any(_judged(result, checks) for result in examination.results):
        reasons.append(words["nothing judged"])
    return reasons


def _judged(result: Result, checks: Mapping[str, Check]) -> bool:
    """Whether a result tells something of the machine, not only that a text does not show a symptom."""
    return result.status == "fail" or (result.status == "pass" and checks[result.check].kind != "entry")


def uncaused(
    opened: Sequence[sources.Source], examination: Examination, rest: Unexplained | None, words: Words
) -> list[str]:
    """Why the cause of what a text shows was not named, empty where it was or nothing in it looks like an error."""
    reasons = list(_unread(opened, examination, words))
    known = any(not isinstance(fact, Reference) for fact in examination.facts)
    if rest and rest.errors:
        first = rest.errors[0]
        followed = any(result.findings for result in examination.results if result.severity == "error")
        said = words["no cause behind" if followed else "no cause"]
        reasons.append(said.format(place=f"{first.capture}:{first.line}", quote=cut(first.quote, SAID)))
    elif rest and (ends := [one for one in examination.facts.all(CommandEnd) if one.exit_code != 0]):
        end = ends[-1]
        reasons.append(words["failed silently"].format(program=end.program, end=end.signal or end.exit_code))
    elif rest and not known:
        reasons.append(words["nothing known"])
    return reasons


def unmeasured(examination: Examination, checks: Mapping[str, Check], subject: str, words: Words) -> list[str]:
    """Why nothing was measured of what a command is about, empty where something was or a finding says why not."""
    kinds, said = MEASURED[subject]
    ended = [key_of(one) for one in examination.captures if one.error.startswith(STOPPED)]
    reasons = [words["time bound"].format(stopped=", ".join(ended))] if ended else []
    facts = examination.facts
    told = any(
        one.findings and one.severity == "error" and one.check.startswith(subject) for one in examination.results
    )
    if not (any(facts.first(kind) for kind in kinds) or told or reasons):
        names = {kind.__name__ for kind in kinds}
        untold = dict.fromkeys(one.reason for one in facts.all(Unavailable) if names & {*one.tells})
        troubles = [one.reason for one in facts.all(CollectiveTrouble)]
        why = "; ".join(troubles or untold) or "?"
        reasons.append(words[said].format(why=f"{why} {words['no torch']}" if NO_TORCH in why else why))
    if scans := facts.all(OperatorScan):
        failed = [one for one in facts.all(Unavailable) if Operator.__name__ in one.tells]
        reasons += [words["detector failed"].format(what=one.what, why=one.reason) for one in failed]
        reasons += [words["steps left"].format(count=one.left) for one in scans if one.left]
    for result in examination.results:
        needs = checks[result.check].needs if result.status == "skip" and result.reason else ()
        compared = CollectiveEarlier in needs and facts.first(CollectiveEarlier) and facts.first(Collective)
        looked = ProcessHolds in needs and facts.first(ProcessHolds)
        reasons += [result.reason] if compared or looked else []
    if facts.first(RankTiming) and not facts.first(CollectiveVerdict) and not facts.first(CollectiveTrouble):
        reasons.append(words["not isolated"])
    return reasons


def lost(opened: Sequence[sources.Source]) -> Iterator[Broken]:
    """What could not be read of what was given."""
    for one in opened:
        if isinstance(one, Bundle | Logs | sources.Paste):
            yield from one.broken


def stopped(opened: Sequence[sources.Source]) -> list[str]:
    """The texts that were not read to their end before the time bound."""
    return [one.name for one in opened if isinstance(one, sources.Paste | Logs) and one.stopped]


def _unread(opened: Sequence[sources.Source], examination: Examination, words: Words) -> Iterator[str]:
    """What the sources did not hand over."""
    ended = [key_of(one) for one in examination.captures if one.error.startswith(STOPPED)]
    if ended := [*ended, *stopped(opened)] or ([one.name for one in opened] if examination.stopped else []):
        yield words["time bound"].format(stopped=", ".join(ended))
    spoilt = [one.what for one in examination.facts.all(Unavailable) if one.reason.startswith(SPOILT)]
    if damaged := [*(one.where for one in lost(opened)), *dict.fromkeys(spoilt)]:
        yield words["damaged"].format(lost=", ".join(damaged[:5]))
    if opened[0].kind == "live" and examination.facts.first(Python) is None:
        yield words["no interpreter"]


def _unseen(facts: Facts, words: Words) -> Iterator[str]:
    """The machines of which no accelerator was told, or none by anything that its driver answered."""
    if without := _scopes(facts, lambda view: view.first(Accelerator) is None):
        yield words["no accelerator"].format(scopes=_named(without))
    if silent := _scopes(facts, lambda view: {one.seen_by in BUS for one in view.all(Accelerator)} == {True}):
        yield words["bus alone"].format(scopes=_named(silent))
    if bare := _scopes(facts, lambda view: _answered(view) and not _works(view)):
        yield words["names alone"].format(scopes=_named(bare))


def _unexplained(examination: Examination, words: Words) -> Iterator[str]:
    """The errors that a text shows although no rule found anything in it."""
    found = any(finding for result in examination.results for finding in result.findings)
    shown = [one.origin for one in examination.facts.all(Text) if ERROR in one.kinds]
    if shown and not found:
        yield words["unexplained"].format(
            place=f"{shown[-1].capture}:{shown[-1].line}", quote=cut(shown[-1].quote, SAID)
        )


def _answered(view: Facts) -> bool:
    """Whether a driver, torch or a tool told of a device."""
    return any(one.seen_by not in BUS for one in view.all(Accelerator))


def _works(view: Facts) -> bool:
    """Whether more than names was told of the devices: their state, or whether torch or an engine can use them."""
    used = any(one.available is not None for one in view.all(TorchBuild)) or any(
        one.ok for one in view.all(DeviceTrial)
    )
    return used or view.first(Reading) is not None or view.first(EngineState) is not None


def _scopes(facts: Facts, wanted: Callable[[Facts], bool]) -> list[str]:
    return [scope for scope in facts.scopes() if wanted(facts.within(scope))]


def _named(scopes: list[str]) -> str:
    return f" ({', '.join(scopes)})" if scopes != [""] else ""
