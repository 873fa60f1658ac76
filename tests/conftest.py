"""What all tests share: the marker of slow ones, and lines that a test wants read at the end of every run."""

from __future__ import annotations

import signal

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


@pytest.fixture(scope="session")
def said(pytestconfig: pytest.Config) -> list[str]:
    """Lines for the end of the run, whatever is captured."""
    return pytestconfig.stash[SAID]
