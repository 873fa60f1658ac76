"""One pass over a text for the literals of all probes and all entries, and a second one for the lines around hits.

Literals are searched for all at once (Hyperscan), in blocks of bytes: only lines that hold one become strings, so that
time grows with the text and memory with the hits alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import hyperscan

from diag import cache
from diag.capture import Body
from diag.text import LINE_CAP, LINE_PIECES, Block, Line, pieces

HITS_CAP = 5_000
"""Lines kept for one literal: the first ones, since causes come before consequences."""
WASTED_CAP = 100_000
"""Hits of literals that have all their lines after which the search goes on without them."""
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
    """What one pass found: the lines that hold each literal, and the parts of the text."""

    body: Body
    hits: dict[str, list[Line]]
    parts: list[Part]

    def cut(self, spans: Iterable[Span]) -> dict[Span, list[Line]]:
        """The lines of each span that is in the text; spans may overlap, and may end behind the text."""
        waiting = sorted(set(spans), reverse=True)
        opened: list[Span] = []
        found: dict[Span, list[Line]] = {}
        for part in self.parts:
            while waiting and waiting[-1].first <= part.last:
                opened.append(waiting.pop())
            opened = [span for span in opened if span.last >= part.first]
            if opened:
                lines = _Lines(self.body, part)
                for span in opened:
                    found.setdefault(span, []).extend(lines.of(span))
        return {span: lines for span, lines in found.items() if lines}


class _Lines:
    """The lines of a part, each made a string when it is first asked for."""

    def __init__(self, body: Body, part: Part) -> None:
        self.raw = body.block(part.block).split(b"\n")
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
            yield from islice(pieces(self.first + place, self.raw[place], self.shown), LINE_PIECES)


class Signatures:
    """Literals that texts are searched for, compiled; `kept` is the file where that is kept, or None."""

    def __init__(self, literals: Iterable[str], kept: Path | None = None) -> None:
        self.literals = tuple(sorted(set(literals)))
        self._database = _kept(self.literals, kept)

    def find(self, body: Body) -> Scanned:
        """The lines of a text that hold each literal; a literal without a hit has no entry."""
        search = _Search(self.literals, self._database)
        number, parts = body.first, list[Part]()
        for block in body.blocks():
            end = search.block(block.text, number, body.shown)
            parts.append(Part(block._replace(text=b""), number, end))
            number = end
        found = zip(self.literals, search.lines, strict=True)
        return Scanned(body, {literal: lines for literal, lines in found if lines}, parts)


def _kept(literals: Sequence[str], path: Path | None) -> Any:
    """The search for these literals: the one that is kept, if it is for them and for this processor."""
    named = "\0".join((version("hyperscan"), *literals)).encode("utf-8", "surrogatepass")
    key = hashlib.blake2b(named, digest_size=KEY).digest()
    whole = cache.read(path)
    if whole[:KEY] == key:
        with suppress(hyperscan.HyperscanError, RuntimeError):
            database = hyperscan.loadb(whole[KEY:], hyperscan.HS_MODE_BLOCK)
            database.scan(b"", _ignore)
            return database
    database = _compiled(literals, range(len(literals)))
    cache.write(path, key + hyperscan.dumpb(database))
    return database


def _ignore(*event: Any) -> None:
    """Nothing is done about a hit."""


def _compiled(literals: Iterable[str], ids: Iterable[int]) -> Any:
    named = list(ids)
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    expressions = [literal.encode("utf-8", "surrogatepass") for literal in literals]
    database.compile(expressions=expressions, ids=named, elements=len(named), flags=0, literal=True)
    return database


class _Search:
    """One search through a text; `lines` are those of each literal so far."""

    def __init__(self, literals: Sequence[str], database: Any) -> None:
        self.literals, self.database = literals, database
        self.lines: list[list[Line]] = [[] for _ in literals]
        self.full: set[int] = set()
        self.left_out: set[int] = set()
        self.wasted = 0

    def block(self, block: bytes, number: int, shown: Callable[[bytes], str]) -> int:
        """Search a block whose first line has this number; the number of the line it ends in."""
        ends: list[tuple[int, int]] = []
        self.database.scan(block, lambda id, start, end, flags, context: ends.append((end, id)))
        line, behind = Line(0, ""), -1
        counted = 0
        for end, id in sorted(ends):
            lines = self.lines[id]
            if len(lines) >= HITS_CAP:
                self.wasted += 1
                self.full.add(id)
                continue
            if end > behind:
                start, behind = block.rfind(b"\n", 0, end) + 1, block.find(b"\n", end)
                behind = len(block) if behind < 0 else behind
                number, counted = number + block.count(b"\n", counted, start), start
                start = max(start, end - LINE_CAP // 2)
                line = Line(number, shown(block[start : min(behind, start + LINE_CAP)]))
                # Of a longer line than that, another hit is another piece.
                behind = min(behind, start + LINE_CAP)
            if not lines or lines[-1] is not line:
                lines.append(line)
        if self.wasted > WASTED_CAP:
            self._leave_out()
        return number + block.count(b"\n", counted)

    def _leave_out(self) -> None:
        """Go on without the literals that have all their lines."""
        self.left_out |= self.full
        left = [id for id in range(len(self.literals)) if id not in self.left_out]
        self.database = _compiled([self.literals[id] for id in left], left) if left else _Nothing()
        self.wasted, self.full = 0, set()


class _Nothing:
    """A search for nothing."""

    def scan(self, block: bytes, handler: Any) -> None:
        """Find nothing."""


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans with those that touch or overlap made one."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.first <= result[-1].last + 1:
            result[-1] = Span(result[-1].first, max(result[-1].last, span.last))
        else:
            result.append(span)
    return result
