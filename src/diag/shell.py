"""Commands that somebody will paste into a shell, made of a template and of words that came from elsewhere.

What a text said is one word wherever it is put, whatever it holds: it starts no command, names no file that its place
does not, and opens no expression. Knows the quotation marks and `$(…)` of POSIX shells; does not know what the command
does with its words, nor comments and here-documents. A program in quotes (`python -c "…"`) is another language: only
names and numbers are put there.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from diag.text import in_one_line

FIELD = re.compile(r"\{([\w.]+)\}")
MARK = re.compile(r"\\.|\$\(|[\"'()]", re.DOTALL)
"""What opens and closes a piece of a command; a backslash takes what is behind it along."""
PROGRAM = re.compile(r"\bpython[\d.]* -c ([\"'])(?:(?!\1).)*\Z", re.DOTALL)
"""The beginning of a command that ends inside a program."""
NAME = re.compile(r"[\w.]+")
ALIVE = {'"': re.compile(r'[\\"$`!]'), "'": re.compile("'")}
"""What a shell does not take as it is within these quotation marks."""


class Shell(str):
    """A piece of a command that diag wrote itself, to be read by a shell as it is; foreign words in it are quoted."""

    __slots__ = ()


def spelled(template: str, values: Mapping[str, object]) -> Shell:
    """A command with its `{name}` fields filled, quoted as their places ask for; an unknown field stays as it is."""

    def field(match: re.Match[str]) -> str:
        value, before = values.get(match[1], Shell(match[0])), template[: match.start()]
        if isinstance(value, Shell):
            return str(value)
        word = in_one_line(str(value))
        return match[0] if PROGRAM.search(before) and not NAME.fullmatch(word) else _quoted(word, _mark(before))

    return Shell(FIELD.sub(field, template))


def _quoted(word: str, mark: str) -> str:
    """A word for a place within these quotation marks, or within none."""
    if not mark:
        return shlex.quote(word) if word else ""
    return f"{mark}{shlex.quote(word)}{mark}" if ALIVE[mark].search(word) else word


def _mark(before: str) -> str:
    """The quotation mark that is open behind the beginning of a command, empty where none is."""
    opened = [""]
    for sign in MARK.findall(before):
        if opened[-1] == "'":
            if sign.endswith("'"):
                opened.pop()
        elif sign == ")" == opened[-1] or sign == '"' == opened[-1]:
            opened.pop()
        elif sign == "$(" or (opened[-1] != '"' and sign in ("(", '"', "'")):
            opened.append(")" if sign.endswith("(") else sign)
    return opened[-1].strip(")")
