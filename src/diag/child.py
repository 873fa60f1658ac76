"""The measuring child of a rank as diag starts it, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import DecodeError, Struct, ValidationError, convert, json

from diag.ranks import Rank
from diag.spawn import Command, Outcome, run
from diag.text import cut, printable

SCHEMA, ANSWER = "diag/collectives/1", "diag/collectives-answer/1"
ASKING = 120.0
"""Seconds in which a child answers that measures nothing."""
MEMORY = 64 * 2**30
"""Bytes that a rank may hold: the buffers of the largest sizes, on the host where there is no device."""
SAID = 300
KEEP = 64 * 2**20
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}


class Asked(Struct, frozen=True, kw_only=True):
    """What to measure: `ranks` None for one a device, `auto` for what torch has; seconds, bytes.

    `bare`: also between processes where there is no accelerator. `isolate`: also who is to blame, for so many seconds.
    `patience` is for how long nothing may move.
    """

    ranks: int | None = None
    device: str = "auto"
    backend: str = "auto"
    dtype: str = "bf16"
    ops: tuple[str, ...] = ("all_reduce",)
    sizes: tuple[int, ...] = (8 * 2**10, 256 * 2**10, 4 * 2**20, 64 * 2**20)
    modes: tuple[str, ...] = ("synchronised", "free-running", "graph")
    budget: float = 6.0
    patience: float = 30.0
    imports: tuple[str, ...] = ()
    bare: bool = False
    isolate: float = 0.0


BRIEF = Asked()
THOROUGH = Asked(sizes=tuple(2**power for power in range(10, 31, 2)), budget=60.0, isolate=60.0)


@dataclass(frozen=True)
class Place:
    """Where the ranks run: the program and its own request, and what came of a launcher; `deadline` is monotonic.

    `ray` is the address of the Ray cluster that is to place them.
    """

    python: str
    program: Path
    fixed: Mapping[str, Any]
    rank: Rank | None = None
    ray: str = ""
    deadline: float | None = None
    now: Callable[[], str] = lambda: ""


class Here(Struct, frozen=True, kw_only=True):
    """What a torch would measure on: device, backend, how many there are, and of each the bytes free and in all."""

    device: str = ""
    backend: str = ""
    devices: int = 0
    memory: tuple[tuple[int, int] | None, ...] = ()

    def told(self) -> list[tuple[int, int, int]]:
        """Each device whose memory was told: its number, bytes that are free, and all."""
        return [(index, *one) for index, one in enumerate(self.memory) if one]


def here(request: Mapping[str, Any], place: Place, ask: str = "count") -> tuple[Here, str]:
    """What this torch would measure on, and what it said where it did not answer."""
    told, error = answered(command({**request, "ask": ask}, place, {}, ASKING), place)
    try:
        return convert(told, Here), error
    except ValidationError:
        return Here(), "what it answers is none"


def answered(asked: Command, place: Place, schema: str = ANSWER) -> tuple[dict[str, Any], str]:
    """The document that a child printed last, and what it said where it printed none."""
    outcome = run([asked], deadline=place.deadline)[0]
    if told := printed(outcome, schema):
        return told, ""
    said = [line for line in outcome.stderr.splitlines() if any(map(str.isalnum, line))]
    ended = f"it ended without an answer (exit code {outcome.exit_code})"
    return {}, outcome.error or cut(printable(said[-1]) if said else ended, SAID)


def printed(outcome: Outcome, schema: str) -> dict[str, Any]:
    """The last line of a child's output that is a document of this schema, empty where none is."""
    for line in reversed(outcome.stdout.splitlines()):
        try:
            told = json.decode(line)
        except (DecodeError, RecursionError):
            continue
        if isinstance(told, dict) and told.get("schema") == schema:
            return told
    return {}


def command(request: Mapping[str, Any], place: Place, environment: Mapping[str, str], timeout: float) -> Command:
    """The child with a request; `timeout` in seconds."""
    argv = (place.python, str(place.program), json.encode(request).decode())
    return Command(argv, timeout=timeout, environment={**ENVIRONMENT, **environment}, keep=KEEP, memory=MEMORY)
