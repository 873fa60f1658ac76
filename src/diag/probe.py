"""A probe: which text to take, how to know it in a paste, and what facts it tells.

One probe is one text. The live host runs its command, reads its file or starts its measuring child; a paste is
searched for its `recognise`; `read` is the same pure function for both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from diag.capture import Capture
from diag.facts import Fact, Facts
from diag.spared import Spared

if TYPE_CHECKING:
    from typing_extensions import Unpack

Read = Callable[[Capture], Iterable[Fact]]
Cost = Literal["passive", "import", "active", "deep"]
COSTS: tuple[Cost, ...] = ("passive", "import", "active", "deep")
USUAL = COSTS[:3]
"""Without what uses each device for a while."""
MEASURING: tuple[Cost, ...] = ("active", "deep")
"""What is taken one at a time."""


@dataclass(frozen=True)
class Recognise:
    """How a probe's text is known in a longer one.

    A line that holds one of the `literals`, and matches `pattern` where one is given, opens the text, and up to `lines`
    after it belong to it. A text may open several times over, once by each literal; a literal that comes again opens
    the next one. With `each`, every such line belongs by itself, runs with gaps of at most `lines` are one text, and a
    run of fewer than `at_least` is none. With `first`, only the first line that holds each literal opens a text.
    """

    literals: tuple[str, ...]
    pattern: str = ""
    lines: int = 400
    each: bool = False
    at_least: int = 1
    first: bool = False

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def opens(self, line: str) -> bool:
        """Whether a line that holds one of the literals opens (or is part of) the text."""
        return bool(self._compiled.search(line))


@dataclass(frozen=True)
class Request:
    """What a staged measurement wants next: arguments for its measuring child."""

    arguments: tuple[str, ...]


Next = Callable[[tuple[Capture, ...]], Request | None]


@dataclass(frozen=True)
class Probe:
    """A text worth taking. At most one of `command`, `path`, `measure` is set; none for what is only asked or pasted.

    `measure` is a child program that prints JSON: a name in `diag/measure`, or an absolute path beside the probe.
    `arguments` are the child's; `next` makes it staged: from the captures so far, the next request, or None when done.
    `spared` keeps it from being started where another probe's text shows already what would come of it.
    Facts of the kinds `given` that the texts before it told are handed to its child as one more argument in JSON.
    With `ranks` the child is started once for each device, and its argument is a request in JSON (see `diag.world`).
    """

    key: str
    tells: tuple[type[Fact], ...]
    read: Read
    command: tuple[str, ...] = ()
    path: str = ""
    measure: str = ""
    arguments: tuple[str, ...] = ()
    recognise: Recognise | None = None
    interpreter: Literal["own", "target"] = "own"
    next: Next | None = None
    cost: Cost = "passive"
    timeout: float = 15.0
    ranks: bool = False
    spared: Spared | None = None
    given: tuple[type[Fact], ...] = ()

    @property
    def kind(self) -> Literal["command", "file", "measure"]:
        """What its text is on a live host, as a capture names it."""
        return "measure" if self.measure else "file" if self.path else "command"

    @property
    def document(self) -> bool:
        """Whether its text is a document in JSON that diag makes itself."""
        own = self.recognise.literals if self.recognise else ()
        return bool(self.measure) or any(one.startswith('"schema": "diag/') for one in own)

    @property
    def live(self) -> bool:
        """Whether a live host can be asked for this text."""
        return bool(self.command or self.path or self.measure)


@cache
def program(path: str) -> Mapping[str, Any]:
    """The names that a measuring child defines, for a reader that must agree with it; run once, when asked for."""
    from runpy import run_path  # not above: it takes as long to import as the child to run

    return run_path(path)


class Options(TypedDict, total=False):
    """What a `@probe` may state: see the fields of `Probe`."""

    command: tuple[str, ...]
    path: str
    measure: str
    arguments: tuple[str, ...]
    recognise: Recognise
    interpreter: Literal["own", "target"]
    next: Next
    cost: Cost
    timeout: float
    ranks: bool
    spared: Spared
    given: tuple[type[Fact], ...]


def probe(key: str, *, tells: tuple[type[Fact], ...], **stated: Unpack[Options]) -> Callable[[Read], Probe]:
    """Make the decorated reader a probe. It builds a value and registers nothing."""

    def build(read: Read) -> Probe:
        return Probe(key=key, tells=tells, read=read, **stated)

    return build


@dataclass(frozen=True)
class Deduction:
    """Facts concluded from facts: `needs` must be there, `uses` may be looked at, `tells` is what may come out."""

    name: str
    needs: tuple[type[Fact], ...]
    uses: tuple[type[Fact], ...]
    tells: tuple[type[Fact], ...]
    run: Callable[[Facts], Iterable[Fact]]


def deduction(
    *, tells: tuple[type[Fact], ...], needs: tuple[type[Fact], ...] = (), uses: tuple[type[Fact], ...] = ()
) -> Callable[[Callable[[Facts], Iterable[Fact]]], Deduction]:
    """Make the decorated function of `Facts` a deduction."""

    def build(run: Callable[[Facts], Iterable[Fact]]) -> Deduction:
        return Deduction(run.__name__, needs, uses, tells, run)

    return build
