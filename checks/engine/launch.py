"""Commands that start an engine, as people type and paste them: what a shell would run, and in which container.

Reads prompts, continuations (also broken ones), quotes, variables, wrappers and `docker run`. The words of a command
are kept; what they mean to the engine is deduced from data about its flags. Cannot know what a script does that is
called by name, nor whether a line was ever run. A line that opens with `#` is taken for a comment where another command
stands beside it, else for the prompt of root.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise

from diag.api import (
    Capture,
    Container,
    Engine,
    Fact,
    LaunchArguments,
    LaunchCommand,
    Line,
    Origin,
    Recognise,
    expression,
    probe,
    replace,
)

LAUNCH = expression(
    r"(?<![\w.-])(?P<program>vllm|sglang)\s{1,64}(?:serve|bench|launch|run-batch)(?![\w.:,-])"
    r"|-m\s{1,64}(?P<module>vllm|sglang)(?:\.entrypoints\.(?:openai\.)?(?:api_server|run_batch)|\.launch_server"
    r"|\.bench_\w{1,40}|_router(?:\.launch_\w{1,40})?)(?![\w.])"
)
RUNS = expression(r"(?<![\w-])(?:docker|podman|nerdctl|kubectl)\s{1,64}(?:container\s)?run(?=\s)")
FIRST = expression(
    r"(?:.*/)?(?:vllm|sglang|python[\d.]*|docker|podman|nerdctl|kubectl|sudo|nohup|env|exec|time|timeout|numactl|taskset"
    r"|nice|opentelemetry-instrument|stdbuf|setsid|uv|uvx|poetry|pdm|pixi|conda|micromamba|srun|mpirun|torchrun|accelerate|ray|nsys|ncu|rocprof\w*"
    r"|bash|sh|zsh|ssh|tmux|screen|strace|gdb|start|call|export|[A-Za-z_]\w*=.*)",
    re.DOTALL,
)
"""Words that a command begins with which starts an engine: its programs, and those that start others."""
LABEL = expression(
    r"(?i)(?:[\w '()/-]{0,40}\b(?:command|cmd|script|launch|start|run|server|cli)[\w '()-]{0,20}(?::\s+|\uff1a\s*)"
    r"|\w{0,12}(?:\u547d\u4ee4|\u811a\u672c|\u542f\u52a8)\w{0,6}\s?[:\uff1a]\s*|ExecStart\s?=\s*)(?=[\w./$`'\"])"
)
PROMPT = expression(
    r"\s*(?:\d{1,3}[.)]\s+|[-*\u2022]\s+|\+{1,3}\s+)?(?:\([\w. -]{1,64}\)\s*)*"
    r"(?:\[?[\w.-]{1,64}@[\w.-]{1,64}[^\]$#>\s]{0,200}(?:\s[^\]$#>]{0,200})?\]?\s?[$#]\s*|(?P<hash>#)\s+"
    r"|[$\u276f\u279c>%]\s+|PS [^>]{0,200}>\s*|[A-Z]:\\[^>]{0,200}>\s*)?"
)
LISTED = expression(
    r"\s*[\w+.-]{1,32}\s+\d{1,9}\s+(?:[\d.]{1,9}\s+){2}(?:\d{1,12}\s+){2}\S{1,12}\s+\S{1,8}\s+\S{1,8}\s+[\d:.-]{4,12}\s+"
    r"|\s*[\w+.-]{1,32}\s+\d{1,9}\s+\d{1,9}\s+\d{1,3}\s+\S{1,8}\s+\S{1,12}\s+[\d:-]{5,14}\s+"
)
"""What `ps aux` and `ps -ef` put before a command."""
TYPED = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\uff0d": "-"}
    | dict.fromkeys("\u00a0\u202f\u3000\t", " ")
)
"""What a chat program or a word processor made of the characters that were typed."""
DASHES = expression(r"(?<!\S)[\u2013\u2014]-?(?=[A-Za-z])")
FLAG = expression(r"\s*--?[A-Za-z]")
CONTINUED = expression(r"(?<!\S)(?:\\+|\^|`)\s*$|\\\s*$")
FLATTENED = expression(r"(?<=\s)\\\s+(?=\S)")
MATTERS = expression(r"vllm|sglang|run\s|[=\\^`]")
SET = expression(r"\s*(?:Environment=|set (?=\w+=)|(?P<power>\$env:)(?=\w))", re.IGNORECASE)
YAML_KEY = expression(r"(\s*(?:- +)?)(?:command|args|entrypoint)\s*:(?:\s|$)")
PIECE = expression(
    r"""(?P<blank>\s+)|(?P<comment>(?<!\S)\#[^\n]*)|'(?P<single>[^']*)'|"(?P<double>[^"\\]*(?:\\.[^"\\]*)*)\""""
    r"""|\\(?P<escaped>.)|(?P<redirect>(?:(?:(?<!\S)\d)?>{1,2}&?|&>{1,2}|<(?![\w./ -]{1,64}>))\s*[^\s;&|<>()]*)"""
    r"""|(?P<end>[;&|()]+)|(?P<plain>\$\([^()]*\)|\$\{[^{}]*\}|<[\w./ -]{1,64}>|[^\s'"\\;&|<>()$]+|.)""",
    re.DOTALL,
)
ESCAPED = expression(r"\\([\"\\$`\n])")
QUOTES = expression(r"\\.|(?<=\w)'(?=\w)|['\"]|(?<!\S)#")
VARIABLE = expression(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
ASSIGNED = expression(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
LINES_CAP, VALUE_CAP, LENGTH_CAP = 400, 4096, 2**17
RUNTIMES = ("docker", "podman", "nerdctl", "kubectl")
SWITCHES = expression(
    r"--(?:detach|help|init|interactive|no-healthcheck|oom-kill-disable|privileged|publish-all|quiet|read-only|replace|rm"
    r"|stdin|tty|command)|-[ditPq]+"
)
"""Options of `docker run` that take no value."""
NOWHERE, VOLUMES = Origin(capture=""), ("v", "volume")
SIZE = expression(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?([bkmgt]?)(?:i?b)?", re.IGNORECASE)

LITERALS = (
    *("vllm serve", "vllm bench", "vllm run-batch", "vllm.entrypoints", "sglang serve", "sglang.launch_server"),
    *("sglang.bench_", "sglang_router", "docker run", "podman run", "nerdctl run", "kubectl run", "vllm/vllm-openai"),
    *("export ", "$env:", "set VLLM", "Environment=", " --", "\t--", "\u2014", " -tp ", " -pp ", " -dp ", " \\", "}'"),
    *("Qwen/", "meta-llama/", "deepseek-ai/", "mistralai/", "zai-org/", "--dtype", "--max-", "--model", "--port"),
    *("--host", "--served", "--tensor", "--gpu-mem", "--mem-frac", "--enable", "--trust", "command:", "args:"),
)


@probe(
    "launch",
    # What the engine takes of a command is deduced: whoever misses the arguments is told that no command was seen.
    tells=(LaunchCommand, LaunchArguments, Engine, Container),
    recognise=Recognise(
        literals=LITERALS,
        pattern=rf"{LAUNCH.pattern.replace('?P<', '?P<_')}|{RUNS.pattern}|vllm/vllm-openai|\s\\\s*$|^[^#]*\}}'"
        r"|^\W*(?:export|set|Environment=|\$env:)\W*[A-Za-z_]\w*\s?=|^\s*(?:--?|\u2014)[A-Za-z]|^\s+[\w.-]+/[\w.-]+\s*$"
        r"|^\s+(?:\S{1,200}\s+){1,3}--?[a-z]"
        rf"|^{YAML_KEY.pattern}",
        each=True,
        lines=40,
    ),
)
def launch(capture: Capture) -> Iterator[Fact]:
    """Each command that starts an engine, and the container it is started in."""
    found = list(_found(capture))
    seen = set()
    for told in [told for hashed, told in found if not hashed] or [told for _, told in found]:
        if (same := repr([one.told() for one in told])) not in seen:
            seen.add(same)
            yield from told


def _found(capture: Capture) -> Iterator[tuple[bool, list[Fact]]]:
    """What each command tells, and whether it stands behind `#`."""
    shell, asked = Shell(), capture.kind == "asked"
    for typed in _typed(list(capture.lines())):
        commands, whole = _commands(typed.text) if len(typed.text) <= LENGTH_CAP else ([], False)
        if asked and not whole:
            return
        for start, words in commands:
            words = shell.run(words)
            if not words or not (asked or FIRST.fullmatch(words[0])):
                continue
            command, container = shell.launched(words)
            if command and not (asked or _meant(command.words)):
                continue
            origin, told = capture.origin(typed.line_at(start)), list[Fact]()
            if command:
                told.append(Engine(origin=origin, name=command.engine, role="running" if typed.running else "planned"))
            told += [replace(one, origin=origin) for one in (command, container) if one]
            if told:
                yield typed.hashed, told


@dataclass
class Typed:
    """What was typed as one: its parts, a line each, without prompt and continuation."""

    parts: list[str]
    lines: list[Line]
    hashed: bool = False
    running: bool = False

    @property
    def text(self) -> str:
        """The parts as one text; of a listing of processes, in which quotes are lost, each word is quoted."""
        whole = "\n".join(CONTINUED.sub("", part) for part in self.parts)
        return " ".join("'" + word.replace("'", "") + "'" for word in whole.split()) if self.running else whole

    def line_at(self, offset: int) -> Line:
        """The line of a place in the text."""
        return self.lines[min(bisect_right(self._ends, offset), len(self.lines) - 1)]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(len(CONTINUED.sub("", part)) + 1 for part in self.parts))


def _typed(lines: Sequence[Line]) -> Iterator[Typed]:
    """What was typed, command by command; what stands under a key of a manifest is not."""
    place, column = 0, -1
    while place < len(lines):
        text = lines[place].text
        indent = len(text) - len(text.lstrip())
        if column >= 0 and (not text.strip() or indent > column or (indent == column and text.lstrip()[:2] == "- ")):
            place += 1
        elif key := YAML_KEY.match(text):
            place, column = place + 1, len(key[1])
        else:
            column = -1
            for typed in _begun(text, lines[place]) if MATTERS.search(text) else ():
                place = _continued(typed, lines, place) if typed.parts[0] else place
                yield typed
            place += 1


def _begun(text: str, line: Line) -> Iterator[Typed]:
    """The commands that begin on a line: behind a prompt, a label, or what `ps` prints; or each between backticks."""
    text = _as_typed(text)
    quoted = [part for part in re.split(r"`+", text)[1::2] if LAUNCH.search(part) or RUNS.search(part)]
    for part in quoted:
        yield Typed([part], [line])
    if not quoted:
        listed = LISTED.match(text) if LAUNCH.search(text) else None
        prompt = None if listed else PROMPT.match(text)
        found = listed or prompt
        rest = text[found.end() :] if found else text
        label = LABEL.match(rest)
        yield Typed([rest[label.end() :] if label else rest], [line], bool(prompt and prompt["hash"]), bool(listed))


def _as_typed(text: str) -> str:
    """A line without what others made of it, and settings of other shells in the form of one."""
    text = FLATTENED.sub(" ", DASHES.sub("--", text.translate(TYPED)))
    if found := SET.match(text):
        text = "export " + (
            re.sub(r"\s*=\s*", "=", text[found.end() :], count=1) if found["power"] else text[found.end() :]
        )
    return text


def _continued(typed: Typed, lines: Sequence[Line], place: int) -> int:
    """Take in the lines that continue what was typed; the number of the last one."""
    quote = _quote(typed.parts[0], "")
    started = bool(LAUNCH.search(typed.parts[0]) or RUNS.search(typed.parts[0]))
    last, kept = place, 0 if quote else 1
    while place + 1 < len(lines) and len(typed.parts) < LINES_CAP and not typed.running:
        text = _as_typed(lines[place + 1].text)
        ended = not CONTINUED.search(typed.parts[-1]) and not (started and FLAG.match(text))
        if not text.strip() or (not started or "```" in text if quote else ended):
            break
        place += 1
        if quote or not text.lstrip().startswith("#"):
            quote, started = _quote(text, quote), started or bool(LAUNCH.search(text))
            typed.parts.append(text)
            typed.lines.append(lines[place])
            last, kept = (last, kept) if quote else (place, len(typed.parts))
    # A quote that nothing closes is an apostrophe, or cut: then only what stands before it was typed as one.
    if quote:
        del typed.parts[max(kept, 1) :], typed.lines[max(kept, 1) :]
    return last


def _quote(text: str, quote: str) -> str:
    """The quote that is open at the end of a line."""
    for found in QUOTES.finditer(text):
        if quote:
            quote = "" if found[0] == quote else quote
        elif found[0] == "#":
            return ""
        elif found[0] in ("'", '"') and not (found[0] == "'" and text[found.start() - 1 : found.start()].isalnum()):
            quote = found[0]
    return quote


def _commands(text: str) -> tuple[list[tuple[int, list[str]]], bool]:
    """The commands of a text, each with its place and words; and whether all quotes are closed."""
    commands: list[tuple[int, list[str]]] = [(0, [])]
    word: str | None = None
    for found in PIECE.finditer(text):
        kind, words = found.lastgroup or "", commands[-1][1]
        if kind in ("blank", "comment", "redirect", "end"):
            words += [] if word is None else [word]
            word = None
            if kind == "end":
                commands.append((found.end(), []))
            continue
        if found[0] in ("'", '"') and not text[found.start() - 1 : found.start()].isalnum():
            return commands, False
        if word is None and not words:
            commands[-1] = (found.start(), words)
        word = (word or "") + _meaning(found, kind)
    commands[-1][1].extend([] if word is None else [word])
    return commands, True


def _meaning(found: re.Match[str], kind: str) -> str:
    meant = ESCAPED.sub(r"\1", found[kind]) if kind == "double" else found[kind]
    return " ".join(map(str.strip, meant.split("\n"))) if "\n" in meant else meant


@dataclass
class Shell:
    """The variables that were set so far, and those of them that programs see."""

    variables: dict[str, str] = field(default_factory=dict)
    exported: dict[str, str] = field(default_factory=dict)

    def run(self, words: list[str]) -> list[str]:
        """The words with the values of variables; words that only set some are taken note of."""
        words = [VARIABLE.sub(self._value, word) if "$" in word else word for word in words]
        exports = words[:1] == ["export"]
        found = [ASSIGNED.fullmatch(word) for word in words[exports:]]
        if not all(found):
            return words
        told = {one[1]: one[2] for one in found if one and len(one[2]) <= VALUE_CAP}
        self.variables.update(told)
        if exports:
            self.exported.update(told)
        return []

    def _value(self, found: re.Match[str]) -> str:
        return self.variables.get(found[1] or found[2], found[0])

    def launched(self, words: list[str]) -> tuple[LaunchCommand | None, Container | None]:
        """The command that starts an engine, and the container it is started in."""
        place = next((at for at, word in enumerate(words) if word.rpartition("/")[2] in RUNTIMES), len(words))
        if "run" not in words[place + 1 : place + 3]:
            command = _command(words, "")
            told = tuple(f"{name}={value}" for name, value in self.exported.items())
            return (replace(command, environment=told) if command else None), None
        runtime, ran = words[place].rpartition("/")[2], _ran(words[words.index("run", place) + 1 :])
        command = _command(ran.words, ran.image)
        if not command and not _engine_of(ran.image):
            return None, None
        told = tuple(value for name, value in ran.options if name in ("e", "env") and "=" in value)
        return (replace(command, environment=told) if command else None), ran.container(runtime)


def _command(words: Sequence[str], image: str) -> LaunchCommand | None:
    """The command that words make: what an image that serves is given are the server's arguments."""
    engine = _engine_of(image)
    found = LAUNCH.search(" ".join(words))
    if not found and words and engine:
        serves = image.rpartition("/")[2].startswith("vllm-openai") and re.fullmatch(r"[\w.-]+/[\w.-]+", words[0])
        if words[0] == "serve":
            words = (engine, *words)
        elif serves or (words[0].startswith("-") and not words[0].startswith(("-c", "-lc"))):
            words = (engine, "serve", *words)
        found = LAUNCH.search(" ".join(words))
    if not found or any(re.match(r"-h$|--help(?:=|$)", word) for word in words):
        return None
    name = found["program"] or found["module"]
    return LaunchCommand(origin=NOWHERE, engine=name, words=tuple(words), image=image)


def _engine_of(image: str) -> str:
    return next((name for name in ("vllm", "sglang") if name in image), "")


def _meant(words: Sequence[str]) -> bool:
    """Whether words are a command, not prose about one: at most a model stands before the first flag."""
    for place, (word, following) in enumerate(pairwise(words)):
        if LAUNCH.fullmatch(f"{word.rpartition('/')[2]} {following}"):
            rest = words[place + 2 + (following == "bench") :]
            before = next((count for count, one in enumerate(rest) if FLAG.match(one)), len(rest))
            named = bool(rest) and (before < len(rest) or bool(re.search(r"[/\d$<~.{]", rest[0])))
            return before <= 1 and named
    return True


@dataclass(frozen=True)
class Ran:
    """What a container runtime was asked to run: its own options, the image, and the words of the container."""

    options: tuple[tuple[str, str], ...]
    image: str
    words: tuple[str, ...]

    def container(self, runtime: str) -> Container:
        """The container as it is asked for."""
        named = {name: value.strip("\"'") for name, value in self.options}
        devices = [value for name, value in self.options if name == "device"]
        offered = [value for value in devices if value.startswith("nvidia.com/gpu=")]
        return Container(
            origin=NOWHERE,
            runtime="kubernetes" if runtime == "kubectl" else runtime,
            inside=False,
            name=named.get("name", ""),
            image=self.image,
            privileged=True if named.get("privileged", "false") in ("", "true") else None,
            ipc=named.get("ipc", ""),
            shm_bytes=_bytes(named.get("shm-size", "")),
            devices=tuple(value.partition(":")[0] for value in devices if value not in offered),
            gpus=(named.get("gpus") or next(iter(offered), "")).rpartition("=")[2],
            mounts=tuple(value.split(":")[1] for name, value in self.options if name in VOLUMES and ":" in value),
            groups=tuple(value for name, value in self.options if name == "group-add"),
        )


def _ran(words: Sequence[str]) -> Ran:
    """The parts of what stands after `docker run`."""
    options: list[tuple[str, str]] = []
    # The first word after `kubectl run` is the name of the pod.
    place, bare = int(any(word.startswith("--image=") for word in words) and not words[0].startswith("-")), list[str]()
    while place < len(words) and not bare:
        name, equals, value = words[place].partition("=")
        place += 1
        if words[place - 1] == "--":
            break
        if not name.startswith("-"):
            bare.append(words[place - 1])
        elif not name.startswith("--") and len(name) > 2 and name[1] in "vepuwlh":
            options.append((name[1], words[place - 1][2:].removeprefix("=")))
        elif equals or SWITCHES.fullmatch(name):
            options.append((name.lstrip("-"), value))
        elif place < len(words):
            options.append((name.lstrip("-"), words[place]))
            place += 1
    named = dict(options)
    entry = (named["entrypoint"],) if named.get("entrypoint") else ()
    return Ran(tuple(options), named.get("image") or "".join(bare), (*entry, *words[place:]))


def _bytes(size: str) -> int | None:
    """A size as container runtimes take it."""
    found = SIZE.fullmatch(size)
    return int(float(found[1]) * 1024 ** "bkmgt".index(found[2].lower() or "b")) if found else None
