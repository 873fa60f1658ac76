"""The way from captures to results: learn, deduce, judge. Pure: it runs nothing and prints nothing.

Unknown is not healthy: a check whose facts are missing is skipped with the reason, one that concerns another machine is
not applicable, and an exception inside a check is a crash. None of these is a pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from diag.capture import Capture
from diag.check import Answer, Check
from diag.errors import PASSING
from diag.facts import Fact, Facts, Platform, Unavailable
from diag.finding import Broken, Finding, Fits, Result, Undecided
from diag.learn import learn
from diag.plugins import Loaded
from diag.probe import Deduction


@dataclass(frozen=True)
class Examination:
    """All that one run found out; `seconds` by phase, `stopped` where the time was over before all was learnt."""

    captures: tuple[Capture, ...]
    facts: Facts
    results: tuple[Result, ...]
    broken: tuple[Broken, ...]
    seconds: dict[str, float]
    stopped: bool = False


def examine(captures: Iterable[Capture], loaded: Loaded, checks: Iterable[Check] | None = None) -> Examination:
    """Learn from captures, deduce, and judge by these checks (all where None)."""
    clock = [time.perf_counter()]
    taken = tuple(captures)
    clock.append(time.perf_counter())
    learnt = learn(taken, loaded)
    clock.append(time.perf_counter())
    facts, stuck = deduce(loaded.deductions, learnt.facts)
    results = judge(loaded.checks.values() if checks is None else checks, facts, loaded)
    clock.append(time.perf_counter())
    spent = (end - start for start, end in pairwise(clock))
    phases = dict(zip(("capture", "learn", "judge"), spent, strict=True))
    broken = (*loaded.broken, *learnt.broken, *stuck)
    return Examination(taken, facts, results, broken, phases, learnt.stopped)


def deduce(deductions: Iterable[Deduction], facts: Facts) -> tuple[Facts, list[Broken]]:
    """The facts with all that follows from them, scope by scope, each deduction after those it builds on."""
    broken: list[Broken] = []
    for one in ordered(deductions):
        told: list[Fact] = []
        for scope in facts.scopes():
            view = facts.within(scope)
            if all(view.first(kind) for kind in one.needs):
                try:
                    told += [fact.of(scope) for fact in one.run(view)]
                except PASSING:
                    raise
                except BaseException as error:
                    broken.append(Broken(where=f"deduction {one.name}", error=f"{type(error).__name__}: {error}"))
        facts = facts.adding(told)
    return facts, broken


def ordered(deductions: Iterable[Deduction]) -> list[Deduction]:
    """The deductions so that each comes after those that tell what it reads; those in a circle come last."""
    waiting, result = list(deductions), list[Deduction]()
    while waiting:
        # What it tells itself a deduction may read of others, too.
        untold = {one: {kind for other in waiting if other is not one for kind in other.tells} for one in waiting}
        ready = [one for one in waiting if untold[one].isdisjoint((*one.needs, *one.uses))]
        result += ready or waiting
        waiting = [one for one in waiting if one not in ready] if ready else []
    return result


def judge(checks: Iterable[Check], facts: Facts, loaded: Loaded) -> tuple[Result, ...]:
    """What became of each check: one result for all scopes in which it is the same, and one for each fault shown."""
    alike: dict[object, tuple[Result, list[str]]] = {}
    for scope, result in _judged(tuple(checks), facts, loaded):
        own = result.findings or result.fits
        key = id(result) if own else (result.check, result.status, result.reason)
        if key not in alike:
            alike[key] = result, []
        alike[key][1].append(scope)
    return tuple(replace(result, scopes=tuple(filter(None, scopes))) for result, scopes in alike.values())


def _judged(checks: Sequence[Check], facts: Facts, loaded: Loaded) -> Iterator[tuple[str, Result]]:
    """One result for each check in each scope; where nothing of what it asks for is a scope's own, it is known."""
    known: dict[tuple[str, frozenset[str], str], tuple[set[object], Result]] = {}
    concerns = {one.about for one in checks}
    for scope in facts.scopes():
        view, own = facts.within(scope), facts.own(scope)
        elsewhere = {about: _elsewhere(about, view) for about in concerns}
        untold = _Untold(view, loaded)
        for one in checks:
            key = (one.id, view.kinds_read(), elsewhere[one.about])
            asked, result = known.get(key, (own, None))
            if result is None or not own.isdisjoint(asked):
                result = _timed(one, view, scope, elsewhere[one.about], untold)
                if own.isdisjoint(view.asked):
                    known[key] = view.asked, result
            yield scope, result


def _timed(check: Check, view: Facts, scope: str, elsewhere: str, untold: _Untold) -> Result:
    view.asked = set()
    start = time.perf_counter()
    result = _result(check, view, scope, elsewhere, untold)
    return replace(result, seconds=time.perf_counter() - start)


def _result(check: Check, view: Facts, scope: str, elsewhere: str, untold: _Untold) -> Result:
    passed = Result(check=check.id, severity=check.severity, status="pass")
    try:
        if reason := elsewhere or (check.applies(view) if check.applies else ""):
            return replace(passed, status="not-applicable", reason=reason)
        if reason := untold.of(check.needs):
            return replace(passed, status="skip", reason=reason)
        answers = tuple(map(_answer, check.run(view)))
    except PASSING:
        raise
    except BaseException as error:
        return replace(passed, status="crash", reason=f"{type(error).__name__}: {error}")
    findings = tuple(_filed(one, check, scope) for one in answers if isinstance(one, Finding))
    fits = tuple(one for one in answers if isinstance(one, Fits))
    undecided = "; ".join(one.reason for one in answers if isinstance(one, Undecided))
    status = "fail" if findings else "skip" if undecided else "pass"
    return replace(passed, status=status, findings=findings, fits=fits, reason=undecided)


def _answer(given: object) -> Answer:
    # Whatever else a check yields must not be taken for silence, which is a pass.
    if not isinstance(given, Answer):
        raise TypeError(f"a check answers Finding, Undecided or Fits, not {type(given).__name__}")
    if isinstance(given, Finding) and not given.evidence:
        raise ValueError("a finding cites no evidence")
    return given


def _filed(finding: Finding, check: Check, scope: str) -> Finding:
    # What is proved by nothing of one machine is about none in particular.
    own = any(one.origin.scope for one in finding.evidence)
    return replace(finding, check=check.id, scope=scope if own else "")


def _elsewhere(about: str, view: Facts) -> str:
    """Why a check of a platform does not concern this machine: it is known to be another."""
    for platform in view.all(Platform):
        if about in platform.absent:
            return f"this machine has {' and '.join(platform.present) or 'no accelerator'}, not {about}"
    return ""


class _Untold:
    """Why facts of a machine are not known: which probes could have told them, and why they did not."""

    def __init__(self, view: Facts, loaded: Loaded) -> None:
        self.view, self.tellers = view, loaded.tellers
        self.said: dict[tuple[type[Fact], ...], str] = {(): ""}

    def of(self, needs: Iterable[type[Fact]]) -> str:
        """Which of these kinds are not known and why, empty where all are."""
        missing = tuple(kind for kind in needs if self.view.first(kind) is None)
        reasons = self.view.concluded(_reasons) if missing else {}
        if missing not in self.said:
            self.said[missing] = self._why(missing, reasons)
        return self.said[missing]

    def _why(self, missing: tuple[type[Fact], ...], reasons: Mapping[str, str]) -> str:
        could = list(dict.fromkeys(key for kind in missing for key in self.tellers.get(kind, ())))
        why = [f"{key}: {reasons[key]}" for key in could if key in reasons]
        silent = [key for key in could if key not in reasons]
        told = "; ".join([*why, f"not seen: {', '.join(silent)}"] if silent else why) or "no probe tells it"
        return f"{' and '.join(kind.__name__ for kind in missing)} not known ({told})"


def _reasons(view: Facts) -> dict[str, str]:
    return {one.what: one.reason for one in view.all(Unavailable)}
