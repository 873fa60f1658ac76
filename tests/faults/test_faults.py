"""The real program with each fault in its way: a whole report or one line, in time, and nothing left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from diag.report import Report

from . import box
from .fault import Fault
from .listed import FAULTS

SOAK = "DIAG_EXAMPLES" in os.environ
UNREADABLE = 77
SPOKEN_OF = {id for fault in FAULTS for id in fault.finds}
"""Findings that a fault must have or must not have; what other rules find on this machine is their own concern."""


def errors(report: Report) -> set[str]:
    return {one.id for one in report.findings if one.severity == "error"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault(fault: Fault, tmp_path: Path) -> None:
    if lacking := [need for need in fault.needs if not box.met(need)]:
        pytest.skip(f"there is no {' and no '.join(lacking)}")
    if fault.soak and not SOAK:
        pytest.skip("make soak")
    ran = box.run(fault, tmp_path)
    if ran.code == UNREADABLE and fault.needs:
        pytest.skip("nobody can read this installation")
    assert (ran.err.count("\n"), ran.err[: len(fault.stderr)]) == (bool(fault.stderr), fault.stderr)
    left_alone(fault, ran)
    if fault.document:
        judged(fault, ran.report)
    assert ran.code == (1 if fault.document and fault.exit == 4 and errors(ran.report) else fault.exit)


def left_alone(fault: Fault, ran: box.Ran) -> None:
    """In time, within its memory, and nothing left: no process, no file."""
    for pid in ran.left:
        os.kill(pid, signal.SIGKILL)
    assert [line for line in ran.left.values() if not fault.outlives or fault.outlives not in line] == []
    assert bool(ran.left) == bool(fault.outlives)
    assert ran.written == tuple(sorted(fault.writes))
    assert ran.seconds < fault.seconds
    assert ran.mib < fault.mib


def judged(fault: Fault, report: Report) -> None:
    """A report without a bug of diag in it that says what the fault is."""
    reasons = {one["what"]: one["reason"] for one in report.facts.get("Unavailable", [])}
    untold = {what: reasons.get(what, "") for what in fault.unavailable}
    assert {what: reason for what, reason in untold.items() if not reason.startswith(fault.unavailable[what])} == {}
    failed = {one.key: one.error for one in report.captures}
    assert {key: failed.get(key, "not taken") for key in fault.answered} == dict.fromkeys(fault.answered, "")
    assert errors(report) & SPOKEN_OF == set(fault.finds)
    assert any(reason.startswith(fault.incomplete) for reason in report.incomplete) or not fault.incomplete
    assert report.broken == ()
    assert [one.id for one in report.results if one.status == "crashed"] == []
