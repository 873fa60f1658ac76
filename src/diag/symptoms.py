"""What a symptom is: a line that matches an expression, and what must and must not stand near that line.

Expressions are RE2's, whose time is linear in the text whatever stands in it. Each must hold a literal of its own: the
one scan of a text looks for those, and an expression only ever sees lines that hold its literal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Protocol

from msgspec import Meta, Struct

LITERAL_LEAST = 5
"""Characters of the shortest literal that is worth looking for."""
LINE_CAP = 4_096
"""Characters of a line that an expression sees, around its literal."""
ESCAPED = re.compile(r'&(?:#\w{2,6}|lt|gt|amp|quot|apos);|\\"')
"""How a page, or a log of JSON, writes what stands for itself in a line."""
TOKEN = re.compile(
    r"""(?P<plain>[^\\\[({.^$|?*+)"<>&\t]+)"""
    r"""|(?P<escaped>\\[^\w\s"\\<>&])"""
    r"""|(?P<optional>[*?]\??|\{\d{0,4}(?:,\d{0,4})?\}\??)"""
    r"""|(?P<opens>\()|(?P<closes>\))|(?P<or>\|)"""
    r"""|(?P<other>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.)""",
    re.DOTALL,
)
"""What an expression consists of. Quotation marks, angle brackets and the like are written otherwise by JSON and HTML:
a literal that held one would miss the line in a container's log."""


class Match(Protocol):
    """A match of an expression, as `re` and RE2 give it."""

    def group(self, number: int = 0) -> str:
        """The text matched, or that of a group."""

    def groupdict(self) -> dict[str, str | None]:
        """The texts of the named groups."""


class Pattern(Protocol):
    """A compiled expression, as `re` and RE2 give it."""

    def search(self, text: str) -> Match | None:
        """The first match in a line."""


class Ratio(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition on two numbers that the expression names: `of` divided by `to` is below or above a bound."""

    of: str
    to: str
    below: float | None = None
    above: float | None = None

    def holds(self, values: Mapping[str, str]) -> bool:
        """Whether the numbers are told and meet the bound; both are of the same unit."""
        try:
            ratio = float(values[self.of]) / float(values[self.to])
        except (KeyError, ValueError, ZeroDivisionError):
            return False
        return (self.below is None or ratio < self.below) and (self.above is None or ratio > self.above)


class Symptoms(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the text shows: a line that matches one of `any`, and none of `unless`.

    `within` so many lines of it stand all strings of `contains`, one of `contains_any` where any are given, and no line
    that matches one of `none`. `ratio` compares two numbers that the expression names.
    """

    any: Annotated[tuple[str, ...], Meta(min_length=1)]
    unless: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    contains_any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    within: Annotated[int, Meta(ge=0, le=60)] = 12
    ratio: Ratio | None = None

    def check(self) -> None:
        """Raise where an expression is none of RE2's, or holds no literal."""
        for expression in (*self.any, *self.unless, *self.none):
            compiled(expression)
        _ = self.literals

    @property
    def literals(self) -> tuple[str, ...]:
        """The literal of each expression of `any`."""
        return tuple(map(literal, self.any))

    def match(self, expression: str, line: str) -> Match | None:
        """The match of one of the expressions in a line, None where the line is one that does not count."""
        found = search(expression, line)
        return None if found and any(compiled(one).search(line[:LINE_CAP]) for one in self.unless) else found

    def stand(self, near: Sequence[str], values: Mapping[str, str]) -> bool:
        """Whether a line that matched with these values shows the symptom, by the lines near it, its own with them."""
        if self.ratio and not self.ratio.holds(values):
            return False
        held = {one for one in (*self.contains, *self.contains_any) if any(one in line for line in near)}
        if not held.issuperset(self.contains) or (self.contains_any and held.isdisjoint(self.contains_any)):
            return False
        return not any(compiled(one).search(line[:LINE_CAP]) for one in self.none for line in near)


def search(expression: str, line: str) -> Match | None:
    """The first match of an expression in a line, or in what the line is without the escapes of HTML and JSON.

    It is looked for around its literal.
    """
    at = line.find(literal(expression))
    if at < 0:
        return None
    near = _around(line, at)
    match = compiled(expression).search(near)
    if match is None and ESCAPED.search(near):
        from html import unescape  # not above: most texts hold none

        return compiled(expression).search(unescape(near).replace('\\"', '"'))
    return match


def _around(line: str, at: int) -> str:
    return line if len(line) <= LINE_CAP else line[max(0, at - LINE_CAP // 2) : at + LINE_CAP // 2]


@cache
def compiled(expression: str) -> Pattern:
    """An expression of RE2, compiled once."""
    import re2  # not above: a machine without symptoms does without

    quiet = re2.Options()
    quiet.log_errors = False
    pattern: Pattern = re2.compile(expression, quiet)
    return pattern


@cache
def literal(expression: str) -> str:
    """The longest string that every line must hold which the expression matches; none is a `ValueError`."""
    best, run, depth = "", "", 0
    for token in TOKEN.finditer(expression):
        kind, text = token.lastgroup, token[0]
        depth += {"opens": 1, "closes": -1}.get(kind or "", 0)
        if depth:
            best, run = max(best, run, key=len), ""
        elif kind == "plain":
            run += text
        elif kind == "escaped":
            run += text[1]
        elif kind == "or":
            raise ValueError(f"an expression of several is several expressions: {expression}")
        else:
            # A character that may be missing is not of the run before it.
            run = run[:-1] if kind == "optional" else run
            best, run = max(best, run, key=len), ""
    best = max(best, run, key=len)
    if len(best) < LITERAL_LEAST:
        raise ValueError(f"an expression needs a string of {LITERAL_LEAST} characters outside of groups: {expression}")
    return best
