"""What a command works on: the roots and their rules, the sources, and which of the rules are to judge."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timezone
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import IO, cast

from diag import archive, bundle, plugins, sources
from diag.capture import Capture
from diag.check import Check
from diag.child import BRIEF, THOROUGH
from diag.cli.options import Bounds, Live
from diag.cli.place import cache_folder, config_folder, target_python
from diag.cli.settings import Settings
from diag.errors import DiagError, TimeUp
from diag.facts import CollectiveEarlier, Component, Expected, Fact, LaunchCommand
from diag.learn import learn
from diag.plugins import Loaded, Shelf
from diag.probe import COSTS, USUAL
from diag.reading import Kept
from diag.sources import LiveHost
from diag.text import decode, printable

ASKED_CAP = 2**17
"""Characters of what is asked about: the kernel takes no longer argument either."""
ASKED: Mapping[str, tuple[type[Fact], str]] = {
    "launch": (LaunchCommand, "no engine is started in it, or a quote is open"),
    "matrix": (Component, "no word of it is NAME=VALUE or NAME==VERSION"),
    "expect": (Expected, "it is not COUNTxNAME, such as 8xH200"),
    "earlier": (CollectiveEarlier, "it holds no measurement between ranks"),
}
"""What an option must tell, and what is wrong where it does not."""
GRACE = 2.0
"""Seconds that children and readers have, beyond the bound, to come to the end they were told of."""
LAST = 10.0
"""Seconds after which the judgement of what was learnt by then is ended, too."""


def open_roots(bounds: Bounds, wanted: Callable[[bytes], bool] | None = None) -> Shelf:
    """The roots in order: bundled, installed, the user's, and those named."""
    named = [Path(one) for one in os.environ.get("DIAG_ROOTS", "").split(os.pathsep) if one]
    for folder in (*named, *bounds.root):
        if not folder.is_dir():
            raise DiagError(f"root {folder} is not a folder")
        if not plugins.is_root(folder):
            raise DiagError(f"root {folder} holds none of {', '.join(plugins.PARTS)}")
    shelf = Shelf(plugins.roots((*named, *bounds.root), config_folder()), cache_folder(), wanted)
    for folder in bounds.overlay:
        shelf.overlay(folder)
    return shelf


def rules(shelf: Shelf) -> Loaded:
    """Everything the roots hold."""
    loaded = shelf.loaded()
    # Off since the start; what was loaded stays for good and need not be looked through again.
    gc.freeze()
    gc.enable()
    return loaded


def load(bounds: Bounds) -> Loaded:
    """Everything the roots hold, at once."""
    return rules(open_roots(bounds))


def selected(checks: Iterable[Check], bounds: Bounds, decided: Settings) -> list[Check]:
    """The checks whose ids the user wants, now or by the settings; a prefix that fits none is a mistake."""
    checks = list(checks)
    select, ignore = bounds.select or decided.select, (*bounds.ignore, *decided.ignore)
    for prefix in (*select, *ignore):
        if not any(check.id.startswith(prefix) for check in checks):
            raise DiagError(f"no check begins with {prefix!r} (diag checks list)")
    wanted = select or ("",)
    return [one for one in checks if one.id.startswith(wanted) and not one.id.startswith(ignore)]


def open_sources(asked: Sequence[str], deadline: float | None) -> list[sources.Source]:
    """The sources named; where there are several, each is about machines of its own.

    The last of the time, a quarter at most, is left to judge what was read.
    """
    shown = [printable(Path(one).name) for one in asked]
    names = [printable(one) if shown.count(name) > 1 else name for one, name in zip(asked, shown, strict=True)]
    repeated = [one for number, one in enumerate(asked) if one in asked[:number]]
    if repeated:
        raise DiagError(f"{repeated[0]} is named twice")
    if deadline is not None:
        deadline -= min(GRACE, max(0.0, deadline - time.monotonic()) / 4)
    return [_opened(one, name, len(asked) > 1, deadline) for one, name in zip(asked, names, strict=True)]


def _opened(asked: str, name: str, several: bool, deadline: float | None) -> sources.Source:
    path = Path(asked)
    if asked == "-":
        if sys.stdin is None:
            raise DiagError("stdin is closed")
        return _streamed(open(sys.stdin.fileno(), "rb", closefd=False), "stdin", several, deadline)
    if path.exists() and not path.is_file() and not path.is_dir():
        return _streamed(path.open("rb"), name, several, deadline)
    if not path.is_file() or not os.access(path, os.R_OK):
        return sources.paste(path, name, deadline)
    with path.open("rb") as file:
        if sources.is_archive(file.read(sources.START)):
            return _unpacked(file, name, several, deadline)
    return sources.paste(path, name, deadline)


def _streamed(stream: IO[bytes], name: str, several: bool, deadline: float | None) -> sources.Source:
    """What comes on a stream that can be read but once, as a file of it would be opened."""
    kept = Kept.of(stream, deadline)
    if sources.is_archive(kept.start(sources.START)):
        return _unpacked(cast("IO[bytes]", kept), name, several, deadline)
    return sources.spoken(kept, name)


def _unpacked(file: IO[bytes], name: str, several: bool, deadline: float | None) -> sources.Source:
    file.seek(0)
    try:
        return bundle.opened(file, name, scope=name if several else "")
    except bundle.NoBundle:
        return archive.opened(file, name, several=several, deadline=deadline)


def live_host(live: Live, deadline: float | None) -> sources.Source:
    """This host, or a container of it, as far as the level allows to look at it."""
    if live.quick and live.deep:
        raise DiagError("--quick and --deep exclude each other")
    costs = COSTS[:1] if live.quick else COSTS if live.deep else USUAL
    if live.container:
        from diag import inside

        return inside.opened(live.container, deadline, python=live.python or "python3", costs=costs, now=now)
    between = THOROUGH if live.deep else BRIEF
    return LiveHost(target_python(live.python), sys.executable, costs, deadline, now, between)


def deadline_of(bounds: Bounds) -> float | None:
    """The end of the run in monotonic time, None where it has no bound."""
    return time.monotonic() + bounds.timeout if bounds.timeout else None


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Raise `TimeUp` in whatever goes on when the bound and a grace for what ends by itself are over."""
    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, _time_up)
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _time_up(signum: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, LAST)
    raise TimeUp


@contextmanager
def ahead(captures: Iterable[Capture]) -> Iterator[Iterable[Capture]]:
    """The captures, the first taken at once, which starts a host's commands; none is left running in the end."""
    rest = iter(captures)
    try:
        first = next(rest, None)
        yield rest if first is None else chain((first,), rest)
    finally:
        if isinstance(rest, Generator):
            rest.close()


def asked_about(texts: Mapping[str, str], loaded: Loaded) -> sources.Asked:
    """What the user asks about; a text that no probe understands is a mistake."""
    for key, text in texts.items():
        if len(text) > ASKED_CAP:
            raise DiagError(f"--{key}: {len(text)} characters are too many")
    asked = sources.Asked({key: decode(text.encode("utf-8", "surrogateescape")) for key, text in texts.items()})
    told = learn(asked.captures(()), loaded).facts
    for key in texts:
        kind, mistake = ASKED[key]
        if told.first(kind) is None:
            raise DiagError(f"--{key}: {mistake}")
    return asked


def today() -> date:
    """The day in UTC."""
    return datetime.now(timezone.utc).date()


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
