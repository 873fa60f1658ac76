"""A running container of this host as a source: looked at from inside, through its runtime's `exec`.

Nothing is installed in it: one `exec` runs a program of the standard library (`measure/inside.py`) with a plan of all
texts to take, and hands back what came of them. What it needs there is a `python3`, which every engine's image has.
"""

from __future__ import annotations

import base64
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec import DecodeError, Struct, json
from msgspec.structs import asdict

from diag.capture import Capture
from diag.errors import DiagError
from diag.probe import MEASURING, USUAL, Cost, Probe, Request
from diag.redact import Known
from diag.report import SourceKind
from diag.sources import MEASURE, ONCE, child_of, stages
from diag.spawn import NEUTRAL, STOPPED, Command, Outcome, run
from diag.text import cut, printable

RUNTIMES = ("docker", "podman", "nerdctl")
HANDS = MEASURE / "inside.py"
BOOT = """\
import base64, json, sys, zlib
plan = json.loads(zlib.decompress(base64.b85decode(sys.argv[1])))
names = {}
exec(plan["hands"], names)
names["main"](plan)
"""
LONGEST = 120_000
"""Bytes of a plan: an argument of a program may have 128 KiB."""
SPARE = 20.0
"""Seconds beyond the longest step: steps wait for one another."""
KEEP = 64 * 2**20
"""Bytes kept of what all steps wrote."""
WITHIN = "between ranks is measured only where diag itself runs"
SAID = 300
"""Characters of what a runtime says that are repeated."""
ASKING = 10.0
"""Seconds that a runtime has to say whether it knows a container."""


class Answer(Struct, frozen=True):
    """What came of one step, as the program inside tells it."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Inside:
    """A running container. `python` is the interpreter in it; `deadline` is monotonic time."""

    runtime: str
    container: str
    python: str = "python3"
    costs: tuple[Cost, ...] = USUAL
    deadline: float | None = None
    now: Callable[[], str] = lambda: ""
    kind: SourceKind = "live"

    @property
    def name(self) -> str:
        """The container as its runtime knows it."""
        return f"{self.runtime} {printable(self.container)}"

    @property
    def known(self) -> Known:
        """Its name is somebody's: it leaves as a host's does."""
        return Known(hosts=(printable(self.container),))

    def captures(self, probes: Sequence[Probe]) -> Iterator[Capture]:
        """All but the active ones in one go, then these one by one and stage by stage."""
        wanted = [probe for probe in probes if probe.live and probe.cost in self.costs]
        passive = [probe for probe in wanted if probe.cost not in MEASURING]
        steps = [_step(probe) for probe in passive]
        for probe, told in zip(passive, self._taken(steps), strict=True):
            yield self._capture(probe.key, probe, told)
        for probe in wanted:
            if probe.ranks:
                yield Capture.of(probe.key, "", kind=probe.kind, error=WITHIN)
            elif probe.cost in MEASURING:
                yield from stages(probe, self._stage)

    def _stage(self, key: str, probe: Probe, request: Request) -> Capture:
        (told,) = self._taken([_step(probe, request)])
        return self._capture(key, probe, told)

    def _taken(self, steps: list[dict[str, Any]]) -> list[Answer]:
        """What came of each step; where the time bound stopped the whole, that is so of each."""
        plan = json.encode({"hands": HANDS.read_text(), "environment": NEUTRAL, "steps": steps})
        packed = base64.b85encode(zlib.compress(plan, 9)).decode()
        if len(packed) > LONGEST:
            raise DiagError(f"--container: the plan has {len(packed)} bytes, more than an argument may have")
        argv = (self.runtime, "exec", self.container, self.python, "-c", BOOT, packed)
        timeout = max((step["timeout"] for step in steps), default=0.0) + SPARE
        outcome = run([Command(argv, timeout=timeout, keep=KEEP)], deadline=self.deadline)[0]
        if outcome.error.startswith(STOPPED):
            return [Answer(error=STOPPED, seconds=outcome.seconds)] * len(steps)
        for line in reversed(outcome.stdout.splitlines()):
            with suppress(DecodeError, RecursionError):
                told = json.decode(line, type=list[Answer])
                if len(told) == len(steps):
                    return told
        raise DiagError(f"--container {printable(self.container)}: {outcome.error or _said(outcome)}")

    def _capture(self, key: str, probe: Probe, told: Answer) -> Capture:
        command = " ".join((self.runtime, "exec", self.container, *(probe.command or (probe.path or probe.measure,))))
        circumstances = {name: value for name, value in asdict(told).items() if name != "stdout"}
        return Capture.of(key, told.stdout, kind=probe.kind, command=command, taken_at=self.now(), **circumstances)


def opened(container: str, deadline: float | None, **options: Any) -> Inside:
    """The container, by the first runtime of this host that knows it to be running."""
    said: list[str] = []
    for runtime in RUNTIMES:
        if shutil.which(runtime):
            argv = (runtime, "container", "inspect", "--format", "{{.State.Running}}", container)
            outcome = run([Command(argv, timeout=ASKING)], deadline=deadline)[0]
            if outcome.exit_code == 0 and outcome.stdout.strip() == "true":
                return Inside(runtime, container, deadline=deadline, **options)
            said.append(f"{runtime}: {'not running' if outcome.exit_code == 0 else outcome.error or _said(outcome)}")
    known = "; ".join(said) or f"none of {', '.join(RUNTIMES)} is here"
    shown = printable(container)
    line = f"RUNTIME exec {shown} sh -c 'pip install diag && diag env-check'"
    raise DiagError(f"--container {shown}: {known}. Where its runtime is: {line}")


def _said(outcome: Outcome) -> str:
    """The last thing that a runtime said of its failure."""
    lines = [line for line in (outcome.stderr or outcome.stdout).splitlines() if line.strip()]
    return cut(printable(lines[-1]), SAID) if lines else f"exit code {outcome.exit_code}"


def _step(probe: Probe, request: Request = ONCE) -> dict[str, Any]:
    """What is to be taken, as the plan says it."""
    if probe.path:
        return {"path": probe.path, "timeout": probe.timeout}
    if probe.command:
        return {"argv": list(probe.command), "timeout": probe.timeout}
    arguments = [*probe.arguments, *request.arguments]
    return {"program": child_of(probe).read_text(), "arguments": arguments, "timeout": probe.timeout}
