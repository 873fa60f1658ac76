"""`diag run`: a command as if it stood alone, and the explanation of its failure or its silence.

Until the command has ended nothing is imported but what starts it and passes its output on; how it ended, what the
kernel said meanwhile and what is kept of its output are then texts like any other, judged by the rules of `explain`.
"""

from __future__ import annotations

import os
import resource
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import NamedTuple

from diag.attend import Attended, Ended, attend
from diag.errors import DiagError, Terminated, TimeUp
from diag.streams import Stream
from diag.witness import Witness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diag.capture import Capture
    from diag.cli.options import Beside, Bounds, Content

NOT_FOUND, NOT_EXECUTABLE, SIGNALLED = 127, 126, 128
TOOLS = 8.0
"""Seconds that the tools have together which tell of devices and of Python."""
NAME = 200
"""Characters of the command's name in a report."""
OURS = ("LC_CTYPE",)
"""What Python sets in its own environment where the locale is C."""


class Asked(NamedTuple):
    """What the user wants of diag itself; `stall` is in seconds."""

    output: Beside
    content: Content
    bounds: Bounds
    stall: float | None = None


def is_plain(arguments: Sequence[str]) -> bool:
    """Whether a command line is `run [--] COMMAND` without options, so that the command can be started at once."""
    rest = arguments[2:] if arguments[1:2] == ["--"] else arguments[1:]
    return arguments[:1] == ["run"] and bool(rest) and (len(rest) < len(arguments) - 1 or rest[0][:1] != "-")


def run(argv: tuple[str, ...], asked: Asked | None = None) -> int:
    """Run the command; its exit code, or its end by the signal that ended it."""
    explains = _Explains(argv, asked)
    stalls = _Stalls(explains)
    patience = asked.stall if asked else None
    try:
        ended, streams = attend(argv, _environment(), closed=_closed(), patience=patience, stalled=stalls.begin)
    except (OSError, ValueError) as error:
        return _not_started(argv[0], error)
    with suppress(KeyboardInterrupt, Terminated):  # whoever ends diag now has its exit code all the same
        for one in streams:
            one.finish()
        stalls.end()
        # Whoever stops reading, or asks for the end, has what was wanted; what diag cannot write ends a command, too.
        if (
            ended.exit_code != 0
            and not ended.asked
            and not any(one.gone or one.error for one in streams)
            and explains.wanted
        ):
            with _apart():
                explains.failure(ended, streams, stalls)
    return _left(ended, [f"{one.name}: {one.error}" for one in streams if one.error])


class _Explains:
    """What explains a command, on stderr and in the files named; whatever happens to it, the command's end counts."""

    def __init__(self, argv: tuple[str, ...], asked: Asked | None) -> None:
        self.argv, self._asked, self.witness = argv, asked, Witness()
        if asked:
            _check(asked)

    @cached_property
    def asked(self) -> Asked:
        """What is wanted, where nothing was said the usual."""
        from diag.cli.options import Beside, Bounds, Content

        return self._asked or Asked(Beside(), Content(), Bounds())

    @cached_property
    def program(self) -> str:
        """The command by its file's name."""
        return _shown(os.path.basename(self.argv[0]))

    @property
    def wanted(self) -> bool:
        """Whether anybody is to hear of it."""
        return bool(self.asked.output.report) or not self.asked.output.quiet

    def failure(self, ended: Ended, streams: Sequence[Stream], stalls: _Stalls) -> None:
        """Explain why it failed."""
        said = stalls.said, _in_words(self.program, ended), self.witness.group()
        self._explain((*stalls.seen, *_kernels(*self.witness.log()), *self._taken(said, streams)), streams)

    def stall(self, streams: Sequence[Stream], stalls: _Stalls) -> None:
        """Explain what it does while it writes nothing; from a thread, which no alarm reaches."""
        self._explain((*stalls.seen, *self._taken((stalls.said,), streams)), streams, bounded=False)

    def _taken(self, said: Sequence[str], streams: Sequence[Stream]) -> Iterator[Capture]:
        """What was seen of it, how it was started, and what it wrote."""
        from diag.capture import Capture
        from diag.text import decode

        text = "".join(f"diag run: {one}\n" for one in said if one)
        yield Capture.of("run/command", text, exit_code=0)
        yield Capture.of("launch", _shown(shlex.join(self.argv)), kind="asked", exit_code=0)
        for one in streams:
            head, tail = one.kept.parts()
            yield Capture.of(one.name, decode(head), kind="text", scope=self.program)
            if tail:
                # Its lines were not counted: they are numbered from where it begins.
                yield Capture.of(f"the end of {one.name}", decode(tail), kind="text", scope=self.program)

    def _explain(self, texts: tuple[Capture, ...], streams: Sequence[Stream], *, bounded: bool = True) -> None:
        """Judge these texts and report, below the last line of the command."""
        from msgspec.structs import replace

        from diag.cli import examine
        from diag.cli.options import Live
        from diag.sources import Attended as Source

        output, content, bounds, _ = self.asked
        if not output.quiet and any(2 in one.ends and not one.kept.line_ended for one in streams):
            print(file=sys.stderr)
        source = Source(_shown(shlex.join(self.argv))[:NAME], texts)
        question = examine.Question(command=examine.RUN, opened=(source,), here=False)
        bounds = bounds if bounded else replace(bounds, timeout=None)
        examine.run(question, output=output, content=content, bounds=bounds, live=Live())


class _Stalls:
    """What the command does while it writes nothing, looked at beside it: `said` and `seen` of the last time."""

    def __init__(self, explains: _Explains) -> None:
        self.explains, self.said = explains, ""
        self.seen: tuple[Capture, ...] = ()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, command: Attended) -> bool:
        """Look and tell, unless somebody is to type; whether there was something to tell."""
        from diag.processes import awaits_typing

        if (self._thread and self._thread.is_alive()) or not self.explains.wanted or awaits_typing(command.pid):
            return False
        self._thread = threading.Thread(target=self._tell, args=(command,), daemon=True)
        self._thread.start()
        return True

    def end(self) -> None:
        """Look no further, and wait until what was seen is told."""
        self._over.set()
        if self._thread:
            self._thread.join()

    def _tell(self, command: Attended) -> None:
        # Tools are started from here, and must be able to be ended.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with _apart():
            self.said = f"{self.explains.program} wrote nothing for {time.monotonic() - command.last:.0f} s"
            self.seen = ()
            for one in _looked_at(command.pid, self.explains.asked.bounds):
                self.seen += (one,)
                if self._over.is_set():  # there is an end to be explained, or none
                    return
            self.explains.stall(command.streams, self)


@contextmanager
def _apart() -> Iterator[None]:
    """Whatever happens in an explanation, what counts is how the command ends."""
    try:
        try:
            yield
        except (DiagError, OSError) as error:
            print(f"diag: {_shown(str(error))}", file=sys.stderr)
        except TimeUp:
            print("diag: the time bound was reached", file=sys.stderr)
        except Exception as error:
            from diag.cli.bug import block

            print(block(error), file=sys.stderr)
    except OSError:
        # Nobody can read what is said; what is still held back would be an error again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _check(asked: Asked) -> None:
    """Refuse what is wrong with the options before the command is started."""
    if asked.bounds.select or asked.bounds.ignore or asked.bounds.root:
        from diag.cli.opening import load, selected
        from diag.cli.settings import settings

        selected(load(asked.bounds).checks.values(), asked.bounds, settings())
    if asked.output.report or asked.output.form != "terminal":
        from diag import plugins
        from diag.cli.emit import check_output

        check_output(asked.output, plugins.templates(plugins.bundled()))


def _shown(name: str) -> str:
    from diag.text import printable

    return printable(name)


def _looked_at(pid: int, bounds: Bounds) -> Iterator[Capture]:
    """What the processes do, where they are in Python, and how the devices are used."""
    from diag.cli.opening import open_roots
    from diag.facts import Reading
    from diag.looked import looked_at
    from diag.probe import COSTS
    from diag.sources import LiveHost

    deadline = time.monotonic() + TOOLS
    yield from looked_at((pid,), deadline)
    probes = [one for one in open_roots(bounds).probes.values() if one.command and Reading in one.tells]
    yield from LiveHost(sys.executable, sys.executable, COSTS[:1], deadline).captures(probes)


def _kernels(log: str, refused: str) -> Iterator[Capture]:
    """The kernel's log, where there is anything to say of it."""
    from diag.capture import Capture

    if log or refused:
        yield Capture.of("kernel-log", log, exit_code=0 if log else None, error=refused)


def _in_words(program: str, ended: Ended) -> str:
    """How it ended; signals in the words of Python's subprocess, which rules know from other logs."""
    if ended.exit_code is None:
        number = ended.signal
        name = signal.Signals(number).name if number in set(signal.Signals) else f"SIG{number}"
        end = f"died with <Signals.{name}: {number}>"
    else:
        end = f"exited with code {ended.exit_code}"
    held = f", at most {ended.memory / 2**20:.1f} MiB in one process" if ended.memory else ""
    return f"{program} {end} after {ended.seconds:.2f} s{held}"


def _environment() -> dict[str, str]:
    """The environment that diag was started with, without what Python put there."""
    environment = dict(os.environ)
    with suppress(OSError), open("/proc/self/environ", "rb") as file:
        given = {one.partition(b"=")[0] for one in file.read().split(b"\0")}
        for name in OURS:
            if os.fsencode(name) not in given:
                environment.pop(name, None)
    return environment


def _closed() -> list[int]:
    """Those of the three streams that were not open when diag was started."""
    return [fd for fd, one in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__)) if one is None]


def _not_started(name: str, error: Exception) -> int:
    """Say why in one line; the system has one answer for a missing program and for a program's missing interpreter."""
    from shutil import which

    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    missing = isinstance(error, FileNotFoundError) and not which(name)
    if missing and "/" not in name:
        reason = "command not found"
    elif isinstance(error, FileNotFoundError) and not missing:
        reason = "the interpreter or loader it names does not exist"
    print(f"diag: {_shown(name)}: {reason}", file=sys.stderr)
    return NOT_FOUND if missing else NOT_EXECUTABLE


def _left(ended: Ended, unwritten: Sequence[str]) -> int:
    """Leave as the command did; what could not be written down is a failure, too."""
    with _apart():
        for one in unwritten:
            print(f"diag: {_shown(one)}", file=sys.stderr)
        sys.stderr.flush()
    if ended.exit_code is not None:
        return ended.exit_code or (2 if unwritten else 0)
    # A shell tells a signal from an exit code. The command has left its core; diag's would tell nothing.
    resource.setrlimit(resource.RLIMIT_CORE, (1, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if ended.signal != signal.SIGKILL:
        signal.signal(ended.signal, signal.SIG_DFL)
    os.kill(os.getpid(), ended.signal)
    return SIGNALLED + ended.signal
