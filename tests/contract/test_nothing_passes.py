"""Unknown is not healthy: where nothing was told nothing passes, and the report says that it is incomplete."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.capture import Capture
from diag.probe import Probe

from .loaded import LIVE, examined, pasted
from .shell import diag, examine

POEM = """\
Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date.

床前明月光，疑是地上霜。
举头望明月，低头思故乡。
"""
NOTHING = {
    "empty": "",
    "blank": " \n\t\n\r\n\u3000\n",
    "poem": POEM,
    "prompt": "$ nvidia-smi\n",
    "not found": "$ nvidia-smi\nbash: nvidia-smi: command not found\n",
    "prose": "My GPU server is slow, torch says nothing. Can anyone help? I use the newest driver.\n",
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_nothing_passes(text: str) -> None:
    results = pasted(text).results
    assert results
    assert [(one.check, one.status) for one in results if one.status not in ("skip", "not-applicable")] == []


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_the_report_is_incomplete(text: str, tmp_path: Path) -> None:
    document = examine(tmp_path, text)
    assert (document["verdict"], document["findings"]) == ("incomplete", [])
    assert document["incomplete"]
    assert all(one["reason"] for one in document["results"])


def test_incomplete_is_exit_code_4(tmp_path: Path) -> None:
    assert diag(tmp_path, "env-check", "-", text=POEM).returncode == 4


def test_no_capture_at_all() -> None:
    assert {one.status for one in examined([]).results} <= {"skip", "not-applicable"}


@pytest.mark.parametrize("error", ["FileNotFoundError: x", "timed out after 15 s", "killed by SIGSEGV"])
def test_host_on_which_every_probe_fails(error: str) -> None:
    found = examined(Capture.of(probe.key, "", error=error) for probe in LIVE)
    assert [(one.check, one.status) for one in found.results if one.status in ("pass", "crash")] == []
    assert found.broken == ()


def test_a_probe_told_nothing_when_its_text_is_empty(probe: Probe) -> None:
    found = examined([Capture.of(probe.key, "", kind="command", exit_code=0)])
    assert [(one.check, one.status) for one in found.results if one.status in ("pass", "crash")] == []
    assert found.broken == ()


def test_a_probe_survives_any_text(probe: Probe) -> None:
    texts = [POEM, "{}", '{"schema": 1}', "\0\ufffd\ud800", "x" * 70_000, "\n" * 3_000]
    texts += ['{"a":' * 100_000]
    for text in texts:
        assert examined([Capture.of(probe.key, text, exit_code=0)]).broken == ()
