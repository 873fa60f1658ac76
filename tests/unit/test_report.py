import pytest
from msgspec import json
from msgspec.structs import replace

from diag.check import Check
from diag.cli.examine import leaving
from diag.facts import Facts, Host, Origin
from diag.finding import Evidence, Finding, Remedy, Result
from diag.redact import Redactor
from diag.report import Judged, Report, Source, assemble

SOURCE = Source(kind="paste", name="x")


def rule(id: str, severity="error", **options) -> Check:
    words = {
        "en": {"title": f"{id} {{n}}", "summary": f"{id} has {{n}}", "cause": "because"},
        "zh": {"title": "标题 {n}", "summary": "有 {n}", "cause": "因为"},
    }
    fix = Remedy(title={"en": "do {n}", "zh": "做 {n}"}, commands=("run {n}",), safety="safe")
    return Check(id, severity, "host", (), lambda facts: (), words, remedies=(fix,), **options)


def found(check: Check, line=1, confidence="high") -> Result:
    evidence = Evidence(says="seen", origin=Origin(capture="x", line=line, quote="q"))
    finding = Finding(values={"n": line}, confidence=confidence, evidence=(evidence,), check=check.id)
    return Result(check=check.id, severity=check.severity, status="fail", findings=(finding,))


def report(*results: Result, checks=(), incomplete=(), language="en") -> Report:
    judged = Judged(Facts(), results, incomplete=incomplete)
    return assemble(judged, {one.id: one for one in checks}, language=language, tool="0", command="c", source=SOURCE)


ERROR, WARNING, INFO = rule("a/error"), rule("a/warning", "warning"), rule("a/info", "info")
ALL = (ERROR, WARNING, INFO)
STATUSES = (("pass", ("a", "b", "c")), ("skip", ("a",)), ("crash", ("b", "c")))


@pytest.mark.parametrize(
    ("checks", "incomplete", "verdict", "codes"),
    [
        ((), (), "pass", (0, 0, 0)),
        ((INFO,), (), "pass", (0, 0, 0)),
        ((WARNING,), (), "warn", (0, 1, 0)),
        ((ERROR,), (), "fail", (1, 1, 0)),
        ((), ("why",), "incomplete", (4, 4, 4)),
        ((WARNING,), ("why",), "incomplete", (4, 1, 4)),
        ((ERROR,), ("why",), "fail", (1, 1, 4)),
    ],
)
def test_verdict_and_exit_codes(checks, incomplete, verdict, codes):
    made = report(*map(found, checks), checks=ALL, incomplete=incomplete)
    assert made.verdict == verdict
    assert tuple(made.exit_code(fail_on) for fail_on in ("error", "warning", "never")) == codes


def test_findings_stand_by_cause_severity_confidence_and_line():
    cause = rule("z/cause", "warning", explains=("a/error",))
    second, unsure = rule("a/second"), rule("a/unsure")
    results = [found(ERROR, 1), found(second, 9), found(unsure, 2, "low"), found(cause, 30)]
    made = report(*results, checks=(ERROR, second, unsure, cause))
    assert [one.id for one in made.findings] == ["a/second", "a/unsure", "z/cause", "a/error"]
    assert made.findings[2].related == ("a/error",)


def test_what_is_found_in_every_scope_is_one_finding():
    one, other = (found(ERROR) for _ in range(2))
    assert len(report(one, other, checks=ALL).findings) == 1
    assert len(report(one, found(ERROR, line=2), checks=ALL).findings) == 2


def test_wording_is_filled_in_the_language_asked_for():
    made = report(found(ERROR, 7), checks=ALL, language="zh")
    finding = made.findings[0]
    assert (finding.title, finding.summary, finding.remedies[0].title) == ("标题 7", "有 7", "做 7")
    assert finding.remedies[0].commands == ("run 7",)


def test_a_document_survives_being_written_and_read():
    made = report(found(ERROR), checks=ALL)
    assert json.decode(json.encode(made), type=Report) == made


def test_the_fingerprint_names_check_scope_and_subject_not_the_figures():
    one, other = (found(ERROR, line).findings[0] for line in (1, 2))
    assert one.fingerprint == other.fingerprint
    assert one.fingerprint != replace(one, subject="gpu1").fingerprint


def test_values_pass_the_exit_gate_whatever_they_are_called():
    made = report(found(ERROR), checks=ALL)
    finding = replace(made.findings[0], values={"command": "/home/alice/x", "source": "/home/alice/y"})
    kept = leaving(replace(made, findings=(finding,)), Redactor(bytes(16)))
    assert "alice" not in str(kept)
    assert kept.findings[0].id == finding.id


def test_what_is_so_on_all_machines_names_none_and_counts_for_each():
    facts = Facts(Host(origin=Origin(capture="x", scope=scope)) for scope in "abc")
    results = [Result(check=ERROR.id, severity="error", status=status, scopes=on) for status, on in STATUSES]
    made = assemble(Judged(facts, results), {ERROR.id: ERROR}, language="en", tool="0", command="c", source=SOURCE)
    assert (made.scopes, [one.scopes for one in made.results]) == (("a", "b", "c"), [(), ("a",), ("b", "c")])
    assert [one.scope for one in made.results] == ["", "a", ""]
    assert [made.count(status) for status, _ in STATUSES] == [3, 1, 2]
