"""What all tests share: the marker of slow ones, and lines that a test wants read at the end of every run."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from typing import Any

import pytest

# Before all that is loaded: processes that run tests beside this one are given the same.
OWNS = "DIAG_TESTS_CACHE" not in os.environ
os.environ.setdefault("DIAG_TESTS_CACHE", tempfile.mkdtemp(prefix="diag-tests-") if OWNS else "")

SAID = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    # A run that a script starts in the background inherits SIGINT as ignored, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "slow: takes more than a second (deselect with -m 'not slow')")
    config.stash[SAID] = []


def pytest_collection_finish() -> None:
    # What was loaded and collected stays to the end: it need not be looked through again and again.
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    if OWNS:
        shutil.rmtree(os.environ["DIAG_TESTS_CACHE"], ignore_errors=True)


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
