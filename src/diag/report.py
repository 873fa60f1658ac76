"""The report: one finished document, ranked, counted and joined, that every renderer, gate and pipeline reads.

The verdict is `fail` with a finding of severity error, else `incomplete` where what matters could not be judged, else
`warn` with a finding of severity warning, else `pass`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct, convert, field, json
from msgspec.structs import replace

from diag.capture import Capture
from diag.check import Check, filled
from diag.facts import Collective, F, Fact, Facts, MatrixVerdict, Platform, Reference, Sighting, Text, Vendor
from diag.finding import (
    CONFIDENCES,
    SEVERITIES,
    Broken,
    Confidence,
    Evidence,
    FailOn,
    Finding,
    Result,
    Severity,
    Status,
    Value,
    Waiver,
)
from diag.shell import spelled
from diag.unexplained import Unexplained

SourceKind = Literal["live", "bundle", "paste", "asked", "run"]
Verdict = Literal["pass", "warn", "fail", "incomplete"]


class Source(Struct, frozen=True, kw_only=True):
    """What was examined, and when (UTC)."""

    kind: SourceKind
    name: str
    taken_at: str = ""


class MachineRow(Struct, frozen=True, kw_only=True):
    """One line of the machine summary."""

    label: str
    value: str
    scope: str = ""


class ReportedEvidence(Struct, frozen=True, kw_only=True):
    """Evidence as the document gives it."""

    says: str
    capture: str
    line: int
    quote: str
    strength: Literal["observed", "inferred"]
    times: int = 1
    speakers: tuple[str, ...] = ()


class ReportedRemedy(Struct, frozen=True, kw_only=True):
    """A remedy with its wording filled in."""

    title: str
    commands: tuple[str, ...]
    safety: Literal["safe", "disruptive", "manual"]
    verify: str
    source: str


class ReportedWaiver(Struct, frozen=True, kw_only=True):
    """The waiver of a finding: its last day (ISO 8601), why, and whether that day is over."""

    until: str
    reason: str
    ended: bool = False


class ReportedFinding(Struct, frozen=True, kw_only=True):
    """A finding in words; `values` are what filled them, `related` the ids of its consequences.

    One whose waiver has not ended counts for neither verdict nor exit code.
    """

    rank: int
    id: str
    kind: Literal["check", "entry", "matrix"]
    severity: Severity
    confidence: Confidence
    title: str
    summary: str
    cause: str
    scope: str
    subject: str
    evidence: tuple[ReportedEvidence, ...]
    remedies: tuple[ReportedRemedy, ...]
    related: tuple[str, ...]
    values: dict[str, Value]
    fingerprint: str
    waiver: ReportedWaiver | None = None

    @property
    def counts(self) -> bool:
        """Whether it counts for verdict and exit code."""
        return self.waiver is None or self.waiver.ended


class ReportedResult(Struct, frozen=True, kw_only=True):
    """What became of one check on these machines, on all of the report's where none is named.

    `scope` is the name of the machine where it is of one alone, else empty.
    """

    id: str
    title: str
    severity: Severity
    status: Status
    reason: str
    scope: str
    scopes: tuple[str, ...]
    seconds: float


class ReportedCapture(Struct, frozen=True, kw_only=True):
    """A capture without its text."""

    key: str
    exit_code: int | None
    error: str
    seconds: float
    sha256: str


class Report(Struct, frozen=True, kw_only=True):
    """The document `diag/report/1`.

    `scopes` are the names of the machines, where they have any; `untouched` the subjects (`torch`, `network`) that have
    checks which apply, none of which could be judged; `ignored` the prefixes of rules that the user left out.
    `unexplained` is what a text consists of in which no cause was found, None where one was.
    """

    schema_: Literal["diag/report/1"] = field(default="diag/report/1", name="schema")
    tool: str
    command: str
    language: Literal["en", "zh"] = "en"
    source: Source
    verdict: Verdict
    incomplete: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    machine: tuple[MachineRow, ...] = ()
    unexplained: Unexplained | None = None
    findings: tuple[ReportedFinding, ...] = ()
    results: tuple[ReportedResult, ...] = ()
    facts: dict[str, list[dict[str, Any]]] = {}
    captures: tuple[ReportedCapture, ...] = ()
    broken: tuple[Broken, ...] = ()
    seconds: dict[str, float] = {}

    @property
    def versions(self) -> list[MatrixVerdict]:
        """The verdicts on the versions of each machine."""
        return self.told(MatrixVerdict)

    @property
    def collectives(self) -> list[Collective]:
        """What was measured between ranks."""
        return self.told(Collective)

    def told(self, kind: type[F]) -> list[F]:
        """Every fact of a kind."""
        return convert(self.facts.get(kind.__name__, []), list[kind])  # type: ignore[valid-type]

    def count(self, status: Status) -> int:
        """How many results have this status, those of each machine by themselves."""
        every = len(self.scopes) or 1
        return sum(len(result.scopes) or every for result in self.results if result.status == status)

    def exit_code(self, fail_on: FailOn = "error") -> int:
        """1 with a finding at or above `fail_on`, else 4 where incomplete, else 0."""
        counted = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
        if any(finding.severity in counted for finding in self.findings if finding.counts):
            return 1
        return 4 if self.incomplete else 0


@dataclass(frozen=True)
class Judged:
    """What a report is made from; `incomplete` names what kept the question from being answered.

    `waivers` are weighed on the day `today`. Without `digests` those of the captures are left out: they take time.
    """

    facts: Facts
    results: Sequence[Result]
    captures: Sequence[Capture] = ()
    broken: Sequence[Broken] = ()
    incomplete: Sequence[str] = ()
    machine: Sequence[MachineRow] = ()
    unexplained: Unexplained | None = None
    seconds: Mapping[str, float] | None = None
    waivers: Sequence[Waiver] = ()
    ignored: Sequence[str] = ()
    today: dt.date = dt.date.min
    digests: bool = True


def assemble(judged: Judged, checks: Mapping[str, Check], *, language: str, **circumstances: Any) -> Report:
    """The finished document in one language; `circumstances` are `tool`, `command` and `source`."""
    ordered = ranked(judged.results, checks)
    scopes = tuple(filter(None, judged.facts.scopes()))
    found = {finding.check for finding in ordered}
    reported = [
        replace(_finding(one, found, checks[one.check], language), waiver=_waiver(one, judged)) for one in ordered
    ]
    reported.sort(key=lambda one: not one.counts)
    findings = tuple(replace(one, rank=rank) for rank, one in enumerate(reported, 1))
    return Report(
        verdict=verdict([one.severity for one in findings if one.counts], judged.incomplete),
        incomplete=tuple(judged.incomplete),
        untouched=tuple(_untouched(judged, checks)),
        ignored=tuple(judged.ignored),
        language="zh" if language == "zh" else "en",
        machine=tuple(judged.machine),
        findings=findings,
        unexplained=judged.unexplained,
        scopes=scopes,
        results=tuple(_result(result, checks[result.check], language, scopes) for result in judged.results),
        facts=_facts(judged.facts),
        captures=tuple(_capture(one, judged.digests) for one in judged.captures),
        broken=tuple(judged.broken),
        seconds={phase: round(spent, 4) for phase, spent in (judged.seconds or {}).items()},
        **circumstances,
    )


def _untouched(judged: Judged, checks: Mapping[str, Check]) -> list[str]:
    """The subjects of which nothing was judged, where something was; makers that are not known to be there are none.

    That a text does not show a symptom judges nothing.
    """
    present = {name for one in judged.facts.all(Platform) for name in one.present}
    elsewhere = {one.vendor for one in judged.facts.all(Vendor)} - present
    subjects: dict[str, set[Status]] = {}
    for result in judged.results:
        if result.status != "pass" or checks[result.check].kind != "entry":
            subjects.setdefault(result.check.partition("/")[0], set()).add(result.status)
    bare = {"versions" for one in judged.facts.all(MatrixVerdict) if one.verdict == "unknown"}
    bare |= {name for name, ends in subjects.items() if "skip" in ends and ends.isdisjoint(("pass", "fail"))}
    return sorted(bare - elsewhere) if any({"pass", "fail"} & ends for ends in subjects.values()) else []


def verdict(severities: Iterable[Severity], incomplete: Sequence[str]) -> Verdict:
    """The one word for a set of findings and what could not be judged."""
    found = set(severities)
    if "error" in found:
        return "fail"
    if incomplete:
        return "incomplete"
    return "warn" if "warning" in found else "pass"


def ranked(results: Iterable[Result], checks: Mapping[str, Check]) -> list[Finding]:
    """All findings: causes before what they explain, then by severity, confidence and place in the text.

    What only says that something failed stands behind the errors and warnings that may say why.
    """
    # What a text says outside any machine's section is found again in every scope, and is one finding all the same.
    distinct: dict[object, Finding] = {}
    for finding in (finding for result in results for finding in result.findings):
        distinct.setdefault((finding.check, finding.subject, finding.evidence), finding)
    findings = list(distinct.values())
    found = {finding.check for finding in findings}
    explained = {id for one in found for id in checks[one].explains}

    def weight(finding: Finding) -> tuple[bool, bool, bool, int, int, int]:
        check, line = checks[finding.check], finding.evidence[0].origin.line
        return (
            finding.check in explained,
            check.severity == "info",
            check.consequence,
            SEVERITIES.index(check.severity),
            CONFIDENCES.index(finding.confidence),
            line or 1_000_000_000,
        )

    return sorted(findings, key=weight)


def _waiver(finding: Finding, judged: Judged) -> ReportedWaiver | None:
    """The waiver of a finding: of several the one that lasts longest."""
    covering = [one for one in judged.waivers if one.covers(finding)]
    if not covering:
        return None
    last = max(covering, key=lambda one: one.until)
    return ReportedWaiver(until=last.until.isoformat(), reason=last.reason, ended=last.until < judged.today)


def _finding(finding: Finding, found: set[str], check: Check, language: str) -> ReportedFinding:
    return ReportedFinding(
        rank=0,
        id=check.id,
        kind=check.kind,
        severity=check.severity,
        confidence=finding.confidence,
        title=check.say("title", language, finding.values),
        summary=check.say("summary", language, finding.values),
        cause=check.say("cause", language, finding.values),
        scope=finding.scope,
        subject=finding.subject,
        evidence=tuple(_cited(finding)),
        remedies=tuple(_remedies(check, finding, language)),
        related=tuple(id for id in check.explains if id in found),
        values={name: str(value) if isinstance(value, str) else value for name, value in finding.values.items()},
        fingerprint=finding.fingerprint,
    )


def _cited(finding: Finding) -> Iterable[ReportedEvidence]:
    """The evidence, each line once, although several facts were read in it."""
    cited: dict[tuple[str, int, str], Evidence] = {}
    for one in finding.evidence:
        cited.setdefault((one.origin.capture, one.origin.line, one.origin.quote or one.says), one)
    return map(_evidence, cited.values())


def _evidence(evidence: Evidence) -> ReportedEvidence:
    origin = evidence.origin
    return ReportedEvidence(
        says=evidence.says,
        capture=origin.capture,
        line=origin.line,
        quote=origin.quote,
        strength=evidence.strength,
        times=evidence.times,
        speakers=evidence.speakers,
    )


def _remedies(check: Check, finding: Finding, language: str) -> Iterable[ReportedRemedy]:
    for remedy in check.remedies_for(finding):
        yield ReportedRemedy(
            title=filled(remedy.title.get(language) or remedy.title["en"], finding.values),
            commands=tuple(str(spelled(command, finding.values)) for command in remedy.commands),
            safety=remedy.safety,
            verify=str(spelled(remedy.verify, finding.values)),
            source=remedy.source,
        )


def _result(result: Result, check: Check, language: str, scopes: Sequence[str]) -> ReportedResult:
    values = result.findings[0].values if result.findings else {}
    return ReportedResult(
        id=result.check,
        title=check.say("title", language, values),
        severity=result.severity,
        status=result.status,
        reason=result.reason,
        scope=result.scopes[0] if len(result.scopes) == 1 else "",
        scopes=result.scopes if len(result.scopes) < len(scopes) else (),
        seconds=round(result.seconds, 6),
    )


def _facts(facts: Facts) -> dict[str, list[dict[str, Any]]]:
    """Every fact told of the machine, by kind; what a text or a reference table says is left out."""
    told: dict[str, list[Fact]] = {}
    for fact in facts:
        if not isinstance(fact, Text | Sighting | Reference):
            told.setdefault(type(fact).__name__, []).append(fact)
    plain: dict[str, list[dict[str, Any]]] = json.decode(json.encode(told))
    return plain


def _capture(capture: Capture, digest: bool) -> ReportedCapture:
    return ReportedCapture(
        key=capture.key,
        exit_code=capture.exit_code,
        error=capture.error,
        seconds=round(capture.seconds, 4),
        sha256=capture.sha256() if digest else "",
    )
