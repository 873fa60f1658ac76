"""What a child may hold and print, asked of the loop that runs them all."""

from __future__ import annotations

import sys
import time

import pytest

from diag import spawn
from diag.capture import Capture
from diag.spawn import Command, Outcome, run

HUNGRY = "held = []\nwhile True: held.append(b'x' * 2**20)"


def only(*argv: str, timeout: float = 10.0) -> Outcome:
    (outcome,) = run([Command(argv, timeout)])
    return outcome


def test_where_memory_runs_out_a_child_is_the_first_to_go() -> None:
    assert only("sh", "-c", "sleep 0.3; cat /proc/self/oom_score_adj").stdout == "1000\n"


@pytest.mark.parametrize(
    "start", [HUNGRY, f"import subprocess, sys\nsubprocess.run((sys.executable, '-c', {HUNGRY!r}))"]
)
def test_who_holds_too_much_is_killed(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr(spawn, "MEMORY", 2**27)
    assert only(sys.executable, "-c", start).error == "killed: it held more than 128 MiB of memory"


def test_of_many_short_lines_the_first_and_the_last_are_kept() -> None:
    outcome = only("seq", "1", "300000")
    lines, half = outcome.stdout.splitlines(), spawn.LINES // 2
    assert lines[half] == f"… {outcome.left_out} bytes left out …"
    assert lines[:half] == [str(number) for number in range(1, half + 1)]
    assert lines[half + 1 :] == [str(number) for number in range(300_001 - half, 300_001)]
    assert len(outcome.stdout) - len(lines[half]) - 1 + outcome.left_out == sum(
        len(str(n)) + 1 for n in range(1, 300_001)
    )


def test_who_had_to_be_killed_is_kept_less_of() -> None:
    outcome = only("yes", timeout=0.3)
    assert len(outcome.stdout.splitlines()) == spawn.LINES_KILLED + 1


def test_where_there_is_no_further_process_the_next_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, started = spawn.Popen, []

    def scarce(*arguments: object, **more: object) -> object:
        if any(one.poll() is None for one in started):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(usual(*arguments, **more))  # type: ignore[call-overload]
        return started[-1]

    monkeypatch.setattr(spawn, "Popen", scarce)
    began = time.monotonic()
    assert [one.stdout for one in run([Command(("echo", str(number))) for number in range(5)])] == [
        f"{n}\n" for n in range(5)
    ]
    assert time.monotonic() - began < 5


def test_half_a_character_in_a_document_is_none() -> None:
    document = Capture.of("key", r'{"schema": "s/1", "whole": "\ud83d\ude00", "half": "a\udcff"}').document("s/1")
    assert document == {"schema": "s/1", "whole": "\U0001f600", "half": "a?"}
