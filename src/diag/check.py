"""A check: a pure question put to facts, with its wording, its remedies and the vectors that prove it.

Rules written in Python, knowledge-base entries and matrix rows all become this one type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict

from diag.facts import Fact, Facts, Level
from diag.finding import Confidence, Finding, Fits, Remedy, Severity, Undecided, Value
from diag.shell import FIELD
from diag.symptoms import Symptoms
from diag.text import in_one_line

if TYPE_CHECKING:
    from typing_extensions import Unpack

Answer = Finding | Undecided | Fits
Run = Callable[[Facts], Iterable[Answer]]
RuleKind = Literal["check", "entry", "matrix"]


class Words(TypedDict):
    """A rule's wording in one language; `{name}` is filled from a finding's values."""

    title: str
    summary: str
    cause: str


@dataclass(frozen=True)
class Check:
    """One fault and how to find it.

    `run` yields a finding for each place the fault is in, `Undecided` where the facts do not tell, nothing where all is
    well, or `Fits` to say what was compared.

    `about` is the platform or component it concerns: where the machine is known to be something else the check is not
    applicable. `applies` may give a further reason why it is not. `needs` must be known, `uses` may be looked at.
    `symptoms` are the lines of any text that the check wants to hear of, `reads` the kinds of text they stand in, and
    `confidence` that of its findings where they do not say another. `explains` names the findings
    that are consequences of this one; one that is a `consequence` itself only says that something failed, and stands
    behind whatever names a cause. `verdict` is what a finding says of the versions of a machine, None for a check that
    is not about versions; `checked` is the day (ISO 8601) on which its sources were read for that, `ranges` the
    versions by name that it is about.
    """

    id: str
    severity: Severity
    about: str
    needs: tuple[type[Fact], ...]
    run: Run
    words: Mapping[str, Words]
    remedies: tuple[Remedy, ...] = ()
    sources: tuple[str, ...] = ()
    fires: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    uses: tuple[type[Fact], ...] = ()
    applies: Callable[[Facts], str] | None = None
    symptoms: Symptoms | None = None
    reads: tuple[str, ...] = ()
    confidence: Confidence = "high"
    explains: tuple[str, ...] = ()
    consequence: bool = False
    kind: RuleKind = "check"
    verdict: Level | None = None
    checked: str = ""
    ranges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    explanation: str = ""

    def say(self, part: Literal["title", "summary", "cause"], language: str, values: Mapping[str, Value]) -> str:
        """One part of the wording, filled in; a language without wording falls back to English."""
        words = self.words.get(language) or self.words["en"]
        return filled(words[part], values)

    def remedies_for(self, finding: Finding) -> tuple[Remedy, ...]:
        """The remedies that fit a finding, in the order declared."""
        return tuple(one for one in self.remedies if not finding.remedies or one.key in finding.remedies)


def filled(template: str, values: Mapping[str, Value]) -> str:
    """A sentence with its `{name}` fields replaced; an unknown field stays as it is, braces and all."""
    return FIELD.sub(lambda found: in_one_line(str(values.get(found[1], found[0]))), template)


class Declared(TypedDict):
    """What every `@check` states: see the fields of `Check`."""

    severity: Severity
    about: str
    needs: tuple[type[Fact], ...]
    words: Mapping[str, Words]


class Options(Declared, total=False):
    """What a `@check` may state beside that."""

    remedies: tuple[Remedy, ...]
    sources: tuple[str, ...]
    fires: tuple[str, ...]
    silent: tuple[str, ...]
    uses: tuple[type[Fact], ...]
    applies: Callable[[Facts], str]
    explains: tuple[str, ...]
    consequence: bool
    verdict: Level
    checked: str


def check(id: str, **stated: Unpack[Options]) -> Callable[[Run], Check]:
    """Make the decorated function a check. It builds a value and registers nothing."""

    def build(run: Run) -> Check:
        explanation = inspect.cleandoc(run.__globals__.get("__doc__") or run.__doc__ or "")
        return Check(id=id, run=run, explanation=explanation, **stated)

    return build
