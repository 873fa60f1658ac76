"""Text as machines print it and people paste it: bytes in, clean lines out.

Knows byte-order marks, broken UTF-8, ANSI colours and lines without an end. Does not know what a line means.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, cast

LINE_CAP = 64 * 1024
"""Characters after which a line without an end is handed on in pieces of the same number."""

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""Terminal escape sequences: CSI (colours, cursor), OSC and other strings (titles, links), the two-character ones."""

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
"""Characters that no text needs and that hide or turn what stands beside them: control characters but tab, line feed
and carriage return; soft hyphens, zero-width characters and marks of direction."""
LINE_PIECES = 128
"""Pieces after which the rest of a line without an end is passed over: eight million characters."""

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
MARK_BYTES = 4


class Line(NamedTuple):
    """One line of a text: its number, counted from 1, and its characters without the end."""

    number: int
    text: str


MARKS_OF_OTHERS = re.compile(r"(?:\s{0,3}>\s?)*(?:[a-z0-9][\w.\-]{0,63}\s{1,64}\|(?:\s|$))?")
"""What a quotation (`> `) and a compose tool (`web-1  | `) put before each line."""


class _Expression:
    """A regular expression that is compiled when it is first used."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)
        return found


SIGNS = frozenset("*?[")


def matches(name: str, pattern: str) -> bool:
    """Whether a whole name is what a pattern, as of a shell, describes; letters alike in either case."""
    name, pattern = name.lower(), pattern.lower()
    if SIGNS.isdisjoint(pattern):
        return name == pattern
    start = pattern[:-1]
    if pattern.endswith("*") and SIGNS.isdisjoint(start):
        return name.startswith(start)
    return fnmatchcase(name, pattern)


def expression(source: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression that is compiled when it is first used: of all vendors' few are needed on one machine."""
    return cast("re.Pattern[str]", _Expression(source, flags))


def bare(line: str) -> str:
    """The line as its program printed it, without the marks of whoever passed it on."""
    found = MARKS_OF_OTHERS.match(line) if ">" in line[:4] or "|" in line[:160] else None
    return line[found.end() :] if found else line


def plain(text: str) -> str:
    """The text without terminal escape sequences and control characters; tabs and line ends stay."""
    if not CONTROL.search(text):
        return text
    return CONTROL.sub("", ANSI.sub("", text))


def printable(name: str) -> str:
    """A name of the file system in one line of characters that can be written anywhere."""
    raw = name.encode("utf-8", "surrogateescape")
    return plain(" ".join(raw.decode("utf-8", "backslashreplace").split()))


def decode(raw: bytes) -> str:
    """The characters of raw bytes; what is not valid is written as a backslash escape, never raised."""
    mark, encoding = encoding_of(raw[:MARK_BYTES])
    return plain(raw[mark:].decode(encoding, "backslashreplace")).replace("\r\n", "\n")


def encoding_of(start: bytes) -> tuple[int, str]:
    """Length of the byte-order mark at the start of a text and the encoding it names, UTF-8 without one."""
    return next(((len(mark), name) for mark, name in MARKS if start.startswith(mark)), (0, "utf-8"))


def split(text: str, first: int = 1) -> Iterator[Line]:
    """The lines of a text, split at line feeds alone, so that the numbers are those an editor shows."""
    for number, line in enumerate(text.split("\n"), first):
        yield Line(number, line)


def blocks(text: str, size: int) -> Iterator[str]:
    """The text in pieces of whole lines, each of at least so many characters but the last."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + size) + 1 or len(text)
        yield text[at:end]
        at = end


def joined(lines: Iterable[Line]) -> str:
    """The text of consecutive lines; pieces of one line are put together again."""
    parts: list[str] = []
    last = None
    for line in lines:
        if last is not None and line.number != last:
            parts.append("\n")
        parts.append(line.text)
        last = line.number
    return "".join(parts)


def stream(source: io.BufferedReader | io.BufferedRandom) -> Iterator[Line]:
    """The lines of a byte stream, without holding more of it than one bounded line."""
    mark, encoding = encoding_of(source.peek(MARK_BYTES)[:MARK_BYTES])
    source.read(mark)
    if encoding == "utf-8":
        yield from _pieces(lambda cap: source.readline(cap).decode("utf-8", "backslashreplace"))
        return
    wrapper = io.TextIOWrapper(source, encoding, "backslashreplace", newline="\n")
    try:
        yield from _pieces(wrapper.readline)
    finally:
        wrapper.detach()


def _pieces(readline: Callable[[int], str]) -> Iterator[Line]:
    number, whole, pieces = 1, True, 0
    while piece := readline(LINE_CAP):
        whole = piece.endswith("\n")
        if pieces < LINE_PIECES:
            yield Line(number, plain(piece.rstrip("\r\n")))
        number, pieces = (number + 1, 0) if whole else (number, pieces + 1)
    if whole:
        yield Line(number, "")
