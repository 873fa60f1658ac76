"""What a name, an argument or an entry holds turns, hides and colours nothing where diag shows it."""

import subprocess
import sys
from pathlib import Path

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
EVIL = "e\x1b[2J\x1b]0;owned\x07v\x9b31m\u202ei\u2066l\u2028\u200b"
UNSEEN = "\x1b\x07\x9b\u202e\u2066\u2028\u200b\r"
ENTRY = r"""
title: {en: "evil \e[2J\u202e\u2066\r\nspoof/row  entry error", zh: "\e[31m"}
severity: error
about: evil
text: [engine-log]
symptoms: {any: ['frobnicate me now']}
cause: {en: "\e[5m\u2066\r", zh: "\e[5m"}
remedies: [{title: {en: "\e[2J", zh: "\e[2J"}, commands: ["echo \e[2J"], safety: safe}]
sources: [{url: "https://example.org", seen: 2026-01-01}]
vectors: {fires: [{text: frobnicate me now}], silent: [{text: frobnicate me}]}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    (folder / "kb/entries/evil").mkdir(parents=True)
    (folder / "kb/entries/evil/one.yaml").write_text(ENTRY)
    return folder


def said(*arguments: object) -> str:
    done = subprocess.run((*DIAG, *map(str, arguments)), capture_output=True, timeout=120)
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize(
    "command",
    [("kb", "list", "evil"), ("kb", "search", "frobnicate"), ("kb", "show", "evil/one"), ("checks", "list")],
)
def test_an_entry_is_shown_as_text(root: Path, command: tuple[str, ...]):
    shown = said(*command, "--root", root)
    assert "evil/one" in shown
    assert not set(UNSEEN) & set(shown)
    assert not any(line.startswith("spoof/row") for line in shown.splitlines()) or "show" in command


@pytest.mark.parametrize(
    "arguments",
    [
        (f"/no/{EVIL}",),
        ("-", "--select", EVIL),
        ("-", f"--{EVIL}"),
        ("-", "--report", f"/{EVIL}"),
        ("-", "--root", EVIL),
    ],
)
def test_an_error_is_one_line_of_text(arguments: tuple[str, ...]):
    shown = said("explain", *arguments)
    assert shown.startswith("diag: ")
    assert shown.count("\n") == 1
    assert not set(UNSEEN) & set(shown)
