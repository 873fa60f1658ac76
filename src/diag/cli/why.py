"""`diag checks why`: what a rule answered on a machine, and from which facts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout

from diag.check import Check
from diag.cli.catalogue import one_of
from diag.cli.emit import write
from diag.cli.examine import Examined, Question, examined, gate_of, known
from diag.cli.opening import within
from diag.cli.options import Bounds, Content, Live
from diag.facts import Fact, Facts, Reference, Unavailable
from diag.finding import Evidence, Result
from diag.plugins import Loaded
from diag.render.words import WORDS
from diag.text import cut, in_one_line

SHOWN = 8
"""Facts of a kind that are shown."""
WIDTH = 1_000
"""Characters of a line that are shown."""


def run(id: str, asked: Question, *, content: Content, bounds: Bounds, live: Live) -> int:
    """Judge by this one rule, and show the way to its answer."""

    def choose(loaded: Loaded) -> list[Check]:
        return [one_of(loaded, id)]

    with within(bounds.timeout):
        with redirect_stdout(sys.stderr):
            found = examined(asked, bounds, live, choose=choose)
        gate = gate_of(content, known(found))
        lines = "".join(f"{in_one_line(line)}\n" for line in _shown(found, one_of(found.loaded, id), content.lang))
        write("".join(f"{cut(line, WIDTH)}\n" for line in (gate.text(lines) if gate else lines).splitlines()))
    return 3 if any(one.status == "crash" for one in found.examination.results) else 0


def _shown(found: Examined, check: Check, language: str) -> Iterator[str]:
    for result in found.examination.results:
        for scope in result.scopes or ("",):
            yield f"{result.check}{f' ({scope})' if scope else ''}: {result.status}"
            if result.reason:
                yield f"  reason: {result.reason}"
            yield from _answered(result, check, language)
            view = found.examination.facts.within(scope)
            for word, kinds in (("needs", check.needs), ("may use", check.uses)):
                for kind in kinds:
                    yield from _facts(word, kind, view, found.loaded)


def _answered(result: Result, check: Check, language: str) -> Iterator[str]:
    words = WORDS[language]
    yield from (f"  fits: {one.says[language]}" for one in result.fits)
    for finding in result.findings:
        subject = f"[{finding.subject}] " if finding.subject else ""
        summary = check.say("summary", language, finding.values)
        yield f"  {words[check.severity]}: {subject}{summary} ({words['confidence']}: {words[finding.confidence]})"
        for one in finding.evidence:
            yield f"    {words['evidence']}: {_place(one)}{one.origin.quote or one.says}"


def _facts(word: str, kind: type[Fact], view: Facts, loaded: Loaded) -> Iterator[str]:
    """The facts of a kind that were there, or who could have told one, and why they did not."""
    told = view.all(kind)
    if issubclass(kind, Reference):
        yield f"  {word} {kind.__name__}: {len(told)} rows of reference"
        return
    if not told:
        yield f"  {word} {kind.__name__}: none told"
        reasons = {one.what: one.reason for one in view.all(Unavailable)}
        for probe in loaded.probes.values():
            if kind in probe.tells and probe.key in reasons:
                yield f"    {probe.key}: {reasons[probe.key]}"
        return
    yield f"  {word} {kind.__name__}: {len(told)}"
    yield from (f"    {_place(one)}{one.says()}" for one in told[:SHOWN])
    if len(told) > SHOWN:
        yield f"    … and {len(told) - SHOWN} more"


def _place(told: Fact | Evidence) -> str:
    origin = told.origin
    return f"{origin.capture}:{origin.line}: " if origin.line else f"{origin.capture}: "
