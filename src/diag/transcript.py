"""Shell transcripts: what was typed at a prompt, on which host, and what was printed after it.

A prompt alone is weak evidence (`# ` opens a heading, too), so it counts only for the commands that some probe runs,
and as a border between machines only where it names a host.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from diag.capture import Capture
from diag.probe import Probe
from diag.scan import Span
from diag.text import Line

PROMPT = re.compile(
    r"^\s*(?:\([\w.\-]+\)\s*)?"
    r"(?:\[?(?P<user><[\w\-]+>|[\w.\-]+)@(?P<host><[\w\-]+>|[\w.\-]+)(?:[:\s][^\]$#]*)?\]?\s*)?[$#❯]\s+(?P<command>\S.*)$"
)
"""A shell prompt with what was typed: `$ x`, `user@host:~$ x`, `[root@host ~]# x`, `(base) user@host:~$ x`."""
SIGNS = frozenset({"$ ", "# ", "❯ "})
"""The literals one of which every prompt holds."""
REFUSAL = re.compile(
    r"command not found|^Command '[^']+' not found|: not found|No such file or directory"
    r"|is not recognized as an internal or external command"
)
"""What a shell says of a program that is not there."""
ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
OUTPUT_LINES = 20_000


class Prompt(NamedTuple):
    """A prompt: its line, the host it names (or nothing), and the words of the first command typed at it."""

    line: int
    host: str
    words: tuple[str, ...]


def prompts(hits: Mapping[str, Iterable[Line]]) -> list[Prompt]:
    """The prompts among the lines that hold one of the signs."""
    lines = {line for sign in SIGNS for line in hits.get(sign, ())}
    matches = ((line.number, PROMPT.match(line.text)) for line in sorted(lines))
    return [Prompt(number, match["host"] or "", _words(match["command"])) for number, match in matches if match]


def _words(command: str) -> tuple[str, ...]:
    """The words of the first command in a line, without variables and `sudo` before it."""
    words = re.split(r"[;|&>]", command)[0].split()
    while words and (words[0] == "sudo" or ASSIGNED.match(words[0])):
        words = words[1:]
    return tuple(words)


def typed(asked: Sequence[Prompt], probes: Iterable[Probe]) -> Iterator[tuple[Span, Probe]]:
    """What was printed after each typed command that some probe would have run."""
    runnable = [probe for probe in probes if probe.command or probe.path]
    ends = [*(prompt.line - 1 for prompt in asked[1:]), None]
    for prompt, end in zip(asked, ends, strict=False):
        last = min(end or prompt.line + OUTPUT_LINES, prompt.line + OUTPUT_LINES)
        if last > prompt.line and (probe := _meant(runnable, prompt.words)):
            yield Span(prompt.line + 1, last), probe


def _meant(probes: Sequence[Probe], words: tuple[str, ...]) -> Probe | None:
    """The probe that would have run this command: of those with its program, the one that shares most words."""
    program = words[0].rpartition("/")[2] if words else ""
    if program == "cat" and len(words) == 2:
        return next((probe for probe in probes if probe.path == words[1]), None)
    same = [probe for probe in probes if probe.command[:1] == (program,)]
    return max(same, key=lambda probe: len(set(probe.command) & set(words)), default=None)


def output(part: Capture, probe: Probe) -> Capture:
    """What a transcript shows of a command; a refusal that names it, or the file asked for, is its failure."""
    first = next((line.text.strip() for line in part.lines() if line.text.strip()), "")
    asked = probe.command[0] if probe.command else probe.path
    return replace(part, error=f"FileNotFoundError: {first}") if asked in first and REFUSAL.search(first) else part


def host_before(named: Sequence[Prompt], line: int) -> str:
    """The host that the last of the prompts that name one tells at or before a line, empty where none does."""
    place = bisect_right(named, line, key=lambda prompt: prompt.line)
    return named[place - 1].host if place else ""
