"""One pass over a text for the literals of all probes and all entries, and a second one for the lines around hits.

Literals are searched for all at once (Hyperscan), in blocks of bytes: only lines that hold one become strings, so that
time grows with the text and memory with the hits alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import hyperscan
from msgspec import DecodeError, ValidationError, msgpack

from diag import cache
from diag.capture import Body, Held
from diag.text import LINE_CAP, LINE_PIECES, Block, Line, apart, broken, pieces

HITS_CAP = 5_000
"""Lines kept for one literal: the first ones, since causes come before consequences."""
KEPT_CAP = 32 * 2**20
"""Characters of all lines kept of a text; when there are more, a literal gets but a few lines, and they are cut."""
FEW, CUT = 24, 4_096
"""Lines of a literal, and characters of a line, that are kept of a text when there are many lines."""
WASTED_CAP = 20_000
"""Hits of literals that have all their lines after which the search goes on without them."""
SHORT = 5
"""Characters below which a literal is short: such ones take longer, and are looked for in the beginning alone."""
REJOINED_CAP = 2**18
"""Bytes of the longest text in which broken lines are looked for: what people paste, not what programs write."""
SHORT_CAP = 64 * 2**20
"""Bytes of a text in which short literals are looked for."""
KEY = 16
"""Bytes before a compiled search that tell what it searches for."""


class Span(NamedTuple):
    """Lines from `first` to `last`, both included."""

    first: int
    last: int


class Part(NamedTuple):
    """A block of a text without its characters, and the numbers of its first line and of the line it ends in."""

    block: Block
    first: int
    last: int


class Scanned(NamedTuple):
    """What one pass found: the lines that hold each literal, and the parts of the text.

    `rejoined` are the same for lines that somebody's editor or terminal seems to have broken in two: what holds a
    literal is such a line with the one after it.
    """

    body: Body
    hits: dict[str, list[Line]]
    parts: list[Part]
    rejoined: dict[str, list[Line]]

    @property
    def literals(self) -> set[str]:
        """The literals that were found."""
        return {*self.hits, *self.rejoined}

    def cut(self, spans: Iterable[Span]) -> dict[Span, list[Line]]:
        """The lines of each span that is in the text; spans may overlap, and may end behind the text."""
        waiting = sorted(set(spans), reverse=True)
        opened: list[Span] = []
        found: dict[Span, list[Line]] = {}
        before = 0
        for part in self.parts:
            while waiting and waiting[-1].first <= part.last:
                opened.append(waiting.pop())
            opened = [span for span in opened if span.last >= part.first]
            if opened:
                lines = _Lines(self.body, part, before)
                for span in opened:
                    found.setdefault(span, []).extend(lines.of(span))
            # A part of one line is followed by the rest of it.
            before = before + 1 + part.block.size // LINE_CAP if part.first == part.last else 0
        return {span: lines for span, lines in found.items() if lines}


class _Lines:
    """The lines of a part, each made a string when first asked for; `before` pieces of the first stand earlier."""

    def __init__(self, body: Body, part: Part, before: int) -> None:
        self.raw, self.before = body.block(part.block).split(b"\n"), before
        self.first, self.shown = part.first, body.shown
        self.made: dict[int, list[Line]] = {}

    def of(self, span: Span) -> Iterator[Line]:
        """The lines of a span that are in this part."""
        for place in range(max(0, span.first - self.first), min(len(self.raw), span.last - self.first + 1)):
            if place not in self.made:
                self.made[place] = list(self._pieces(place))
            yield from self.made[place]

    def _pieces(self, place: int) -> Iterator[Line]:
        # Behind the last line feed begins a line of the next part, or the empty one that ends a text.
        if self.raw[place] or place + 1 < len(self.raw):
            most = LINE_PIECES if place else max(0, LINE_PIECES - self.before)
            yield from islice(pieces(self.first + place, self.raw[place], self.shown), most)


class Signatures:
    """Literals that texts are searched for, compiled; `kept` is the file where that is kept, or None."""

    def __init__(self, literals: Iterable[str], kept: Path | None = None) -> None:
        self.literals = tuple(sorted(set(literals), key=lambda one: (len(one) >= SHORT, one)))
        self._short = sum(len(one) < SHORT for one in self.literals)
        self._databases = _kept(self.literals, self._short, kept)

    def find(self, body: Body) -> Scanned:
        """The lines of a text that hold each literal; a literal without a hit has no entry."""
        hits, parts = self._found(body)
        short = sum(part.block.size for part in parts) <= REJOINED_CAP
        return Scanned(body, hits, parts, self._found(_rejoined(body))[0] if short else {})

    def _found(self, body: Body) -> tuple[dict[str, list[Line]], list[Part]]:
        search = _Search(self.literals, self._databases)
        number, parts = body.first, list[Part]()
        for block in body.blocks():
            if block.at > SHORT_CAP:
                search.leave_out(0)
            end = search.block(block.text, number, body.shown)
            parts.append(Part(block._replace(text=b""), number, end))
            number = end
        return {self.literals[id]: lines for id, lines in search.lines.items()}, parts


def _rejoined(body: Body) -> Held:
    """A text of as many lines: those that seem to be broken, each with what follows it, the others empty."""
    lines = dict(reversed([*body.lines()])).values()
    pairs = pairwise((*reversed(lines), ""))
    return Held("\n".join(f"{one} {after.lstrip()}" if broken(one, after) else "" for one, after in pairs), body.first)


@lru_cache(maxsize=8)
def _kept(literals: tuple[str, ...], short: int, path: Path | None) -> list[Any]:
    """The searches for the short literals and the others: those that are kept, if for them and for this processor."""
    named = "\0".join((version("hyperscan"), *literals)).encode("utf-8", "surrogatepass")
    key = hashlib.blake2b(named, digest_size=KEY).digest()
    whole = cache.read(path)
    if whole[:KEY] == key:
        with suppress(hyperscan.HyperscanError, RuntimeError, DecodeError, ValidationError):
            return [_opened(one) for one in msgpack.decode(whole[KEY:], type=list[bytes])]
    made = [_compiled(literals, ids) for ids in (range(short), range(short, len(literals)))]
    cache.write(path, key + msgpack.encode([bytes(hyperscan.dumpb(one)) if one else b"" for one in made]))
    return made


def _opened(compiled: bytes) -> Any:
    if not compiled:
        return None
    database = hyperscan.loadb(compiled, hyperscan.HS_MODE_BLOCK)
    database.scratch = hyperscan.Scratch(database)
    database.scan(b"x", _ignore)
    return database


def _ignore(*event: Any) -> None:
    """Nothing is done about a hit."""


def _compiled(literals: Sequence[str], ids: Iterable[int]) -> Any:
    """The search for the literals of these ids, None where there is none."""
    named = list(ids)
    if not named:
        return None
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    expressions = [literals[id].encode("utf-8", "surrogatepass") for id in named]
    database.compile(expressions=expressions, ids=named, elements=len(named), flags=0, literal=True)
    return database


class _Search:
    """One search through a text; `lines` are those of each literal so far."""

    def __init__(self, literals: Sequence[str], databases: Sequence[Any]) -> None:
        self.literals, self.databases = literals, list(databases)
        self.lines: dict[int, list[Line]] = {}
        self.full: set[int] = set()
        self.wasted = self.held = 0
        self.most, self.cap = HITS_CAP, LINE_CAP

    def block(self, block: bytes, number: int, shown: Callable[[bytes], str]) -> int:
        """Search a block whose first line has this number; the number of the line it ends in."""
        ends: list[tuple[int, int]] = []
        for database in filter(None, self.databases):
            database.scan(block, lambda id, start, end, flags, context: ends.append((end, id)))
        line, behind = Line(0, ""), -1
        counted = 0
        for end, id in sorted(ends):
            lines = self.lines.setdefault(id, [])
            if len(lines) >= self.most:
                self.wasted += 1
                self.full.add(id)
                continue
            if end > behind:
                start, behind = block.rfind(b"\n", 0, end) + 1, block.find(b"\n", end)
                behind = len(block) if behind < 0 else behind
                number, counted = number + block.count(b"\n", counted, start), start
                # Of a longer line than that, another hit is another piece.
                start = apart(block, middle) if (middle := end - self.cap // 2) > start else start
                behind = apart(block, start + self.cap) if start + self.cap < behind else behind
                line = Line(number, shown(block[start:behind]))
                self.held += behind - start
            if not lines or lines[-1] is not line:
                lines.append(line)
        if self.held > KEPT_CAP:
            self.most, self.cap = FEW, CUT
        if self.wasted > WASTED_CAP:
            self._anew()
        return number + block.count(b"\n", counted)

    def leave_out(self, place: int) -> None:
        """Go on without one of the searches."""
        self.databases[place] = None

    def _anew(self) -> None:
        """Go on without the literals that have all their lines."""
        borders = (0, sum(len(one) < SHORT for one in self.literals), len(self.literals))
        for place, (first, end) in enumerate(pairwise(borders)):
            if self.databases[place] and any(first <= id < end for id in self.full):
                left = (id for id in range(first, end) if len(self.lines.get(id, ())) < self.most)
                self.databases[place] = _compiled(self.literals, left)
        self.wasted, self.full = 0, set()
