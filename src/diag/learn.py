"""From captures to facts.

A capture whose key is a probe's goes to that probe. Any other text is searched: each probe reads the sections that are
its own, and the lines around what some entry asks about become facts as well. Line numbers stay those of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from diag.capture import Capture
from diag.errors import PASSING, TimeUp
from diag.facts import Accelerator, Fact, Facts, How, Reference, Sighting, Unavailable, Vendor
from diag.finding import Broken
from diag.plugins import Loaded
from diag.probe import Probe
from diag.scan import Scanned
from diag.scopes import Told, scoped
from diag.sections import sections
from diag.sightings import sightings
from diag.transcript import REFUSAL

MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, ValidationError)
"""What reading a document raises that is not shaped as it should be."""
UNSTARTED = ("PermissionError:", "OSError:", "BlockingIOError:")
"""How the error of a command begins that the system did not start."""


SPOILT = "its document is malformed"


@dataclass(frozen=True)
class Learnt:
    """What the captures told, which probes broke on them, and whether the time was over before all were read."""

    facts: Facts
    broken: tuple[Broken, ...]
    stopped: bool = False


def learn(captures: Iterable[Capture], loaded: Loaded) -> Learnt:
    """The facts that the probes read in the captures, with those of the references."""
    reader = _Reader(loaded)
    texts: list[Capture] = []
    keyed: list[Capture] = []
    for capture in captures:
        if reader.knows(capture):
            keyed.append(capture)
        else:
            texts.append(capture.bare())
    told: list[Fact] = []
    stopped = False
    try:
        told += (fact for capture in keyed for fact in reader.own(capture))
        told += reader.pasted(texts, {fact.origin.scope for fact in told} - {""})
    except TimeUp:
        stopped = True
    return Learnt(Facts((*loaded.references, *reader.asked_for(told), *told)), tuple(reader.broken), stopped)


def finite(value: Any) -> Any:
    """What a document told, each number of which is one: the report could not be read back."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(value)
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        finite(one)
    return value


def key_of(capture: Capture) -> str:
    """The key of the probe a capture belongs to: that of a stage is followed by `#` and its number."""
    return capture.key.partition("#")[0]


class _Reader:
    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.broken: list[Broken] = []
        self.probes = tuple(loaded.probes.values())
        self.makers = [
            (start, one.vendor) for one in loaded.references if isinstance(one, Vendor) for start in one.names
        ]

    def knows(self, capture: Capture) -> bool:
        """Whether a capture is the text of one probe, not one to be searched."""
        return capture.kind != "text" and key_of(capture) in self.loaded.probes

    def own(self, capture: Capture) -> Iterator[Fact]:
        """What a probe tells of its own text, and what entries ask about in it unless diag or the user wrote it."""
        yield from self.read(self.loaded.probes[key_of(capture)], capture)
        if capture.kind not in ("asked", "measure"):
            yield from self.sighted(capture, self.loaded.signatures.find(capture.body), ())

    def pasted(self, texts: Sequence[Capture], scopes: set[str]) -> Iterator[Fact]:
        """What is told of the texts to be searched: where there are several, each is about machines of its own.

        Those that bear the same scope are of one.
        """
        machines = {capture.scope or capture.key for capture in texts}
        several = len(machines) > 1 or bool(scopes)
        for capture in texts:
            scanned = self.loaded.signatures.find(capture.body)
            name = (capture.scope or capture.key) if several else ""
            told = list(scoped(sections(capture, scanned, self.probes), self.read, name))
            yield from (fact for one in told for fact in one.facts)
            yield from self.sighted(replace(capture, scope=name), scanned, told)

    def sighted(self, capture: Capture, scanned: Scanned, told: Sequence[Told]) -> Iterator[Sighting]:
        """What the checks hear of a text that ask about a literal in it."""
        asking = {check.id: check for literal in scanned.literals for check in self.loaded.asking.get(literal, ())}
        return sightings(capture, scanned, asking.values(), told)

    def read(self, probe: Probe, capture: Capture) -> list[Fact]:
        """What the probe tells of a capture; nothing told is a fact, too."""
        if REFUSAL.search(capture.error):
            return [_unavailable(probe, capture, "missing", capture.error)]
        try:
            told = list(map(self.made, probe.read(capture)))
            if probe.document:
                told = [convert(finite(to_builtins(fact)), type(fact)) for fact in told]
        except PASSING:
            raise
        except BaseException as error:
            return [self.unread(probe, capture, error)]
        if told and capture.kind == "command" and capture.error:
            # A tool that came to no end of its own: what it told holds, and it may not be all.
            return [*told, _unavailable(probe, capture, "failed", capture.error)]
        if told or (capture.kind == "text" and not capture.error):
            return told
        silence = "it ended without its document" if capture.kind == "measure" else "nothing in it was understood"
        return [_unavailable(probe, capture, _how(capture), capture.failed or silence)]

    def unread(self, probe: Probe, capture: Capture, error: BaseException) -> Unavailable:
        """What could not be read: diag's fault, unless it is a document that is not as its child prints it."""
        if probe.document and isinstance(error, MALFORMED):
            return _unavailable(probe, capture, "failed", f"{SPOILT}: {type(error).__name__}")
        self.broken.append(Broken(where=f"probe {probe.key}", error=f"{type(error).__name__}: {error}"))
        return _unavailable(probe, capture, "failed", f"diag could not read it: {type(error).__name__}")

    def made(self, fact: Fact) -> Fact:
        """The fact; a device of which the text tells no maker has the one that its name begins with."""
        if not isinstance(fact, Accelerator) or fact.vendor:
            return fact
        maker = next((maker for start, maker in self.makers if fact.name.startswith(start)), "")
        return replace(fact, vendor=maker)

    def asked_for(self, told: Iterable[Fact]) -> list[Reference]:
        """The rows of reference that are read because of what was told."""
        kinds = {type(fact).__name__ for fact in told}
        rows: list[Reference] = []
        for later in self.loaded.later:
            try:
                rows += () if kinds.isdisjoint(later.beside) else later.rows()
            except Exception as error:
                self.broken.append(Broken(where=str(later.path), error=f"{type(error).__name__}: {error}"))
        return rows


def _how(capture: Capture) -> How:
    """How a text that told nothing came about."""
    if capture.error.startswith(("FileNotFoundError", "ModuleNotFoundError")):
        return "missing"
    if capture.kind == "command" and capture.error.startswith(UNSTARTED):
        return "unstarted"
    return "failed" if capture.failed or capture.kind == "measure" else "silent"


def _unavailable(probe: Probe, capture: Capture, how: How, reason: str) -> Unavailable:
    tells = tuple(kind.__name__ for kind in probe.tells)
    origin = replace(capture.origin(), quote=reason)
    if capture.kind == "text":
        shown = (line for line in capture.lines() if line.text.strip())
        origin = capture.origin(next(shown, None))
        reason = reason if reason.startswith(SPOILT) else origin.quote or reason
    return Unavailable(origin=origin, what=probe.key, how=how, reason=reason, tells=tells)
