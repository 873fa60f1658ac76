"""What all tests share: the marker of slow ones, and lines that a test wants read at the end of every run."""

from __future__ import annotations

import signal
from typing import Any

import pytest

SAID = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    # A run that a script starts in the background inherits SIGINT as ignored, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes more than a second (deselect with -m 'not slow')")
    config.stash[SAID] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash[SAID]:
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Only the process that started the others writes to the terminal.
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["said"] = session.config.stash[SAID]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    said = node.config.stash[SAID]
    said += [line for line in getattr(node, "workeroutput", {}).get("said", []) if line not in said]


@pytest.fixture(scope="session")
def said(pytestconfig: pytest.Config) -> list[str]:
    """Lines for the end of the run, whatever is captured."""
    return pytestconfig.stash[SAID]
