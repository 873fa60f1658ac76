"""What a launch command means to its engine: subcommand, model, flags by their canonical names.

Knows from `EngineFlag` which flags take a value, so that a model may stand behind a switch, and which names no compared
version of the engine has. Cannot know what the values do, nor what a wrapper script adds.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from diag.api import EngineFlag, Fact, Facts, LaunchArguments, LaunchCommand, at_least, deduction, expression

MODULES = {
    "vllm.entrypoints.openai.api_server": "serve",
    "vllm.entrypoints.api_server": "api_server",
    "vllm.entrypoints.openai.run_batch": "run-batch",
    "sglang.launch_server": "serve",
    "sglang_router.launch_server": "router",
    "sglang_router.launch_router": "router",
    "sglang_router": "router",
}
PROGRAMS = ("vllm", "sglang")
SUBCOMMANDS = ("serve", "bench", "launch", "run-batch")
NESTED = ("bench", "launch")
"""Subcommands that have subcommands of their own."""
ENDS = expression(r"[;&|)]{1,2}|\d?>{1,2}.*|&>{1,2}.*|<")
"""Words that end a command or send its output elsewhere."""
ASSIGNED = expression(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
FLAG = expression(r"--?[A-Za-z]")
SECRET = expression(r"(?i)(?:^|[-_.])(?:api[-_]?key|token|secret|passw(?:or)?d|access[-_]key)$")
SECRET_VARIABLE = expression(r"(?i)(?:api_?key|access_?key|token|secret|passw(?:or)?d|passwd|credentials?)$")
LEVEL = expression(r"-O=?([0-9])")
RELEASE = r"([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(?:\.?(?:post|rc|dev)[0-9]{1,4})?)"
NAMED = expression(rf"(?:vllm|sglang)[-_]?v?{RELEASE}")
TAGGED = expression(rf"v?{RELEASE}")
OWN = expression(r"(?:vllm|vllm-openai|sglang)(?:-(?:rocm|cpu|xpu|dev))?")
"""Images whose tags begin with the version of the engine; those of other products begin with their own."""
JSON_WORDS = 200


@deduction(needs=(LaunchCommand,), uses=(EngineFlag,), tells=(LaunchArguments,))
def launch_arguments(facts: Facts) -> Iterator[Fact]:
    """The arguments of each launch command."""
    rows = facts.all(EngineFlag)
    for command in facts.all(LaunchCommand):
        start = _started(command.words)
        grammar = Grammar.of(rows, command.engine, start.subcommand)
        version = _version(command.image)
        read = grammar.read(_levelled(start.words, version))
        yield LaunchArguments(
            origin=command.origin,
            engine=command.engine,
            subcommand=start.subcommand,
            model=read.model,
            flags=tuple(map(_masked, read.flags)),
            unknown=tuple(dict.fromkeys(read.unknown)),
            environment=_environment(command, start.before),
            image=command.image,
            version=version,
        )


@dataclass(frozen=True)
class Start:
    """Where in a command the engine is named: what it is to do, its own words, and the words before it."""

    subcommand: str
    words: tuple[str, ...]
    before: tuple[str, ...] = ()


def _started(words: tuple[str, ...]) -> Start:
    words = _unfolded(words)
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word == "-m" and (following in MODULES or following.startswith("sglang.bench")):
            subcommand = MODULES.get(following) or following.partition(".")[2]
            return Start(subcommand, _own(words[place + 2 :]), words[:place])
        if word.rpartition("/")[2] in PROGRAMS and following in SUBCOMMANDS:
            nested = following in NESTED and place + 2 < len(words)
            subcommand = f"{following} {words[place + 2]}" if nested else following
            return Start(subcommand, _own(words[place + 2 + nested :]), words[:place])
    return Start("", ())


def _unfolded(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with the script of a `bash -c` in the place of the one word that it is."""
    result: list[str] = []
    for place, word in enumerate(words):
        script = any(one in word for one in PROGRAMS) and len(word.split()) > 1
        if script and not FLAG.match(word) and (not result or FLAG.match(words[place - 1]) or result[0] == "ssh"):
            result += _split(word)
        else:
            result.append(word)
    return tuple(result)


def _split(script: str) -> list[str]:
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return script.split()


def _own(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words up to the end of the command."""
    end = next((place for place, word in enumerate(words) if ENDS.fullmatch(word)), len(words))
    return words[:end]


@dataclass
class Read:
    """What was read of an engine's own words."""

    model: str = ""
    flags: list[tuple[str, str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Grammar:
    """The flags of one engine's command, by each of their names."""

    engine: str
    names: dict[str, EngineFlag]

    @classmethod
    def of(cls, rows: tuple[EngineFlag, ...], engine: str, subcommand: str) -> Grammar:
        """The grammar of a subcommand: the server's flags and its own, which come first."""
        own = next((one for one in ("bench", "router") if subcommand.startswith(one)), "")
        names: dict[str, EngineFlag] = {}
        for command in dict.fromkeys((own, "")):
            for row in rows:
                if (row.engine, row.command) == (engine, command):
                    for name in (row.name, *row.aliases):
                        names.setdefault(name, row)
        return cls(engine, names)

    def read(self, words: tuple[str, ...]) -> Read:
        """The model, the flags with their values, and the flags that are not known."""
        read, positional, place = Read(), list[str](), 0
        meant: dict[str, tuple[str, EngineFlag | None, bool]] = {}
        while place < len(words):
            word = words[place]
            place += 1
            if not FLAG.match(word):
                positional += [word] if word.strip("-.\u2026") else []
                continue
            written, has_value, value = word.partition("=")
            if written not in meant:
                meant[written] = self.known(written)
            name, row, off = meant[written]
            if not has_value and not off:
                taken = _taken(row, words, place)
                value, place = " ".join(words[place : place + taken]), place + taken
            read.flags.append((name, "false" if off else value))
            read.unknown += [name] if row is None and self.names else []
        asked = dict(read.flags)
        read.model = next(filter(None, (*positional, asked.get("model"), asked.get("model-path"))), None) or ""
        return read

    def known(self, written: str) -> tuple[str, EngineFlag | None, bool]:
        """The canonical name of a flag as it is written, its row, and whether it is switched off."""
        head, dot, rest = written.lstrip("-").partition(".")
        head, rest = head.replace("_", "-"), f"{dot}{rest}"
        row = self.names.get(head) or self.names.get(head.removeprefix("router-"))
        if row:
            return f"{row.name}{rest}", row, False
        negated = next(filter(None, map(self.names.get, _opposites(head))), None)
        if negated and negated.negatable:
            return negated.name, negated, True
        return self.abbreviated(head, rest)

    def abbreviated(self, head: str, rest: str) -> tuple[str, EngineFlag | None, bool]:
        """The flag that alone begins so, as argparse takes it; of several, the name stays as it is."""
        meant = {row.name: row for name, row in self.names.items() if len(name) > 2 and name.startswith(head)}
        if len(meant) == 1:
            row = next(iter(meant.values()))
            return f"{row.name}{rest}", row, False
        return f"{head}{rest}", next(iter(meant.values()), None), False


def _opposites(head: str) -> Iterator[str]:
    """What a flag may be that this one switches off."""
    for start, other in (("no-", ""), ("disable-", "enable-"), ("enable-", "disable-")):
        if head.startswith(start):
            yield other + head[len(start) :]


def _taken(row: EngineFlag | None, words: tuple[str, ...], place: int) -> int:
    """How many of the words that follow a flag are its value."""
    end = place
    while end < len(words) and not FLAG.match(words[end]):
        end += 1
    following = end - place
    if row and row.takes == "many":
        return following
    if row and row.takes == "none":
        return int(words[place : place + 1] in (("true",), ("false",), ("True",), ("False",)))
    return _closed(words[place : place + min(following, JSON_WORDS)]) if following else 0


def _closed(words: tuple[str, ...]) -> int:
    """One word, or as many as a document takes whose quotes a listing of processes has lost."""
    depth = 0
    for count, word in enumerate(words, 1):
        depth += word.count("{") - word.count("}")
        if not words[0].startswith("{") or depth <= 0:
            return count
    return 1


def _levelled(words: tuple[str, ...], version: str) -> tuple[str, ...]:
    """The words with `-O3`, which was a field of the compilation's configuration before it was a flag."""
    name = "--optimization-level" if not version or at_least(version, "0.12") else "--compilation-config"
    result: list[str] = []
    for word in words:
        if result and result[-1] == "-O" and word.isdecimal():
            result[-1] = f"{name}={word}"
        else:
            found = LEVEL.fullmatch(word)
            result.append(f"{name}={found[1]}" if found else word)
    return tuple(result)


def _masked(pair: tuple[str, str], secret: re.Pattern[str] = SECRET) -> tuple[str, str]:
    name, value = pair
    return (name, "***") if value and secret.search(name) else pair


def _environment(command: LaunchCommand, before: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The variables that are set outside of the words and before the program, the last value of each."""
    found = (ASSIGNED.fullmatch(word) for word in (*command.environment, *before))
    told = {one[1]: one[2] for one in found if one}
    return tuple(_masked(pair, SECRET_VARIABLE) for pair in told.items())


def _version(image: str) -> str:
    """The engine's version where the name of an image tells it."""
    name, _, tag = image.rpartition("/")[2].partition(":")
    found = NAMED.search(tag) or (OWN.fullmatch(name) and TAGGED.match(tag))
    return found[1] if found else ""
