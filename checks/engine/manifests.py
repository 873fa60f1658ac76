"""Containers as compose files, manifests of Kubernetes and Dockerfiles describe them, and the engines they start.

Reads YAML as it is pasted, also a part of it: the keys that stand beside each other describe one container. Knows no
anchors and no templates; a value that a variable stands for stays as it is written. What is given by the pod, not by
the container (`hostIPC`, a volume in memory), is not read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from diag.api import (
    Capture,
    Container,
    Engine,
    Fact,
    LaunchArguments,
    LaunchCommand,
    Line,
    Recognise,
    expression,
    probe,
)

STARTS = expression(
    r"(?<![\w.-])(vllm|sglang)\s{1,64}(?:serve|bench|run-batch)(?![\w.:,-])"
    r"|-m\s{1,64}(vllm|sglang)(?:\.entrypoints\.(?:openai\.)?(?:api_server|run_batch)|\.launch_server|_router\.\w{1,40})"
)
ENGINES = ("vllm", "sglang")
KEY = expression(r"(\s*)((?:- +)?)([A-Za-z_][\w.-]{0,63})\s*:(?:\s+(.*))?$")
DOCKERFILE = expression(r"\s*(CMD|ENTRYPOINT)\s+(\[.*)$")
WORDS = ("entrypoint", "command", "args", "CMD", "ENTRYPOINT")
KEPT = frozenset(
    (
        *WORDS,
        *("image", "environment", "env", "ipc", "shm_size", "privileged", "devices", "gpus", "deploy", "resources"),
        *("securityContext", "container_name", "name"),
    )
)
OF_KUBERNETES = frozenset(("args", "env", "envFrom", "volumeMounts", "resources", "imagePullPolicy", "securityContext"))
ITEM = expression(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^,\[\]"'][^,\]]*))\s*,?""")
QUOTED = expression(r"""(["'])(.*)\1""", re.DOTALL)
BLOCK = expression(r"[|>][+-]?\d?")
COMMENT = expression(r"(?<=\s)#\s.*")
NAMED = expression(r"""\s*-?\s*(?:"?name"?)\s*:\s*["']?([\w.]+)""")
VALUE = expression(r"""\s*-?\s*value\s*:\s*(.*)$""")
PAIR = expression(r"""\s*(?:-\s+)?["']?([A-Za-z_]\w*)["']?\s*(?:=|:\s)\s*(.*)$""")
COUNT = expression(r"""(?:count|nvidia\.com/gpu|amd\.com/gpu|huawei\.com/[Aa]scend\w*)["']?\s*:\s*["']?(\w+)""")
IDS = expression(r"""device_ids\s*:\s*\[([^\]]{1,200})\]""")
SIZE = expression(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?([bkmgt]?)(?:i?b)?", re.IGNORECASE)
COLUMNS = 64
"""Columns from the left in which keys are looked for: deeper ones describe no container."""


@probe(
    "launch/manifest",
    tells=(LaunchCommand, LaunchArguments, Engine, Container),
    recognise=Recognise(
        literals=(
            *("image:", "command:", "args:", "entrypoint:", "environment:", "env:", "shm_size", "ipc:", "resources:"),
            *(
                "limits:",
                "nvidia.com/gpu",
                "devices:",
                "volumeMounts:",
                "volumes:",
                "deploy:",
                "container_name",
                "ports:",
            ),
            *("restart:", "value:", "privileged:", " --", '"--', "'--", '- "', "- '", 'CMD ["', 'ENTRYPOINT ["'),
            *("device_ids", "healthcheck:", "imagePullPolicy", "- name:", "containers:", "services:"),
        ),
        pattern=r"^\W*(?:\w[\w./]*[\"']?\s*:(?:\s|$)|-\s+[\"'\w./-]|--?[a-z]|[\"']--?[a-z]|CMD \[|ENTRYPOINT \[)",
        each=True,
        lines=25,
    ),
)
def manifest(capture: Capture) -> Iterator[Fact]:
    """Each container that is named after an engine or starts one."""
    for described in sorted(_described(capture), key=lambda one: one.entries[0].line.number):
        yield from described.facts(capture)


@dataclass
class Entry:
    """A key with its value: what stands behind it, and the lines below that belong to it."""

    key: str
    line: Line
    rest: str
    below: list[str] = field(default_factory=list)

    def words(self) -> list[str]:
        """The words of a command: the items of a list, or those that a shell makes of a string."""
        if self.rest.startswith("["):
            return [one[0] or one[1] or one[2].strip() for one in ITEM.findall(_flow(self.rest, self.below))]
        rest = "" if BLOCK.fullmatch(self.rest) else self.rest
        if not rest and self.below and self.below[0].lstrip().startswith("- "):
            return list(map(_plain, _items(self.below)))
        text = "\n".join((_plain(rest), *self.below) if rest else self.below)
        return _split(text)

    def text(self) -> str:
        """The value as one text."""
        return "\n".join((_plain(self.rest), *self.below)).strip()

    def pairs(self) -> Iterator[str]:
        """Variables as `NAME=value`, of a map, of a list, or of a list of names with values."""
        name = ""
        for line in map(_plain_line, self.below):
            if found := NAMED.match(line):
                name = found[1]
            elif name and (found := VALUE.match(line)):
                yield f"{name}={_plain(found[1])}"
                name = ""
            elif not name and (found := PAIR.match(line)):
                yield f"{found[1]}={_plain(found[2])}"


def _plain_line(line: str) -> str:
    """A line of a list without the quotes that are around the whole item."""
    start, dash, item = line.partition("- ")
    return f"{start}{dash}{_plain(item)}" if dash and not start.strip() else line


def _flow(rest: str, below: Sequence[str]) -> str:
    """A list in brackets without them, over as many lines as it takes."""
    return COMMENT.sub("", "\n".join((rest, *below))).strip()[1:].removesuffix("]")


def _items(lines: Sequence[str]) -> Iterator[str]:
    """The items of a list: each begins with a dash in the column of the first."""
    column = len(lines[0]) - len(lines[0].lstrip())
    item: list[str] = []
    for line in lines:
        if line[column : column + 2] == "- " and not line[:column].strip():
            yield from _joined(item)
            item = [line[column + 2 :].strip()]
        elif line.strip() and not line.lstrip().startswith("#"):
            item.append(line.strip())
    yield from _joined(item)


def _joined(item: Sequence[str]) -> Iterator[str]:
    """An item as one text: a block that is kept (`|`) in its lines, any other in one."""
    if item and BLOCK.fullmatch(item[0]):
        yield ("\n" if item[0].startswith("|") else " ").join(item[1:])
    elif item:
        yield " ".join(item)


def _plain(scalar: str) -> str:
    """A scalar without its quotes or the comment behind it."""
    quoted = QUOTED.fullmatch(scalar.strip())
    return quoted[2] if quoted else COMMENT.sub("", scalar).strip()


def _split(text: str) -> list[str]:
    text = " ".join(line.rstrip().removesuffix("\\") for line in text.split("\n"))
    try:
        return shlex.split(text, comments=False)
    except ValueError:
        return text.split()


@dataclass
class Described:
    """The keys of one container."""

    column: int
    entries: list[Entry] = field(default_factory=list)

    def of(self, *keys: str) -> Entry | None:
        """The first entry with one of these keys."""
        return next((one for one in self.entries if one.key in keys), None)

    def text(self, *keys: str) -> str:
        """The value of a key, empty where it is not there."""
        entry = self.of(*keys)
        return entry.text() if entry else ""

    def words(self, key: str) -> tuple[str, ...]:
        """The words of a key, none where it is not there."""
        entry = self.of(key)
        return tuple(entry.words()) if entry else ()

    def facts(self, capture: Capture) -> Iterator[Fact]:
        """The command that starts an engine, and the container."""
        image, told = self.text("image"), [one for key in WORDS for one in self.entries if one.key == key]
        if told and (command := self.command(capture, image, told)):
            yield Engine(origin=command.origin, name=command.engine, role="planned")
            yield command
        elif not any(name in image for name in ENGINES):
            return
        if entry := self.of("image"):
            yield self.container(capture, entry)

    def command(self, capture: Capture, image: str, told: Sequence[Entry]) -> LaunchCommand | None:
        """The command of the container where it starts an engine."""
        words = tuple(word for entry in told for word in entry.words())
        engine = next((name for name in ENGINES if name in image), "")
        found = STARTS.search(" ".join(words))
        if not found and engine and words and words[0].startswith("--"):
            words = (engine, "serve", *words)
        elif found:
            engine = found[1] or found[2]
        else:
            return None
        variables = self.of("environment", "env")
        origin = capture.origin(min((one.line for one in told), key=lambda line: line.number))
        environment = tuple(variables.pairs()) if variables else ()
        return LaunchCommand(origin=origin, engine=engine, words=words, image=image, environment=environment)

    def container(self, capture: Capture, image: Entry) -> Container:
        """The container as it is described."""
        keys = {one.key for one in self.entries}
        wanted = self.text("deploy", "resources")
        count, ids = COUNT.search(wanted), IDS.search(wanted)
        privileged = self.text("privileged") == "true" or "privileged: true" in self.text("securityContext")
        return Container(
            origin=capture.origin(image.line),
            runtime="kubernetes" if keys & OF_KUBERNETES else "docker",
            inside=False,
            name=self.text("container_name", "name"),
            image=image.text(),
            privileged=privileged or None,
            ipc=self.text("ipc"),
            shm_bytes=_bytes(self.text("shm_size")),
            devices=tuple(one.partition(":")[0] for one in self.words("devices")),
            gpus=re.sub(r"[\s\"']", "", ids[1]) if ids else count[1] if count else self.text("gpus"),
            mounts=tuple(one.split(":")[1] for one in self.words("volumes") if ":" in one),
            groups=self.words("group_add"),
        )


def _bytes(size: str) -> int | None:
    """A size as compose takes it."""
    found = SIZE.fullmatch(size)
    return int(float(found[1]) * 1024 ** "bkmgt".index(found[2].lower() or "b")) if found else None


def _described(capture: Capture) -> Iterator[Described]:
    """The groups of keys that stand beside each other, each at its end."""
    opened: list[Described] = []
    for line in capture.lines():
        text = line.text.expandtabs()
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        indent = len(text) - len(text.lstrip())
        docker, key = DOCKERFILE.match(text), KEY.match(text)
        column = len(key[1]) + len(key[2]) if key else indent
        while opened and (opened[-1].column > indent or (key and key[2] and opened[-1].column == column)):
            yield opened.pop()
        for group in opened:
            last = group.entries[-1]
            if last.key in KEPT and (indent > group.column or text[indent : indent + 2] == "- "):
                last.below.append(text)
        if docker or (key and column < COLUMNS):
            if not opened or opened[-1].column < column:
                opened.append(Described(column))
            name, rest = (docker[1], docker[2]) if docker else (key[3], (key[4] or "").strip()) if key else ("", "")
            opened[-1].entries.append(Entry(name, line, rest))
    yield from reversed(opened)
