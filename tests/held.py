"""What the roots hold, loaded once for all tests of a process, and parsed once for all processes of a run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from diag import plugins
from diag.capture import Capture
from diag.facts import Fact
from diag.learn import learn
from diag.probe import Probe

KEPT = "DIAG_TESTS_CACHE"
"""The variable that names the folder where one run of the tests keeps what it parsed: a new one for each run."""
CACHE = Path(os.environ[KEPT]) / "diag" if KEPT in os.environ else None
ROOTS = plugins.roots()
LOADED = plugins.Shelf(ROOTS, CACHE).loaded()
Reading = tuple[str, Capture, list[Fact]]
"""The key of a probe, a part of a text that it was given, and what it told of it."""

_read: list[Reading] = []


def _watched(probe: Probe) -> Probe:
    def read(capture: Capture) -> list[Fact]:
        told = list(probe.read(capture))
        _read.append((probe.key, capture, told))
        return told

    return replace(probe, read=read)


# One for all texts: what they are searched for is compiled once.
_WATCHED = replace(LOADED, probes={key: _watched(probe) for key, probe in LOADED.probes.items()})


def readings(captures: Iterable[Capture]) -> list[Reading]:
    """All that the probes are given of captures, in its order."""
    _read.clear()
    learn(captures, _WATCHED)
    return [*_read]


def keep_parsed(folder: Path) -> None:
    """Give the cache of a run of diag what was parsed already, as if it were not the first."""
    _ = LOADED.signatures
    folder.mkdir(parents=True, exist_ok=True)
    for path in CACHE.glob("*.cache") if CACHE else ():
        shutil.copyfile(path, folder / path.name)
