"""What passes the exit gate says the same: stand-ins change names, never verdicts."""

from __future__ import annotations

import os

from diag.cli.examine import leaving
from diag.redact import Known, Redactor
from diag.report import Report

from .loaded import LANGUAGES, Vector, pasted, report, statuses

KEYS = (b"0123456789abcdef", bytes(16))
SOAK = "DIAG_EXAMPLES" in os.environ
KNOWN = Known(hosts=("node-7.example.org", "torch"), users=("alice", "root", "opt"), homes=("/home/alice", "/opt"))


def test_redacted_text_is_judged_the_same(vector: Vector) -> None:
    once, twice = Redactor(KEYS[0]), Redactor(KEYS[1])
    gates = (Redactor(KEYS[0]), Redactor(KEYS[1], KNOWN))
    redacted = {gate.text(vector.text) for gate in gates} | {twice.text(once.text(vector.text))}
    for text in redacted - {vector.text}:
        assert statuses(pasted(text)) == statuses(pasted(vector.text))
    # Where nothing was found the report says little in words.
    found = any(one.findings for one in pasted(vector.text).results)
    for language in LANGUAGES if found or SOAK else LANGUAGES[:1]:
        says_the_same(report(pasted(vector.text), language))


def says_the_same(whole: Report) -> None:
    """What leaves of a report: names may differ, nothing else."""
    kept = leaving(whole, Redactor(KEYS[0], KNOWN))
    assert (kept.verdict, kept.exit_code()) == (whole.verdict, whole.exit_code())
    assert [(one.id, one.status) for one in kept.results] == [(one.id, one.status) for one in whole.results]
    assert [(one.id, one.title, one.cause) for one in kept.findings] == [
        (one.id, one.title, one.cause) for one in whole.findings
    ]
    assert [one.remedies for one in kept.findings] == [one.remedies for one in whole.findings]
