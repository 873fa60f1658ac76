"""What a check found: the finding, its evidence, its remedies, and the result that holds it."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from diag.facts import Fact, HardwareEvent, Origin

Severity = Literal["error", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
Status = Literal["pass", "fail", "skip", "not-applicable", "crash"]
FailOn = Literal["error", "warning", "never"]
Value = str | int | float

EVENTS_CAP = 8
"""Events that one finding cites at most."""
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
LANGUAGES = ("en", "zh")


class Evidence(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that was read, and where; `inferred` where it was concluded from what was read.

    `times` counts the lines that say it, the first of which is cited, and `speakers` are the processes that said it.
    """

    says: str
    origin: Origin
    strength: Literal["observed", "inferred"] = "observed"
    times: int = 1
    speakers: tuple[str, ...] = ()

    @classmethod
    def of(cls, fact: Fact) -> Evidence:
        """The fact as evidence."""
        return cls(says=fact.says(), origin=fact.origin, strength="inferred" if fact.inferred else "observed")

    @classmethod
    def of_events(cls, events: Sequence[HardwareEvent]) -> tuple[Evidence, ...]:
        """The first event of each device, and of a single one the last as well."""
        first = {one.address: one for one in reversed(events)}
        told = [*reversed(first.values())] if len(first) > 1 else [*dict.fromkeys((events[0], events[-1]))]
        return tuple(map(cls.of, told[:EVENTS_CAP]))


class Remedy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way out, in each language; `{name}` in commands and `verify` is filled from the finding's values.

    `safe` changes nothing that runs; `disruptive` stops or restarts something; `manual` needs a person's judgement.
    """

    key: str = ""
    title: dict[str, str]
    commands: tuple[str, ...] = ()
    safety: Literal["safe", "disruptive", "manual"]
    verify: str = ""
    source: str = ""


class Finding(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fault that is there: the values that fill the check's wording, its subject and the evidence, at least one.

    `remedies` names those of the check's remedies that fit, all where empty. `source` is what this finding rests on,
    where that is not the check's own, `checked` the day on which it was. The engine fills `check` and `scope`.
    """

    values: dict[str, Value] = {}
    subject: str = ""
    confidence: Confidence = "high"
    evidence: tuple[Evidence, ...]
    remedies: tuple[str, ...] = ()
    source: str = ""
    checked: str = ""
    check: str = ""
    scope: str = ""

    @property
    def fingerprint(self) -> str:
        """Names the fault on its subject, however often and with whatever figures it is found."""
        return hashlib.sha256("\0".join((self.check, self.scope, self.subject)).encode()).hexdigest()[:16]


class Undecided(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a check answers where the facts it needs are there and do not tell what it asks: never a pass."""

    reason: str


class Fits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a check about versions compared and found in order: in each language, by which source, checked when."""

    says: dict[str, str]
    source: str
    checked: str = ""


class Waiver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A finding that somebody has decided to live with, until the end of a day and for a reason.

    `id` is a rule's; `subject`, where given, must stand in the finding's subject as a word of its own.
    """

    id: str
    until: dt.date
    reason: str
    subject: str = ""

    def covers(self, finding: Finding) -> bool:
        """Whether it is about this finding, whether or not it has ended."""
        own = rf"(?<![\w.:-]){re.escape(self.subject)}(?![\w.:-])"
        return self.id == finding.check and (not self.subject or bool(re.search(own, finding.subject)))


class Broken(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something of diag's, or of a source, that could not be loaded or read, and why."""

    where: str
    error: str


class Result(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one check in these scopes, none where the one machine has no name."""

    check: str
    severity: Severity
    status: Status
    scopes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    fits: tuple[Fits, ...] = ()
    reason: str = ""
    seconds: float = 0.0
