"""One pass over a text for the literals of all probes and all entries, and a second one for the lines around hits.

Neither pass holds more than the hits and their windows, so that a text of any size can be asked. Literals are plain
strings, which no hostile text can slow down; regular expressions come later, on windows alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from diag.text import Line

HITS_CAP = 5_000
"""Hits kept for one literal: the first ones, since causes come before consequences."""
BLOCK, BLOCK_LINES = 2**18, 2**12
"""Characters, and lines, that are searched together."""


class Span(NamedTuple):
    """Lines from `first` to `last`, both included."""

    first: int
    last: int


def find(lines: Iterable[Line], literals: Iterable[str]) -> dict[str, list[Line]]:
    """The lines that hold each literal; a literal without a hit has no entry."""
    wanted = sorted(set(literals))
    found: dict[str, list[Line]] = {}
    for block in _blocks(lines):
        whole = "\n".join(line.text for line in block)
        # A search for one string runs at the speed of memory, which no alternation of many does.
        for literal in (literal for literal in wanted if literal in whole):
            room = HITS_CAP - len(found.setdefault(literal, []))
            found[literal] += islice((line for line in block if literal in line.text), room)
    return {literal: hits for literal, hits in found.items() if hits}


def _blocks(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines in blocks of about so many characters."""
    block: list[Line] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line.text)
        if size > BLOCK or len(block) > BLOCK_LINES:
            yield block
            block, size = [], 0
    yield block


def cut(lines: Iterable[Line], spans: Iterable[Span]) -> Iterator[tuple[Span, list[Line]]]:
    """The lines of each span, in the order of their ends; spans may overlap, and may end behind the text."""
    waiting = sorted(set(spans), reverse=True)
    open_spans: list[tuple[Span, list[Line]]] = []
    for line in lines:
        # A line may come in pieces of one number: a span ends with the first line behind it.
        yield from (one for one in open_spans if one[0].last < line.number)
        open_spans = [one for one in open_spans if one[0].last >= line.number]
        while waiting and waiting[-1].first <= line.number:
            open_spans.append((waiting.pop(), []))
        for _, held in open_spans:
            held.append(line)
        if not waiting and not open_spans:
            return
    yield from open_spans


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans with those that touch or overlap made one."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.first <= result[-1].last + 1:
            result[-1] = Span(result[-1].first, max(result[-1].last, span.last))
        else:
            result.append(span)
    return result
