"""A capture: what one command, file, measurement or paste gave, as text with the circumstances of its taking.

A capture is a handle. Its lines are streamed from where they lie (memory, disk, an archive member); only what a probe
or a rule looks at becomes a string. A failure is a capture, too: `rocm-smi` that does not exist is worth knowing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, PrivateAttr

from diag import text
from diag.facts import FROZEN, Origin
from diag.text import Line

QUOTE_CAP = 400
"""Characters of a line that evidence quotes."""

Kind = Literal["command", "file", "measure", "text", "asked"]


class Body(Protocol):
    """Where the text of a capture lies."""

    def lines(self) -> Iterator[Line]:
        """The lines, numbered as in the text they come from; each call starts anew."""


class Held:
    """A body in memory, possibly a part of a longer text whose line numbers it keeps."""

    def __init__(self, content: str, first: int = 1) -> None:
        self.content, self.first = content, first

    def lines(self) -> Iterator[Line]:
        """The lines in memory."""
        return text.split(self.content, self.first)


class OnDisk:
    """A body in a file, read anew each time and never held."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[Line]:
        """The lines of the file."""
        with self.path.open("rb") as file:
            yield from text.stream(file)


class Capture(BaseModel):
    """One text and how it was taken; `exit_code` None means that it did not end by itself."""

    model_config = FROZEN
    key: str
    kind: Kind = "command"
    command: str = ""
    exit_code: int | None = None
    error: str = ""
    stderr: str = ""
    seconds: float = 0.0
    taken_at: str = ""
    scope: str = ""
    _body: Body = PrivateAttr(default_factory=lambda: Held(""))

    @classmethod
    def of(cls, key: str, body: str | Body, **circumstances: Any) -> Capture:
        """A capture with its body; a string is held in memory."""
        capture = cls(key=key, **circumstances)
        capture._body = Held(body) if isinstance(body, str) else body
        return capture

    @property
    def failed(self) -> str:
        """Why the text may be missing or cut, empty where nothing is known to have gone wrong."""
        if self.error or self.exit_code in (0, None):
            return self.error
        ending = self.stderr.strip().rpartition("\n")[2] or self.tail()
        return f"exit code {self.exit_code}" + (f": {ending[:QUOTE_CAP]}" if ending else "")

    def lines(self) -> Iterator[Line]:
        """The lines with their numbers."""
        return self._body.lines()

    @property
    def content(self) -> str:
        """The whole text as one string: for texts known to be small."""
        return "\n".join(line.text for line in self.lines())

    def tail(self) -> str:
        """The last line that is not blank."""
        last = ""
        for line in self.lines():
            last = line.text.strip() or last
        return last

    def part(self, lines: Iterable[Line]) -> Capture:
        """The capture of some consecutive lines of this one; numbers stay those of the whole."""
        kept = list(lines)
        part = self.model_copy()
        part._body = Held("\n".join(line.text for line in kept), kept[0].number if kept else 1)
        return part

    def origin(self, at: Line | re.Match[str] | None = None) -> Origin:
        """Where something was read: a line, a match in `content`, or the capture as a whole."""
        if at is None:
            return Origin(capture=self.key, quote=self.failed[:QUOTE_CAP], scope=self.scope)
        line = at if isinstance(at, Line) else self._line_of(at)
        return Origin(capture=self.key, line=line.number, quote=line.text.strip()[:QUOTE_CAP], scope=self.scope)

    def _line_of(self, match: re.Match[str]) -> Line:
        whole, start = match.string, match.start()
        begin, end = whole.rfind("\n", 0, start) + 1, whole.find("\n", start)
        first = self._body.first if isinstance(self._body, Held) else 1
        return Line(first + whole.count("\n", 0, start), whole[begin : end if end >= 0 else len(whole)])

    def document(self, schema: str) -> dict[str, Any] | None:
        """The JSON document of a measuring child with this schema tag, or None where the text does not hold one."""
        content = self.content
        start = content.rfind("{", 0, max(content.find(f'"{schema}"'), 0))
        try:
            found, _ = json.JSONDecoder().raw_decode(content, start) if start >= 0 else (None, 0)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) and found.get("schema") == schema else None

    def sha256(self) -> str:
        """Digest of the text, line feeds between its lines."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(line.text.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()
