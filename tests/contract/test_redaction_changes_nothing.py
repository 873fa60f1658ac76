"""What passes the exit gate says the same: stand-ins change names, never verdicts."""

from __future__ import annotations

import pytest

from diag.cli.examine import leaving
from diag.redact import Known, Redactor

from .loaded import LANGUAGES, Vector, pasted, report, statuses

KEYS = (b"0123456789abcdef", bytes(16))
KNOWN = Known(hosts=("node-7.example.org", "torch"), users=("alice", "root", "opt"), homes=("/home/alice", "/opt"))


def test_redacted_text_is_judged_the_same(vector: Vector) -> None:
    for key, known in zip(KEYS, (Known(), KNOWN), strict=True):
        assert statuses(pasted(Redactor(key, known).text(vector.text))) == statuses(pasted(vector.text))


def test_text_redacted_twice_is_judged_the_same(vector: Vector) -> None:
    once, twice = Redactor(KEYS[0]), Redactor(KEYS[1])
    assert statuses(pasted(twice.text(once.text(vector.text)))) == statuses(pasted(vector.text))


@pytest.mark.parametrize("language", LANGUAGES)
def test_redacted_report_says_the_same(vector: Vector, language: str) -> None:
    whole = report(pasted(vector.text), language)
    kept = leaving(whole, Redactor(KEYS[0], KNOWN))
    assert (kept.verdict, kept.exit_code()) == (whole.verdict, whole.exit_code())
    assert [(one.id, one.status) for one in kept.results] == [(one.id, one.status) for one in whole.results]
    assert [(one.id, one.title, one.cause) for one in kept.findings] == [
        (one.id, one.title, one.cause) for one in whole.findings
    ]
    assert [one.remedies for one in kept.findings] == [one.remedies for one in whole.findings]
