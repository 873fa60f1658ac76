"""What is about to be started: the launch line that the user asks about.

Reads one shell command: which engine, which model, which flags. Flags are kept as they are written; what they mean to
a version of an engine is knowledge that comes with the engines' own data.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import zip_longest

from diag.api import Capture, Engine, Fact, LaunchArguments, probe

CONTINUED = re.compile(r"\\\r?\n")
MODULES = re.compile(r"^(vllm|sglang)(?:\.|$)")
PROGRAMS = ("vllm", "sglang")
SUBCOMMANDS = ("serve", "bench", "chat", "complete", "run-batch")


@probe("launch", tells=(LaunchArguments, Engine))
def launch(capture: Capture) -> Iterator[Fact]:
    """The engine, the model and the flags of a launch line."""
    text = CONTINUED.sub(" ", capture.content)
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return
    start = _engine(words)
    if start is None:
        return
    engine, rest = start
    positional, flags = _parted(rest)
    named = dict(flags)
    model = named.get("model", named.get("model-path", positional[0] if positional else ""))
    origin = capture.said(text.strip())
    yield Engine(origin=origin, name=engine, role="planned")
    yield LaunchArguments(origin=origin, engine=engine, model=model, flags=tuple(flags))


def _engine(words: list[str]) -> tuple[str, list[str]] | None:
    """The engine that a command starts, and the words after it."""
    named: tuple[str, int] | None = None
    for place, (word, following) in enumerate(zip_longest(words, words[1:], fillvalue=""), 1):
        program = word.rpartition("/")[2]
        if program in PROGRAMS and following in SUBCOMMANDS:
            return program, words[place + 1 :]
        if word == "-m" and (found := MODULES.match(following)):
            return found[1], words[place + 1 :]
        if program in PROGRAMS and named is None:
            named = program, place
    return (named[0], words[named[1] :]) if named else None


def _parted(words: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Positional words, and flags with their values; a flag without a value has an empty one."""
    positional: list[str] = []
    flags: list[tuple[str, str]] = []
    for word in words:
        if word.startswith("-") and not re.match(r"^-\d", word):
            name, _, value = word.lstrip("-").partition("=")
            flags.append((name.replace("_", "-"), value))
        elif flags and not flags[-1][1]:
            flags[-1] = (flags[-1][0], word)
        else:
            positional.append(word)
    return positional, flags
