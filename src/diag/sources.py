"""Where captures come from: this host, a pasted text, or what the user asked for.

The only place, beside the bundle and the command line, that touches the outside. A failure becomes a capture.
"""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol

from diag import text
from diag.capture import Body, Capture, InFile
from diag.child import BRIEF, Place
from diag.child import Asked as Between
from diag.errors import DiagError
from diag.facts import Fact
from diag.finding import Broken
from diag.probe import MEASURING, USUAL, Cost, Probe, Request
from diag.ranks import Rank
from diag.reading import Bound, Kept, Until, pieces
from diag.redact import NOTHING_KNOWN, Known
from diag.report import SourceKind
from diag.spawn import Children, Command, Outcome, run

MEASURE = Path(__file__).resolve().parent / "measure"
FILE_CAP = 4 * 2**20
"""Bytes kept of a file that a probe reads."""
START = 8192
"""Bytes by which it is told what something is."""
ONCE = Request(())
SHORT = 5.0
"""Seconds that the children which only read files have together; what they do not answer is asked one by one."""
QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}
"""What keeps a measuring child from leaving compiled files in the environment that it examines."""
REPORT = b'"schema": "diag/report/'
HANDED = 512
"""Facts that a child is given at most."""
TOO_LONG = "there was no room to keep all of it: the rest was not read"
PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
"""How archives and packed files begin, but for .tar."""


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
    """This machine. `python` is the interpreter examined, `own` the one diag runs in; `deadline` is monotonic time.

    `between` is what is asked of ranks that measure together, `rank` this process's own where a launcher made it one,
    `ray` the address of the cluster that is to place them. `arguments` are further ones of the children of probes. Of
    the measuring ones those are taken whose keys begin with one of `measures`.
    """

    python: str
    own: str
    costs: tuple[Cost, ...] = USUAL
    deadline: float | None = None
    now: Callable[[], str] = lambda: ""
    between: Between = BRIEF
    rank: Rank | None = None
    ray: str = ""
    arguments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    measures: tuple[str, ...] = ("",)
    kind: SourceKind = "live"
    name: str = field(default_factory=lambda: os.uname().nodename)
    known: Known = field(default_factory=lambda: _known(os.environ))

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """Passive and importing probes side by side, then the active ones, one at a time and stage by stage.

        The commands run from the first capture on, a file's, whatever the caller does before it asks for the next.
        """
        wanted = [probe for probe in probes if probe.live and self._takes(probe)]
        runs = list(self._runs(probe for probe in wanted if not probe.path and probe.cost not in MEASURING))
        asked = {probe.spared.by for probe in wanted if probe.spared}
        given = {kind for probe in wanted for kind in probe.given}
        decisive: dict[str, Capture] = {}
        told: list[Fact] = []
        with Children([command for _, command in runs], deadline=self.deadline) as children:
            yield from (self._file(probe) for probe in wanted if probe.path)
            outcomes = children.wait()
        for (group, _), outcome in zip(runs, outcomes, strict=True):
            parts = [outcome] if len(group) == 1 else self._parted(group, outcome)
            for probe, part in zip(group, parts, strict=True):
                capture = self._capture(probe.key, probe, self._command(probe), part)
                decisive |= {probe.key: capture} if probe.key in asked else {}
                told += () if given.isdisjoint(probe.tells) else facts_of(probe, capture)
                yield capture
        for probe in wanted:
            if probe.cost in MEASURING:
                yield from self._measured(handed(probe, told), decisive)

    def _measured(self, probe: Probe, decisive: Mapping[str, Capture]) -> Iterator[Capture]:
        """The captures of an active probe, or of its not being started."""
        before = decisive.get(probe.spared.by) if probe.spared else None
        if probe.spared and before and (reason := probe.spared.why(before)):
            yield self._capture(probe.key, probe, self._command(probe), Outcome(error=reason))
        elif probe.ranks:
            from diag import world  # not above: no other command needs it

            yield from world.measured(probe.key, self.between, self.place(probe))
        else:
            yield from stages(probe, self._stage)

    def _takes(self, probe: Probe) -> bool:
        return probe.cost in self.costs and (probe.cost not in MEASURING or probe.key.startswith(self.measures))

    def place(self, probe: Probe) -> Place:
        """Where the ranks of a probe run."""
        fixed = json.loads(probe.arguments[0])
        return Place(self.python, child_of(probe), fixed, self.rank, self.ray, self.deadline, self.now)

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
            error=outcome.error,
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
        command = self._command(probe, (*request.arguments, *self.arguments.get(probe.key, ())))
        return self._capture(key, probe, command, run([command], deadline=self.deadline)[0])


def facts_of(probe: Probe, capture: Capture) -> list[Fact]:
    """What a probe tells of a text of its own; nothing where it breaks on it, which the report says."""
    try:
        return list(probe.read(capture))
    except Exception:
        return []


def handed(probe: Probe, told: Iterable[Fact]) -> Probe:
    """A probe whose child gets the facts that it is to be given, as one more argument."""
    if not probe.given:
        return probe
    facts = [{"kind": type(one).__name__, **one.told()} for one in told if isinstance(one, probe.given)]
    return replace(probe, arguments=(*probe.arguments, json.dumps({"given": facts[:HANDED]})))


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
    bound: Bound = field(default_factory=Bound)
    kind: SourceKind = "paste"
    known: Known = NOTHING_KNOWN

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """The text as one capture."""
        yield Capture.of(self.name, self.body, kind="text")

    @property
    def stopped(self) -> bool:
        """Whether the time bound was reached before the whole text was read."""
        return self.bound.stopped

    @property
    def broken(self) -> tuple[Broken, ...]:
        """What of it was not read, but for the time bound."""
        return (Broken(where=self.name, error=TOO_LONG),) if self.bound.full else ()


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
    """The text in a file, read up to a time bound."""
    name = name or text.printable(path.name)
    bound = Bound(deadline)
    try:
        with path.open("rb") as file:
            _, encoding = _encoding(file.read(START), str(path))
        if encoding != "utf-8":
            return spoken(Kept.of(path.open("rb"), deadline), name)
    except OSError as error:
        raise DiagError(f"cannot read {path}: {error.strerror or error}") from error
    return Paste(name, InFile(lambda: _until(path, bound)), bound)


@contextmanager
def _until(path: Path, bound: Bound) -> Iterator[Until]:
    with path.open("rb", buffering=0) as file:
        yield Until(file, bound)


def piped(stream: IO[bytes], deadline: float | None = None, name: str = "stdin") -> Paste:
    """The text on a stream that can be read only once."""
    return spoken(Kept.of(stream, deadline), name)


def spoken(kept: Kept, name: str) -> Paste:
    """The text of what can be read but once; it is read as it is searched."""
    mark, encoding = _encoding(kept.start(START), name)
    if encoding != "utf-8":
        kept.seek(mark)
        kept = Kept(text.utf8(pieces(kept), encoding), kept.bound)
    return Paste(name, InFile(lambda: nullcontext(kept)), kept.bound)


def _encoding(start: bytes, name: str) -> tuple[int, str]:
    """The length of the mark at the start of a text, and its encoding; what is no text is a `DiagError`."""
    if REPORT in start[:200]:
        raise DiagError(f"{name} is a report that diag wrote: diag render {name}")
    if text.is_binary(start):
        raise DiagError(f"{name} is neither a text nor a bundle")
    return text.encoding_of(start)


def is_archive(start: bytes) -> bool:
    """Whether what begins so is packed, or an archive."""
    return start.startswith(PACKED) or is_tar(start)


def is_tar(start: bytes) -> bool:
    """Whether what begins so is a .tar: the sum in its first header is right, whatever it is called."""
    try:
        return bool(tarfile.TarInfo.frombuf(start[:512], "utf-8", "surrogateescape").name)
    except tarfile.HeaderError:
        return False
