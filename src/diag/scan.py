"""One pass over a text for the literals of all probes and all entries, and a second one for the lines around hits.

Literals are searched for all at once (Hyperscan), in blocks of bytes: only lines that hold one become strings, so that
time grows with the text and memory with the hits alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import hyperscan

from diag import cache
from diag.capture import Body
from diag.text import LINE_CAP, Line, numbered

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


class Scanned(NamedTuple):
    """What one pass found: the lines that hold each literal, and the number of the first line of each block."""

    body: Body
    hits: dict[str, list[Line]]
    starts: list[int]

    def cut(self, spans: Iterable[Span]) -> Iterator[tuple[Span, list[Line]]]:
        """The lines of each span, in the order of their ends; spans may overlap, and may end behind the text."""
        waiting = sorted(set(spans), reverse=True)
        opened: list[tuple[Span, list[Line]]] = []
        for line in self._lines(lambda last: bool(opened or (waiting and waiting[-1].first <= last))):
            # A line may come in pieces of one number: a span ends with the first line behind it.
            yield from [one for one in opened if one[0].last < line.number]
            opened[:] = [one for one in opened if one[0].last >= line.number]
            while waiting and waiting[-1].first <= line.number:
                opened.append((waiting.pop(), []))
            for _, held in opened:
                held.append(line)
            if not waiting and not opened:
                return
        yield from opened

    def _lines(self, wanted: Callable[[int], bool]) -> Iterator[Line]:
        """The lines of the blocks wanted, each asked for by the number of its last line."""
        for block, first, last in zip(self.body.blocks(), self.starts, self.starts[1:], strict=False):
            if wanted(last):
                yield from numbered([block], self.body.shown, first)


class Signatures:
    """Literals that texts are searched for, compiled; `kept` is the file where that is kept, or None."""

    def __init__(self, literals: Iterable[str], kept: Path | None = None) -> None:
        self.literals = tuple(sorted(set(literals)))
        self._database = _kept(self.literals, kept)

    def find(self, body: Body) -> Scanned:
        """The lines of a text that hold each literal; a literal without a hit has no entry."""
        search = _Search(self.literals, self._database)
        starts = [body.first]
        for block in body.blocks():
            search.block(block, starts[-1], body.shown)
            starts.append(starts[-1] + block.count(b"\n"))
        found = zip(self.literals, search.lines, strict=True)
        return Scanned(body, {literal: lines for literal, lines in found if lines}, starts)


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

    def block(self, block: bytes, number: int, shown: Callable[[bytes], str]) -> None:
        """Search a block whose first line has this number."""
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
