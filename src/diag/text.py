"""Text as machines print it and people paste it: bytes in, clean lines out.

Knows byte-order marks, broken UTF-8, ANSI colours and lines without an end. Does not know what a line means.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from diag.reading import Raw

LINE_CAP = 64 * 1024
"""Characters after which a line without an end is handed on in pieces of the same number."""

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""Terminal escape sequences: CSI (colours, cursor), OSC and other strings (titles, links), the two-character ones."""

ANSI_BYTES = re.compile(ANSI.pattern.encode())

CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Characters that no text needs and that hide or turn what stands beside them: control characters but tab, line feed
and carriage return; soft hyphens, zero-width characters, marks of direction, and ends of lines that only some see."""
ORDER = re.compile(r"#(?=#(?:vso)?\[)")
ORDERS = re.compile(rf"^[ \t]*:(?=:)|{ORDER.pattern}", re.MULTILINE)
"""What a runner of a pipeline takes for an order in the output of a program: `::error::`, `##[error]`, `##vso[`."""
HALVES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of characters that stand for no byte of a name."""
TYPESET = {
    "\u00a0": " ",
    "\u2007": " ",
    "\u202f": " ",
    "\u3000": " ",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
}
"""What word processors, chats and web pages make of spaces and quotation marks."""
TYPESET_BYTES = {sign.encode(): plain.encode() for sign, plain in TYPESET.items()}
TYPESET_ANY = re.compile(b"|".join(TYPESET_BYTES))
_TYPESET = str.maketrans(TYPESET)
BLOCK = 2**18
"""Bytes of a block that is read and searched at a time."""
CHARACTER = 4
"""Bytes of the longest character in UTF-8."""
WORDS = 1024
"""Bytes in which the border between two words is looked for."""
LINE_PIECES = 128
"""Pieces after which the rest of a line without an end is passed over: eight million characters."""

MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte-order marks; that of UTF-32 begins like that of UTF-16."""
UNTOLD = 2**13
"""Bytes by which an encoding without a mark is told."""
NO_TEXT = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b"))
"""Bytes of control characters that no terminal is sent."""
FEW = 25
"""Control characters that a text may hold, by mistake or damage, whatever its length."""


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


WHOLE = re.compile(r"(.*)(?:[^!-~]|[\"',;&|(){}\[\]<>])", re.DOTALL)
"""The words of a text that something stands behind."""
APART = re.compile(rb"(?<!\S)(?!-)\S{0,255}[^\s:=]\s+(?=\S)")
"""A word, and the blank behind it, that names nothing of what follows, as `--flag` and `key:` do."""
SPEAKER = re.compile(
    r"^.{0,120}?(?:"
    r"\((?P<process>[A-Za-z]\w{0,40}(?: rank=\d{1,5})?) pid=\d{1,9}[^()]{0,60}\)"
    r"|\[(?P<rank>(?:rank|default)\d{1,5})\]"
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})? (?P<part>(?:[A-Z]{2}\d{1,4} ?){1,5})\]"
    r"|\[\d{1,3},(?P<task>\d{1,5})\]<std(?:out|err)>"
    r"|:(?P<pid>\d{1,9}):\d{1,9} \[\d{1,3}\] "
    r")"
)
"""How engines, torchrun, Ray, Open MPI and NCCL say which process a line is of."""
PREFIX = re.compile(
    r"(?:\s*(?:"
    r"\([A-Za-z][^()]{0,80}\)"
    r"|\[[^\[\]]{0,80}\]:?"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}"
    r"|\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b:?"
    r"|[\w.-]{1,60}:\d{1,9}:\d{1,9}"
    r"|(?:stdout|stderr) [FP]\b"
    r"))+\s+"
)
"""What loggers put before a message: time, level, process, place in the code."""
BEGINNING = re.compile(
    r"""\s*(?:File "|Traceback|at |[\w.]{1,80}(?:Error|Exception|Warning)\b|[-*+#|>$~=^]|\d{1,4}[.):]\s)"""
)
"""How a line begins that does not go on with what the line before it said."""
BROKEN_LEAST = 40
"""Characters of the shortest line that somebody's editor or terminal breaks."""
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
    if line.startswith('{"log":"'):
        line = _logged(line)
    found = MARKS_OF_OTHERS.match(line) if ">" in line[:4] or "|" in line[:160] else None
    return line[found.end() :] if found else line


def speaker(line: str) -> str:
    """The process that a line names as its own, empty where it names none."""
    found = SPEAKER.match(line)
    return next(filter(None, found.groups()), "").strip() if found else ""


def message(line: str) -> str:
    """What a line says, without the time, level, process and place that a logger puts before it."""
    return line[found.end() :] if (found := PREFIX.match(line)) else line


def broken(line: str, after: str) -> bool:
    """Whether a line seems to go on in the one after it."""
    begins = not after.strip() or PREFIX.match(after) or BEGINNING.match(after)
    return len(line) >= BROKEN_LEAST and not begins


def _logged(line: str) -> str:
    """What a container printed, of a line of the log that its runtime keeps as JSON."""
    try:
        return str(json.JSONDecoder().raw_decode(line)[0]["log"]).rstrip("\n").replace("\n", " ")
    except (ValueError, RecursionError):
        return line


def plain(text: str) -> str:
    """The text without terminal escape sequences and control characters; tabs and line ends stay."""
    if not CONTROL.search(text):
        return text
    return CONTROL.sub("", ANSI.sub("", text))


def untypeset(text: str) -> str:
    """The text with spaces and quotation marks as programs print them."""
    return text if text.isascii() else text.translate(_TYPESET)


def in_one_line(text: str) -> str:
    """The text without what hides, turns or ends a line."""
    return " ".join(plain(text).splitlines())


def cut(text: str, most: int) -> str:
    """The beginning of a text, at most so many characters and an ellipsis, that ends between words.

    Half a secret would be recognised as none.
    """
    if len(text) <= most:
        return text
    found = WHOLE.match(text[: most + 1])
    return f"{found[1].rstrip()} …".lstrip() if found else "…"


def inert(text: str) -> str:
    """The text with a blank where a line of it would be an order to the runner of a pipeline."""
    return ORDERS.sub(r"\g<0> ", text)


def printable(name: str) -> str:
    """A name of the file system, or what names one, in one line of characters that can be written anywhere."""
    raw = HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", name).encode("utf-8", "surrogateescape")
    return " ".join(plain(raw.decode("utf-8", "backslashreplace")).split())


def decode(raw: bytes) -> str:
    """The characters of raw bytes as programs print them."""
    return untypeset(characters(raw))


def characters(raw: bytes) -> str:
    """The characters of raw bytes; what is not valid is written as a backslash escape, never raised."""
    mark, encoding = encoding_of(raw)
    return plain(raw[mark:].decode(encoding, "backslashreplace")).replace("\r\n", "\n")


def encoding_of(start: bytes) -> tuple[int, str]:
    """Length of the byte-order mark at the start of a text and the encoding: the one it names, or that is told.

    Without a mark it is UTF-16 where every other byte is mostly zero and none of the others is, else UTF-8.
    """
    for mark, name in MARKS:
        if start.startswith(mark):
            return len(mark), name
    sides = start[:UNTOLD:2], start[1:UNTOLD:2]
    zeros = [side.count(0) * 2 > len(side) for side in sides]
    for place, name in enumerate(("utf-16-be", "utf-16-le")):
        if zeros[place] and not sides[1 - place].count(0):
            return 0, name
    return 0, "utf-8"


def is_binary(start: bytes) -> bool:
    """Whether what begins so is no text: one byte in a hundred is zero, or one in twenty is that of no character."""
    other = len(start) - len(start.translate(None, NO_TEXT))
    unlike = start.count(0) * 100 > len(start) or other > max(FEW, len(start) // 20)
    return unlike and encoding_of(start)[1] == "utf-8"


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


class Block(NamedTuple):
    """A part of a text: where it begins in its source, how long it is there, and its characters as UTF-8, cleaned."""

    at: int
    size: int
    text: bytes


def read(source: Raw) -> Iterator[Block]:
    """A stream of UTF-8 in blocks of whole lines, without terminal sequences; a longer line comes in several."""
    source.seek(0)
    rest = source.read(len(codecs.BOM_UTF8))
    at = len(rest) if rest == codecs.BOM_UTF8 else 0
    rest = rest[at:]
    while piece := source.read(BLOCK):
        block = rest + piece
        end = block.rfind(b"\n") + 1 or len(block)
        yield Block(at, end, _clean(block[:end]))
        at, rest = at + end, block[end:]
    if rest:
        yield Block(at, len(rest), _clean(rest))


def reread(source: Raw, block: Block) -> bytes:
    """The text of a block once more."""
    source.seek(block.at)
    return _clean(source.read(block.size))


def utf8(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """A text of another encoding as UTF-8, piece by piece."""
    decode = codecs.getincrementaldecoder(encoding)("backslashreplace").decode
    for piece in chain(pieces, (None,)):
        if made := decode(piece or b"", final=piece is None):
            yield made.encode("utf-8", "surrogatepass")


def _clean(block: bytes) -> bytes:
    block = ANSI_BYTES.sub(b"", block) if b"\x1b" in block else block
    return block if block.isascii() else TYPESET_ANY.sub(lambda found: TYPESET_BYTES[found[0]], block)


def lines(blocks: Iterable[Block], show: Callable[[bytes], str]) -> Iterator[Line]:
    """The lines of consecutive blocks; a long one in pieces of one number, the last of them left out.

    The last line is empty where the text ends with a line feed, as in an editor.
    """
    number, skipped, rest = 1, 0, b""
    for block in blocks:
        *whole, rest = block.text.split(b"\n")
        for part in whole:
            yield from islice(pieces(number, part, show), max(0, LINE_PIECES - skipped))
            number, skipped = number + 1, 0
        if rest:
            yield from islice(pieces(number, rest, show), max(0, LINE_PIECES - skipped))
            skipped += 1 + len(rest) // LINE_CAP
    if not rest:
        yield Line(number, "")


def pieces(number: int, line: bytes, show: Callable[[bytes], str]) -> Iterator[Line]:
    """A line in pieces that are not too long, mostly one."""
    for at in range(0, len(line) or 1, LINE_CAP):
        yield Line(number, show(line[apart(line, at) : apart(line, at + LINE_CAP)]))


def apart(raw: bytes, at: int) -> int:
    """The place at or shortly before `at` where words begin of which none before tells what they are."""
    if 0 < at < len(raw):
        begin = max(0, at - WORDS)
        ends = [found.end() for found in APART.finditer(raw, begin, at) if found.start() > begin]
        return ends[-1] if ends else between(raw, at)
    return at


def between(raw: bytes, at: int) -> int:
    """The place at or before `at` where a character of UTF-8 begins; `at` itself where none is found."""
    near = range(at, max(-1, at - CHARACTER), -1) if at < len(raw) else ()
    return next((place for place in near if raw[place] & 0xC0 != 0x80), at)


def shown(line: bytes) -> str:
    """A line of bytes as characters, without what hides or turns them."""
    return plain(line.rstrip(b"\r").decode("utf-8", "backslashreplace"))
