"""Where captures come from: this host, a pasted text, or what the user asked for.

The only place, beside the bundle and the command line, that touches the outside. A failure becomes a capture.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import IO, Protocol

from diag import text
from diag.capture import Body, Capture, Held, InFile
from diag.errors import DiagError
from diag.probe import COSTS, Cost, Probe, Request
from diag.redact import NOTHING_KNOWN, Known
from diag.report import SourceKind
from diag.spawn import Children, Command, Outcome, run
from diag.text import Block, Line

MEASURE = Path(__file__).resolve().parent / "measure"
FILE_CAP = 4 * 2**20
"""Bytes kept of a file that a probe reads."""
STDIN_HELD = 64 * 2**20
"""Bytes of standard input held in memory."""
STDIN_CAP = 8 * 2**30
"""Bytes of standard input read at most."""
ONCE = Request(())
SHORT = 5.0
"""Seconds that the children which only read files have together; what they do not answer is asked one by one."""
QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}
"""What keeps a measuring child from leaving compiled files in the environment that it examines."""
LINES_BETWEEN_LOOKS = 1_000
REPORT = b'"schema": "diag/report/'
ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")


class Source(Protocol):
    """Whoever hands over captures."""

    @property
    def kind(self) -> SourceKind:
        """As the report gives it."""

    @property
    def name(self) -> str:
        """As the report gives it."""

    @property
    def known(self) -> Known:
        """What of the machine must not leave it by name."""

    def captures(self, probes: Sequence[Probe]) -> Iterable[Capture]:
        """The captures, for a live host those of these probes."""


@dataclass(frozen=True)
class LiveHost:
    """This machine. `python` is the interpreter examined, `own` the one diag runs in; `deadline` is monotonic time."""

    python: str
    own: str
    costs: tuple[Cost, ...] = COSTS
    deadline: float | None = None
    now: Callable[[], str] = lambda: ""
    kind: SourceKind = "live"
    name: str = field(default_factory=lambda: os.uname().nodename)
    known: Known = field(default_factory=lambda: _known(os.environ))

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """Passive and importing probes side by side, then the active ones, one at a time and stage by stage.

        The commands run from the first capture on, a file's, whatever the caller does before it asks for the next.
        """
        wanted = [probe for probe in probes if probe.live and probe.cost in self.costs]
        runs = list(self._runs(probe for probe in wanted if not probe.path and probe.cost != "active"))
        with Children([command for _, command in runs], deadline=self.deadline) as children:
            yield from (self._file(probe) for probe in wanted if probe.path)
            outcomes = children.wait()
        for (told, _), outcome in zip(runs, outcomes, strict=True):
            parts = [outcome] if len(told) == 1 else self._parted(told, outcome)
            for probe, part in zip(told, parts, strict=True):
                yield self._capture(probe.key, probe, self._command(probe), part)
        for probe in wanted:
            if probe.cost == "active":
                yield from stages(probe, self._stage)

    def _runs(self, probes: Iterable[Probe]) -> Iterator[tuple[list[Probe], Command]]:
        """What to start, each with the probes whose texts it gives: one, or all the short ones together."""
        short: list[Probe] = []
        for probe in probes:
            if _is_short(probe):
                short.append(probe)
            else:
                yield [probe], self._command(probe)
        if len(short) == 1:
            yield short, self._command(short[0])
        elif short:
            programs = (self._command(probe).argv[1] for probe in short)
            several = (self.own, str(MEASURE / "several.py"), *programs)
            left = float("inf") if self.deadline is None else self.deadline - time.monotonic()
            yield short, Command(several, timeout=min(SHORT, left / 2), environment=QUIET)

    def _parted(self, probes: Sequence[Probe], outcome: Outcome) -> list[Outcome]:
        """What each of several children told that ran in one process; one that was not answered runs by itself."""
        commands = [self._command(probe) for probe in probes]
        told = dict(_answers(outcome))
        alone = [command for command in commands if command.argv[1] not in told]
        told |= {one.argv[1]: own for one, own in zip(alone, run(alone, deadline=self.deadline), strict=True)}
        return [told[command.argv[1]] for command in commands]

    def _command(self, probe: Probe, arguments: tuple[str, ...] = ()) -> Command:
        if not probe.measure:
            return Command(probe.command, timeout=probe.timeout)
        interpreter = self.python if probe.interpreter == "target" else self.own
        return Command(
            (interpreter, str(child_of(probe)), *probe.arguments, *arguments), timeout=probe.timeout, environment=QUIET
        )

    def _capture(self, key: str, probe: Probe, command: Command, outcome: Outcome) -> Capture:
        return Capture.of(
            key,
            outcome.stdout,
            kind=probe.kind,
            command=text.printable(" ".join(command.argv)),
            exit_code=outcome.exit_code,
            error=text.printable(outcome.error),
            stderr=outcome.stderr,
            seconds=outcome.seconds,
            taken_at=self.now(),
        )

    def _file(self, probe: Probe) -> Capture:
        start, content, error = time.perf_counter(), b"", ""
        try:
            with open(probe.path, "rb", buffering=0) as file:
                content = b"".join(_read(file, FILE_CAP))
        except OSError as problem:
            error = f"{type(problem).__name__}: {probe.path}"
        seconds = time.perf_counter() - start
        facts = {"kind": "file", "command": probe.path, "error": error, "seconds": seconds, "taken_at": self.now()}
        return Capture.of(probe.key, text.decode(content), **facts)

    def _stage(self, key: str, probe: Probe, request: Request) -> Capture:
        command = self._command(probe, request.arguments)
        return self._capture(key, probe, command, run([command], deadline=self.deadline)[0])


def stages(probe: Probe, take: Callable[[str, Probe, Request], Capture]) -> Iterator[Capture]:
    """The stages of an active probe; one that is not staged has a single stage without arguments."""
    taken: list[Capture] = []
    while request := probe.next(tuple(taken)) if probe.next else (None if taken else ONCE):
        key = f"{probe.key}#{len(taken) + 1}" if probe.next else probe.key
        taken.append(take(key, probe, request))
        yield taken[-1]
        if taken[-1].error:
            return


def child_of(probe: Probe) -> Path:
    """The file of a probe's measuring child: one of our own by its name, or one beside the probe."""
    return Path(probe.measure) if os.path.isabs(probe.measure) else MEASURE / f"{probe.measure}.py"


def _is_short(probe: Probe) -> bool:
    """Whether a child only reads files of the host: all such share one process, which takes longer to start."""
    plain = not (probe.next or probe.arguments)
    return bool(probe.measure) and probe.interpreter == "own" and probe.cost == "passive" and plain


def _answers(outcome: Outcome) -> Iterator[tuple[str, Outcome]]:
    """The programs that told something in a process they shared, each with its outcome."""
    for line in outcome.stdout.splitlines():
        with suppress(ValueError, TypeError, KeyError):
            told = json.loads(line)
            yield told["program"], replace(outcome, stdout=told["stdout"], error=told["error"], exit_code=0)


def _read(file: IO[bytes], cap: int) -> Iterator[bytes]:
    while cap > 0 and (piece := file.read(min(cap, 2**16))):
        cap -= len(piece)
        yield piece


def _known(environment: os._Environ[str]) -> Known:
    """What of this host must not leave it by name."""
    user = environment.get("USER") or environment.get("LOGNAME") or ""
    home = os.path.expanduser("~")
    homes = (home,) if os.path.isabs(home) else ()
    return Known(hosts=(os.uname().nodename,), users=(user,) if user else (), homes=homes)


@dataclass(frozen=True)
class Paste:
    """A text that somebody pasted, saved or piped: searched by every probe that recognises something in it."""

    name: str
    body: Body
    kind: SourceKind = "paste"
    known: Known = NOTHING_KNOWN

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """The text as one capture."""
        yield Capture.of(self.name, self.body, kind="text")

    @property
    def stopped(self) -> bool:
        """Whether the time bound was reached before the whole text was read."""
        return isinstance(self.body, Bounded) and self.body.stopped


class Bounded:
    """A body that ends at a time bound, and says so."""

    def __init__(self, body: Body, deadline: float) -> None:
        self.body, self.first, self.deadline, self.stopped = body, body.first, deadline, False

    def block(self, block: Block) -> bytes:
        """The text of a block."""
        return self.body.block(block)

    def blocks(self) -> Iterator[Block]:
        """The blocks that can be read before the bound."""
        for block in self.body.blocks():
            if self._over():
                return
            yield block

    def lines(self) -> Iterator[Line]:
        """The lines that can be read before the bound."""
        for number, line in enumerate(self.body.lines()):
            if number % LINES_BETWEEN_LOOKS == 0 and self._over():
                return
            yield line

    def shown(self, line: bytes) -> str:
        """The line as the body shows it."""
        return self.body.shown(line)

    def sha256(self) -> str:
        """Digest of the text as far as it can be read."""
        return self.body.sha256()

    def _over(self) -> bool:
        self.stopped |= time.monotonic() > self.deadline
        return self.stopped


@dataclass(frozen=True)
class Asked:
    """What the user asks about, key by key: texts like the rest, read by the probes of those keys."""

    texts: dict[str, str]
    kind: SourceKind = "asked"
    name: str = "asked"
    known: Known = NOTHING_KNOWN

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """One capture for each thing asked."""
        for key, asked in self.texts.items():
            yield Capture.of(key, asked, kind="asked", exit_code=0)


@dataclass(frozen=True)
class Attended:
    """A command that diag ran: what it wrote, how it ended or what it does, and what the kernel told meanwhile.

    All of it is of one machine, `texts` are captures that were taken already.
    """

    name: str
    texts: tuple[Capture, ...]
    kind: SourceKind = "run"
    known: Known = field(default_factory=lambda: _known(os.environ))

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """What was taken."""
        return iter(self.texts)


def paste(path: Path, name: str = "", deadline: float | None = None) -> Paste:
    """The text in a file, read up to a time bound; what is no regular file can be read but once."""
    name = name or text.printable(path.name)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("rb") as stream:
                return piped(stream, deadline, name)
        with path.open("rb") as file:
            start = file.read(8192)
    except OSError as error:
        raise DiagError(f"cannot read {path}: {error.strerror or error}") from error
    if REPORT in start[:200]:
        raise DiagError(f"{path} is a report that diag wrote: diag render {path}")
    if text.is_binary(start):
        raise DiagError(f"{path} is neither a text nor a bundle")
    mark, encoding = text.encoding_of(start[: text.MARK_BYTES])
    if encoding == "utf-8":
        return Paste(name, bounded(InFile(lambda: path.open("rb", buffering=0)), deadline))
    with path.open("rb") as file:
        file.seek(mark)
        return Paste(name, bounded(_held_open(_spooled(text.utf8(file, encoding), name)), deadline))


def bounded(body: Body, deadline: float | None) -> Body:
    """A body that ends at the time bound, where there is one."""
    return body if deadline is None else Bounded(body, deadline)


def is_archive(path: Path) -> bool:
    """Whether a regular file begins like an archive."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(6).startswith(ARCHIVES)
    except OSError:
        return False


def piped(stream: IO[bytes], deadline: float | None = None, name: str = "stdin") -> Paste:
    """The text on a stream that can be read only once; what is too long to hold waits in an unnamed file."""
    start = stream.read(STDIN_HELD + 1)
    if len(start) <= STDIN_HELD:
        return Paste(name, bounded(Held(text.decode(start)), deadline))
    mark, encoding = text.encoding_of(start[: text.MARK_BYTES])
    spool = _spooled(chain((start,), iter(lambda: stream.read(text.BLOCK), b"")), name)
    if encoding != "utf-8":
        spool.seek(mark)
        spool = _spooled(text.utf8(spool, encoding), name)
    return Paste(name, bounded(_held_open(spool), deadline))


def _held_open(file: IO[bytes]) -> InFile:
    """The text in a file without a name, which lasts as long as the body; two readers at a time disturb each other."""
    body = InFile(lambda: nullcontext(file))
    weakref.finalize(body, file.close)
    return body


def _spooled(pieces: Iterable[bytes], name: str) -> IO[bytes]:
    """A text of UTF-8 that can be read but once, in an unnamed file."""
    spool = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the body)
    for piece in pieces:
        spool.write(piece)
        if spool.tell() > STDIN_CAP:
            raise DiagError(f"{name} is longer than {STDIN_CAP >> 30} GiB: give it as a file")
    return spool
