"""`diag run`: a command as if it stood alone, and the explanation of its failure or its silence.

Until the command has ended nothing is imported but what starts it and passes its output on; how it ended, what the
kernel said meanwhile and what is kept of its output are then texts like any other, judged by the rules of `explain`.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec.structs import replace

from diag.attend import Attended, Ended, attend
from diag.cli.options import Beside, Bounds, Content
from diag.errors import DiagError, Terminated
from diag.streams import Stream
from diag.text import printable
from diag.witness import Witness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from diag.capture import Capture

NOT_FOUND, NOT_EXECUTABLE, SIGNALLED = 127, 126, 128
LOOKED = 1.0
"""Seconds for which the processes of a command that stalls are looked at."""
TOOLS = 8.0
"""Seconds that the tools have together which tell of devices and of Python."""
PYTHONS = 32
"""Processes whose Python stacks are asked for."""
OURS = ("LC_CTYPE",)
"""What Python sets in its own environment where the locale is C."""


def run(argv: tuple[str, ...], stall: float | None, *, output: Beside, content: Content, bounds: Bounds) -> int:
    """Run the command; its exit code, or its end by the signal that ended it."""
    explains = _Explains(argv, output, content, bounds)
    explains.check()
    stalls = _Stalls(explains)
    try:
        ended, streams = attend(argv, _environment(), closed=_closed(), patience=stall, stalled=stalls.begin)
    except (OSError, ValueError) as error:
        return _not_started(argv[0], error)
    with suppress(KeyboardInterrupt, Terminated):  # whoever ends diag now has its exit code all the same
        for one in streams:
            one.finish()
        stalls.end()
        # Whoever stops reading, or asks for the end, has what was wanted.
        if ended.exit_code != 0 and not ended.asked and not any(one.gone for one in streams):
            explains.failure(ended, streams, stalls.seen)
    return _left(ended, [f"{one.name}: {one.error}" for one in streams if one.error])


class _Explains:
    """What explains a command, on stderr and in the files named; whatever happens to it, the command's end counts."""

    def __init__(self, argv: tuple[str, ...], output: Beside, content: Content, bounds: Bounds) -> None:
        self.argv, self.output, self.content, self.bounds = argv, output, content, bounds
        self.witness = Witness()
        self.program = printable(os.path.basename(argv[0]))[:200] or "it"

    @property
    def wanted(self) -> bool:
        """Whether anybody is to hear of it."""
        return bool(self.output.report) or not self.output.quiet

    def check(self) -> None:
        """Refuse what is wrong with the options before the command is started."""
        if self.bounds.select or self.bounds.ignore or self.bounds.root:
            from diag.cli.opening import load, selected
            from diag.cli.settings import settings

            selected(load(self.bounds).checks.values(), self.bounds, settings())
        if self.output.report or self.output.form != "terminal":
            from diag import plugins
            from diag.cli.emit import check_output

            check_output(self.output, plugins.templates(plugins.bundled()))

    def failure(self, ended: Ended, streams: Sequence[Stream], seen: Sequence[Capture]) -> None:
        """Explain why it failed."""
        if self.wanted:
            said = _in_words(self.program, ended), self.witness.group()
            self.explain(self.taken(said, streams), (*seen, *_kernels(*self.witness.log())), self.bounds)

    def stall(self, quiet: float, streams: Sequence[Stream], seen: Sequence[Capture]) -> None:
        """Explain what it does while it writes nothing; from a thread, which no alarm reaches."""
        if self.wanted:
            said = (f"{self.program} wrote nothing for {quiet:.0f} s",)
            self.explain(self.taken(said, streams), seen, replace(self.bounds, timeout=None))

    def taken(self, said: Sequence[str], streams: Sequence[Stream]) -> Iterator[Capture]:
        """What was seen of it, how it was started, and what it wrote."""
        from diag.capture import Capture
        from diag.text import decode

        text = "".join(f"diag run: {one}\n" for one in said if one)
        yield Capture.of("run/command", text, exit_code=0)
        yield Capture.of("launch", shlex.join(map(printable, self.argv)), kind="asked", exit_code=0)
        for one in streams:
            head, tail = one.kept.parts()
            yield Capture.of(one.name, decode(head), kind="text", scope=self.program)
            if tail:
                # Its lines were not counted: they are numbered from where it begins.
                yield Capture.of(f"the end of {one.name}", decode(tail), kind="text", scope=self.program)
            if 2 in one.ends and not one.kept.line_ended and not self.output.quiet:
                print(file=sys.stderr)

    def explain(self, taken: Iterable[Capture], seen: Iterable[Capture], bounds: Bounds) -> None:
        """Judge these texts and report."""
        from diag.cli import bug, examine
        from diag.cli.options import Live
        from diag.sources import Attended as Source

        source = Source(printable(shlex.join(self.argv))[:200], (*seen, *taken))
        question = examine.Question(command=examine.RUN, opened=(source,), here=False)
        try:
            examine.run(question, output=self.output, content=self.content, bounds=bounds, live=Live())
        except DiagError as error:
            print(f"diag: {error}", file=sys.stderr)
        except Exception as error:
            print(bug.block(error), file=sys.stderr)


class _Stalls:
    """What is looked at, beside the command, while it writes nothing; `seen` is what was found the last time."""

    def __init__(self, explains: _Explains) -> None:
        self.explains = explains
        self.seen: tuple[Capture, ...] = ()
        self._thread: threading.Thread | None = None

    def begin(self, command: Attended) -> bool:
        """Look and tell, unless somebody is to type; whether there was something to tell."""
        from diag.processes import awaits_typing

        if (self._thread and self._thread.is_alive()) or awaits_typing(command.pid):
            return False
        self._thread = threading.Thread(target=self._tell, args=(command,), daemon=True)
        self._thread.start()
        return True

    def end(self) -> None:
        """Wait until all is told."""
        if self._thread:
            self._thread.join()

    def _tell(self, command: Attended) -> None:
        # Tools are started from here, and must be able to be ended.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        quiet = time.monotonic() - command.last
        self.seen = tuple(_looked_at(command.pid, self.explains.bounds))
        self.explains.stall(quiet, command.streams, self.seen)


def _looked_at(pid: int, bounds: Bounds) -> Iterator[Capture]:
    """What the processes do, where they are in Python, and how the devices are used."""
    from diag.capture import Capture
    from diag.cli.opening import open_roots
    from diag.facts import Reading
    from diag.probe import COSTS
    from diag.processes import family, sampled
    from diag.sources import LiveHost
    from diag.spawn import Command
    from diag.spawn import run as several

    yield Capture.of("run/processes", sampled(pid, LOOKED), exit_code=0)
    deadline = time.monotonic() + TOOLS
    pids = family(pid)[:PYTHONS]
    stacks = several(
        [Command(("py-spy", "dump", "--nonblocking", "--pid", str(one))) for one in pids], deadline=deadline
    )
    for one, outcome in zip(pids, stacks, strict=True):
        if outcome.exit_code == 0:
            yield Capture.of(f"py-spy#{one}", outcome.stdout, exit_code=0)
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
    # What a process held before it became the command counts, too, and that was diag.
    more = ended.memory > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    held = f", at most {ended.memory / 2**20:.1f} MiB in one process" if more else ""
    return f"{program} {end} after {ended.seconds:.1f} s{held}"


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
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    missing = isinstance(error, FileNotFoundError) and ("/" in name or not shutil.which(name))
    print(f"diag: {printable(name)}: {reason if not missing or '/' in name else 'command not found'}", file=sys.stderr)
    return NOT_FOUND if missing else NOT_EXECUTABLE


def _left(ended: Ended, unwritten: Sequence[str]) -> int:
    """Leave as the command did; what could not be written down is a failure, too."""
    for one in unwritten:
        print(f"diag: {one}", file=sys.stderr)
    if ended.exit_code is not None:
        return ended.exit_code or (2 if unwritten else 0)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
        # A shell tells a signal from an exit code. The command has left its core; diag's would tell nothing.
        resource.setrlimit(resource.RLIMIT_CORE, (1, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(ended.signal, signal.SIG_DFL)
        os.kill(os.getpid(), ended.signal)
    return SIGNALLED + ended.signal
