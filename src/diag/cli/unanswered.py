"""What kept a question from being answered: unknown is not healthy, so each of these makes a report incomplete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from diag import sources
from diag.bundle import Bundle
from diag.check import Check
from diag.engine import Examination
from diag.facts import Accelerator, Expected, Facts, Python, Reference
from diag.finding import Broken
from diag.learn import key_of

STOPPED = "stopped"
BUS = ("pci", "node")
"""What tells of a device although no driver answers for it."""
Words = Mapping[str, str]


def unanswered(
    opened: Sequence[sources.Source], examination: Examination, checks: Mapping[str, Check], words: Words
) -> list[str]:
    """Why the question could not be answered, empty where it was."""
    reasons = list(_unread(opened, examination, words))
    if all(isinstance(fact, Reference) for fact in examination.facts):
        return [*reasons, words["nothing known"]]
    reasons += _unseen(examination.facts, words)
    for result in examination.results:
        if result.status == "skip" and Expected in checks[result.check].needs and examination.facts.first(Expected):
            reasons.append(words["expectation"].format(reason=result.reason))
    if not any(result.status in ("pass", "fail") for result in examination.results):
        reasons.append(words["nothing judged"])
    return reasons


def lost(opened: Sequence[sources.Source]) -> Iterator[Broken]:
    """What could not be read of the bundles."""
    for one in opened:
        if isinstance(one, Bundle):
            yield from one.broken


def _unread(opened: Sequence[sources.Source], examination: Examination, words: Words) -> Iterator[str]:
    """What the sources did not hand over."""
    stopped = [key_of(one) for one in examination.captures if one.error.startswith(STOPPED)]
    stopped += [one.name for one in opened if isinstance(one, sources.Paste) and one.stopped]
    if stopped:
        yield words["time bound"].format(stopped=", ".join(stopped))
    if damaged := [one.where for one in lost(opened)]:
        yield words["damaged"].format(lost=", ".join(damaged[:5]))
    if opened[0].kind == "live" and examination.facts.first(Python) is None:
        yield words["no interpreter"]


def _unseen(facts: Facts, words: Words) -> Iterator[str]:
    """The machines of which no accelerator was told, or none by anything that its driver answered."""
    if without := _scopes(facts, lambda seen: not seen):
        yield words["no accelerator"].format(scopes=_named(without))
    if silent := _scopes(facts, lambda seen: bool(seen) and all(one.seen_by in BUS for one in seen)):
        yield words["bus alone"].format(scopes=_named(silent))


def _scopes(facts: Facts, wanted: Callable[[tuple[Accelerator, ...]], bool]) -> list[str]:
    return [scope for scope in facts.scopes() if wanted(facts.within(scope).all(Accelerator))]


def _named(scopes: list[str]) -> str:
    return f" ({', '.join(scopes)})" if scopes != [""] else ""
