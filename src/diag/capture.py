"""A capture: what one command, file, measurement or paste gave, as text with the circumstances of its taking.

A capture is a handle. Its lines are streamed from where they lie (memory, disk, an archive member); only what a probe
or a rule looks at becomes a string. A failure is a capture, too: `rocm-smi` that does not exist is worth knowing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from diag import text
from diag.facts import Origin
from diag.reading import Raw
from diag.text import Block, Line

QUOTE_CAP = 400
"""Characters of a line that a report quotes."""
HELD_CAP = QUOTE_CAP + 8192
"""Characters of a line that evidence holds: the rest is cut behind the exit gate, which sees whole secrets so."""
HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half a character, as JSON may spell it: of a name that is no text there may be one without its other half."""

Kind = Literal["command", "file", "measure", "text", "asked"]


class Body(Protocol):
    """Where the text of a capture lies; each call reads it anew.

    `first` is the number of its first line in the text it comes from.
    """

    first: int

    def blocks(self) -> Iterator[Block]:
        """The text in blocks of whole lines."""

    def block(self, block: Block) -> bytes:
        """The text of one of the blocks once more."""

    def lines(self) -> Iterator[Line]:
        """The lines with their numbers."""

    def shown(self, line: bytes) -> str:
        """A line of a block as its program printed it."""

    def sha256(self) -> str:
        """Digest of the text in UTF-8 and a line feed."""


class Held:
    """A body in memory, possibly a part of a longer text whose line numbers it keeps."""

    def __init__(self, content: str, first: int = 1) -> None:
        self.content, self.first = content, first

    def blocks(self) -> Iterator[Block]:
        """The text in memory."""
        at = 0
        for piece in text.blocks(self.content, text.BLOCK):
            yield Block(at, len(piece), piece.encode("utf-8", "surrogatepass"))
            at += len(piece)

    def block(self, block: Block) -> bytes:
        """The text of a block."""
        return self.content[block.at : block.at + block.size].encode("utf-8", "surrogatepass")

    def shown(self, line: bytes) -> str:
        """The line: a text in memory was cleaned before."""
        return line.decode("utf-8", "surrogatepass")

    def sha256(self) -> str:
        """Digest of the text."""
        return hashlib.sha256(f"{self.content}\n".encode("utf-8", "surrogatepass")).hexdigest()

    def lines(self) -> Iterator[Line]:
        """The lines in memory."""
        return text.split(self.content, self.first)


class InFile:
    """A body in a file of UTF-8, read anew each time and never held; `opened` opens it for as long as it is read."""

    first = 1

    def __init__(self, opened: Callable[[], AbstractContextManager[Raw]]) -> None:
        self.opened = opened

    def blocks(self) -> Iterator[Block]:
        """The file, block by block."""
        with self.opened() as file:
            yield from text.read(file)

    def block(self, block: Block) -> bytes:
        """The text of a block."""
        with self.opened() as file:
            return text.reread(file, block)

    def sha256(self) -> str:
        """Digest of the text."""
        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block.text)
        digest.update(b"\n")
        return digest.hexdigest()

    def lines(self) -> Iterator[Line]:
        """The lines of the file."""
        return text.lines(self.blocks(), text.shown)

    def shown(self, line: bytes) -> str:
        """The line, cleaned."""
        return text.shown(line)


class Bare:
    """A body whose lines are seen through the marks that others put before them."""

    def __init__(self, body: Body) -> None:
        self.body, self.first = body, body.first

    def blocks(self) -> Iterator[Block]:
        """The text with the marks."""
        return self.body.blocks()

    def block(self, block: Block) -> bytes:
        """The text of a block with the marks."""
        return self.body.block(block)

    def lines(self) -> Iterator[Line]:
        """The lines as their program printed them."""
        return (Line(number, text.bare(line)) for number, line in self.body.lines())

    def shown(self, line: bytes) -> str:
        """The line as its program printed it."""
        return text.bare(self.body.shown(line))

    def sha256(self) -> str:
        """Digest of the text with the marks."""
        return self.body.sha256()


class Taking(Struct, frozen=True, kw_only=True):
    """How a text was taken; `exit_code` None means that the command did not end by itself."""

    key: str
    kind: Kind = "command"
    command: str = ""
    exit_code: int | None = None
    error: str = ""
    stderr: str = ""
    seconds: float = 0.0
    taken_at: str = ""
    scope: str = ""


class Capture(Taking, frozen=True, kw_only=True):
    """One text and how it was taken."""

    body: Body = field(default_factory=lambda: Held(""))

    @classmethod
    def of(cls, key: str, body: str | Body, **taking: Any) -> Capture:
        """A capture with its body; a string is held in memory."""
        return cls(key=key, body=Held(body) if isinstance(body, str) else body, **taking)

    @property
    def taking(self) -> Taking:
        """The capture without its body."""
        return Taking(**{name: value for name, value in asdict(self).items() if name != "body"})

    @property
    def failed(self) -> str:
        """Why the text may be missing or cut, empty where nothing is known to have gone wrong."""
        if self.error or self.exit_code in (0, None):
            return self.error
        said = self.stderr.strip().splitlines()
        # What Python and others print below their error is where it happened.
        ending = next((line for line in reversed(said) if "rror: " in line), said[-1] if said else self.tail())
        return f"exit code {self.exit_code}" + (f": {text.cut(ending, QUOTE_CAP)}" if ending else "")

    def lines(self) -> Iterator[Line]:
        """The lines with their numbers."""
        return self.body.lines()

    @property
    def content(self) -> str:
        """The whole text as one string: for texts known to be small."""
        return text.joined(self.lines())

    def tail(self) -> str:
        """The last line that is not blank."""
        last = ""
        for line in self.lines():
            last = line.text.strip() or last
        return last

    def part(self, lines: Iterable[Line]) -> Capture:
        """The capture of some consecutive lines of this one; numbers stay those of the whole."""
        kept = list(lines)
        return replace(self, body=Held(text.joined(kept), kept[0].number if kept else 1))

    def bare(self) -> Capture:
        """This capture without the marks of a quotation or a compose tool; numbers stay."""
        return replace(self, body=Bare(self.body))

    def origin(self, at: Line | re.Match[str] | None = None) -> Origin:
        """Where something was read: a line, a match in `content`, or the capture as a whole."""
        if at is None:
            return Origin(capture=self.key, quote=self.failed, scope=self.scope)
        line = at if isinstance(at, Line) else self._line_of(at)
        return Origin(capture=self.key, line=line.number, quote=text.cut(line.text.strip(), HELD_CAP), scope=self.scope)

    def said(self, words: str) -> Origin:
        """Words of the text, in another form, as something read at its first line: for a document of one line."""
        return self.origin(Line(self.first, words))

    @property
    def first(self) -> int:
        """The number of the first line."""
        return self.body.first if isinstance(self.body, Held) else 1

    def _line_of(self, match: re.Match[str]) -> Line:
        whole, start = match.string, match.start()
        begin, end = whole.rfind("\n", 0, start) + 1, whole.find("\n", start)
        return Line(self.first + whole.count("\n", 0, start), whole[begin : end if end >= 0 else len(whole)])

    def document(self, schema: str) -> dict[str, Any] | None:
        """The JSON document of a measuring child with this schema tag, or None where the text does not hold one."""
        content = self.content
        start = content.rfind("{", 0, max(content.find(f'"{schema}"'), 0))
        try:
            found, _ = json.JSONDecoder().raw_decode(content, start) if start >= 0 else (None, 0)
        except (ValueError, RecursionError):
            return None
        if found is not None and HALF.search(content):
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        return found if isinstance(found, dict) and found.get("schema") == schema else None

    def sha256(self) -> str:
        """Digest of the text, line feeds between its lines."""
        return self.body.sha256()
