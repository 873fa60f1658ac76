"""A world of ranks that measure collectives, looked after so that it cannot hang: all of them started here, or the one
that a launcher wants of this process.

Each rank is a child that notes in memory of this process which call it is in (`measure/collectives.py`). Where nothing
moves for longer than it may, or a child ends before its time, it is looked at what all of them do, and they are killed;
what was measured by then is kept. Of ranks on other hosts is known what they said of themselves while they could.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from msgspec import DecodeError, Struct, json, structs
from msgspec.structs import asdict

from diag.capture import Capture
from diag.leftovers import Leftovers
from diag.looked import looked_at
from diag.processes import state
from diag.ranks import HERE, Rank
from diag.spawn import Children, Command, Outcome, run
from diag.text import cut, printable

SCHEMA = "diag/collectives/1"
RECORD, PHASE = struct.Struct("<qq"), 480
"""What a rank notes, as `measure/collectives.py` writes it."""
STARTS = ("meeting", "waiting", "joining", "the first")
"""How phases begin in which ranks find each other."""
SLOW, QUICK = ("importing", "first use", *STARTS), " on cpu"
"""Those in which one may take long without a fault, and how of these end those that are quick."""
HALTED = ("T", "t")
"""The states of processes that somebody stopped."""
BARE = 2
"""Ranks where there is no accelerator."""
START = 4.0
"""How many times longer nothing may move before the first round: eight devices can take half a minute to begin."""
MISSING = re.compile(r"waiting for rank (\d+)")
ASKING, LONGEST = 120.0, 7200.0
TURN, LAST_WORDS = 0.05, 0.5
"""Seconds between two looks; and those that others have to end when one has ended."""
HEARD = 10.0
"""Seconds for which is waited for what other hosts say when something is wrong."""
TOOLS = 8.0
"""Seconds that looking at processes may take."""
MEMORY = 64 * 2**30
"""Bytes that a rank may hold: the buffers of the largest sizes, on the host where there is no device."""
SAID = 300
FINE = "exit code 0"
KEEP = 64 * 2**20
ENVIRONMENT = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
IDLE = 0.5
"""The share of its memory that must be free on a device that is measured unasked: a server may run on it."""
RELEASED = 0.95
"""The share of the free memory from before that must be free again."""


class Asked(Struct, frozen=True, kw_only=True):
    """What to measure: `ranks` None for one a device, `auto` for what torch has; seconds, bytes.

    `bare`: also between processes where there is no accelerator. `patience` is for how long nothing may move.
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


BRIEF = Asked()
THOROUGH = Asked(sizes=tuple(2**power for power in range(10, 31, 2)), budget=60.0)


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


class _Seen(Struct, frozen=True):
    """What is known of a rank from outside."""

    rank: int
    phase: str = ""
    entered: int = 0
    finished: int = 0
    pid: int | None = None
    state: str = ""
    ended: str = ""


class _Trouble(Struct, frozen=True):
    kind: str
    reason: str
    suspects: tuple[int, ...] = ()
    seconds: float | None = None
    released: bool | None = None


def measured(key: str, asked: Asked, place: Place) -> Iterator[Capture]:
    """The document of the world, and where it stood still what its processes did; nothing but on its rank 0."""
    if place.ray:
        document, error = _placed(asked, place)
        yield _capture(key, document, place, error=error)
        return
    request, ranks, error = _ranks(asked, place)
    if error or (place.rank is None and asked.ranks is None and len(ranks) < 2) or request.get("in_use"):
        document = {} if error else {"schema": SCHEMA, "devices": len(ranks), **request}
        yield _capture(key, document, place, error=error)
        return
    document, seen = _World(request, ranks, place).run()
    yield _capture(key, document, place)
    yield from seen


def joined(asked: Asked, place: Place) -> str:
    """Take part as a rank that does not report; what there is to say of it, empty where all went well."""
    request, ranks, error = _ranks(asked, place)
    document, _ = _World(request, ranks, place).run()
    trouble = document.get("trouble") or {}
    return error or (f"rank {ranks[0].rank}: {trouble['reason']}" if trouble else "")


def _capture(key: str, document: Any, place: Place, *, error: str = "") -> Capture:
    command = printable(f"{place.python} {place.program}")
    text = dumps(document) if document else ""
    facts = {"kind": "measure", "command": command, "error": error, "taken_at": place.now()}
    return Capture.of(key, text, exit_code=None if error else 0, **facts)


def _ranks(asked: Asked, place: Place) -> tuple[dict[str, Any], list[Rank], str]:
    """The request, the ranks that this process starts, and why there are none."""
    request = {**place.fixed, **asdict(asked)}
    if place.rank:
        return request, [place.rank], ""
    if "auto" in (asked.device, asked.backend) or asked.ranks is None:
        here, error = _here(request, place, "count" if asked.bare else "memory")
        if error:
            return request, [], error
        request |= {"device": here["device"], "backend": here["backend"]}
        request["in_use"] = [index for index, (free, whole) in _memory(here) if free < IDLE * whole]
        count = asked.ranks or here["devices"] or (BARE if asked.bare else 0)
    else:
        count = asked.ranks
    port = _free_port()
    return request, [Rank(one, count, one, HERE, port, "diag") for one in range(count)], ""


def _placed(asked: Asked, place: Place) -> tuple[dict[str, Any], str]:
    """What ranks measured that Ray placed, and what went wrong where there is nothing of it."""
    request = {**place.fixed, **asdict(asked), "ray": place.ray}
    hands = replace(place, program=place.program.with_name("ray_ranks.py"))
    told, error = _told(_command(request, hands, {}, asked.budget + LONGEST), place)
    if error:
        return {}, error
    states = [_Seen(**one) for one in told["states"]]
    document = {"schema": SCHEMA, **{name: request[name] for name in ("device", "backend", "dtype")}}
    document |= {**told, "launcher": "Ray"}
    if stalled := told.get("stalled"):
        reason = f"nothing moved for {stalled:.0f} s"
        document["trouble"] = asdict(_Trouble("stalled", reason, tuple(suspects(states)), stalled))
    elif any(one.ended != FINE for one in states):
        document["trouble"] = asdict(_ended(states))
    return document, ""


def _here(request: Mapping[str, Any], place: Place, ask: str = "count") -> tuple[dict[str, Any], str]:
    """What this torch would measure on, and what it said where it did not answer."""
    return _told(_command({**request, "ask": ask}, place, {}, ASKING), place)


def _memory(here: Mapping[str, Any]) -> Iterator[tuple[int, list[int]]]:
    """Each device whose memory was told, with the bytes that are free and all that it has."""
    return ((index, told) for index, told in enumerate(here.get("memory", ())) if told)


def _told(command: Command, place: Place) -> tuple[dict[str, Any], str]:
    """The object that a child printed last, and what it said where it printed none."""
    outcome = run([command], deadline=place.deadline)[0]
    with suppress(DecodeError):
        told = json.decode(outcome.stdout.strip().splitlines()[-1] if outcome.stdout.strip() else "")
        if isinstance(told, dict):
            return told, ""
    said = [line for line in outcome.stderr.splitlines() if any(map(str.isalnum, line))]
    return {}, outcome.error or cut(said[-1] if said else f"exit code {outcome.exit_code}", SAID)


def _command(request: Mapping[str, Any], place: Place, environment: Mapping[str, str], timeout: float) -> Command:
    argv = (place.python, str(place.program), json.encode(request).decode())
    return Command(argv, timeout=timeout, environment={**ENVIRONMENT, **environment}, keep=KEEP, memory=MEMORY)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((HERE, 0))
        return int(one.getsockname()[1])


class _World:
    """The ranks of a world that this process started."""

    def __init__(self, request: dict[str, Any], ranks: Sequence[Rank], place: Place) -> None:
        self.request, self.ranks, self.place = request, ranks, place
        self.patience = request["patience"]
        if place.deadline is not None:
            left = max(1.0, place.deadline - time.monotonic() - LAST_WORDS)
            self.request["budget"] = min(request["budget"], left / 2)
        # A rank waits longer for the others than diag waits for it: diag is to say what happened.
        self.request["patience"] = (START + 1) * self.patience

    def run(self) -> tuple[dict[str, Any], tuple[Capture, ...]]:
        """Let them measure: the document, and what was seen of their processes where they stood still."""
        with ExitStack() as held:
            self.notes = [held.enter_context(TemporaryFile(buffering=0)) for _ in self.ranks]
            self.partial = held.enter_context(TemporaryFile(buffering=0))
            for note in self.notes:
                note.truncate(RECORD.size + PHASE)
            seen: tuple[Capture, ...] = ()
            leftovers = Leftovers()
            with Children(self._commands(), deadline=self.place.deadline, parallel=len(self.ranks)) as children:
                trouble = self._watched(children)
                states = self._states(children)
                if trouble:
                    states = self._exchanged(states)
                    pids = [one.pid for one in states if one.pid and not one.ended]
                    leftovers.of(children.pids.values())
                    seen = tuple(looked_at(pids, time.monotonic() + TOOLS)) if trouble.kind == "stalled" else ()
            document = self._document(children.outcomes, states)
            if trouble:
                leftovers.remove()
                document["trouble"] = asdict(self._explained(trouble, states, children.outcomes, document))
            return document, seen

    def _commands(self) -> list[Command]:
        def path(file: IO[bytes]) -> str:
            return f"/proc/{os.getpid()}/fd/{file.fileno()}" if os.path.isdir("/proc/self/fd") else ""

        commands = []
        for rank, note in zip(self.ranks, self.notes, strict=True):
            request = {**self.request, "progress": path(note), "partial": path(self.partial) if rank.rank == 0 else ""}
            commands.append(_command(request, self.place, rank.environment(), LONGEST))
        return commands

    def _watched(self, children: Children) -> _Trouble | None:
        """Wait until all have ended, or until something is wrong."""
        since, last = time.monotonic(), list[_Seen]()
        while children.pids:
            children.turn(TURN)
            if any(one.exit_code != 0 for one in children.outcomes.values()):
                end = time.monotonic() + LAST_WORDS
                while children.pids and time.monotonic() < end:
                    children.turn(TURN)
                return _Trouble("died", "")
            states = [_noted(note, rank.rank) for rank, note in zip(self.ranks, self.notes, strict=True)]
            if states != last:
                since, last = time.monotonic(), states
            still = time.monotonic() - since
            if still > self.patience and (still > START * self.patience or not self._may_be_slow(states, children)):
                return _Trouble("stalled", f"nothing moved for {still:.0f} s", seconds=round(still, 1))
        return None

    def _may_be_slow(self, states: Sequence[_Seen], children: Children) -> bool:
        """Whether they may be about something that takes long, and none is stopped."""
        halted = any(state(pid) in HALTED for pid in children.pids.values())
        slow = (one.phase for one in states if not one.phase.endswith(QUICK))
        return not halted and any(not phase or phase.startswith(SLOW) for phase in slow)

    def _states(self, children: Children) -> list[_Seen]:
        """What is known of each rank: of those started here, and of those on this host that rank 0 has met."""
        known = {}
        for one in self._partial().get("ranks", ()):
            with suppress(OSError, KeyError, TypeError), open(one["progress"], "rb", buffering=0) as note:
                if one["host"] == socket.gethostname():
                    known[one["rank"]] = _noted(note, one["rank"], one["pid"])
        for index, (rank, note) in enumerate(zip(self.ranks, self.notes, strict=True)):
            outcome = children.outcomes.get(index)
            ended = (outcome.error or f"exit code {outcome.exit_code}") if outcome else ""
            known[rank.rank] = _noted(note, rank.rank, children.pids.get(index), ended)
        return [known[rank] for rank in sorted(known)]

    def _exchanged(self, own: Sequence[_Seen]) -> list[_Seen]:
        """With what others said of the ranks that a launcher started elsewhere; those of other ranks tell of theirs."""
        rank = self.place.rank
        if not rank:
            return list(own)
        first = rank.rank == 0
        told = {"ask": "said", "wait": HEARD} if first else {"ask": "tell", "said": [asdict(one) for one in own]}
        answer, _ = _told(_command({**self.request, **told}, self.place, rank.environment(), ASKING), self.place)
        known = {one["rank"]: _Seen(**one) for said in answer.get("said", ()) for one in said}
        whole = {**{one.rank: one for one in own}, **known}
        return [whole[number] for number in sorted(whole)]

    def _partial(self) -> dict[str, Any]:
        self.partial.seek(0)
        with suppress(DecodeError):
            told = json.decode(self.partial.read() or b"{}")
            return told if isinstance(told, dict) else {}
        return {}

    def _document(self, outcomes: Mapping[int, Outcome], states: Sequence[_Seen]) -> dict[str, Any]:
        """What rank 0 printed, or let us have before it could not."""
        first = outcomes.get(0, Outcome()).stdout
        told: dict[str, Any] = {}
        with suppress(DecodeError):
            told = json.decode(first.strip().splitlines()[-1]) if first.strip() else {}
        whole = {"schema": SCHEMA, **{key: self.request[key] for key in ("device", "backend", "dtype")}}
        whole |= told or self._partial()
        rank = self.ranks[0]
        return {**whole, "launcher": rank.launcher, "size": rank.size, "states": [asdict(one) for one in states]}

    def _explained(
        self, trouble: _Trouble, states: Sequence[_Seen], outcomes: Mapping[int, Outcome], document: Mapping[str, Any]
    ) -> _Trouble:
        """The trouble with who is suspected, and whether what they held is free again."""
        released = self._released(outcomes, document)
        absent = [int(found[1]) for one in states if (found := MISSING.fullmatch(one.phase))]
        known = {one.rank for one in states if one.phase and not one.phase.startswith("meeting")}
        if trouble.kind == "stalled" and (away := [one for one in absent if one not in known]):
            reason = f"rank {away[0]} did not come within {trouble.seconds:.0f} s"
            return _Trouble("unreachable", reason, tuple(away), trouble.seconds, released)
        if trouble.kind == "stalled" and all(one.ended in ("", FINE) for one in states):
            return _Trouble(trouble.kind, trouble.reason, tuple(suspects(states)), trouble.seconds, released)
        return structs.replace(_ended(states), released=released)

    def _released(self, outcomes: Mapping[int, Outcome], document: Mapping[str, Any]) -> bool | None:
        """Whether the ranks are gone and the memory of their devices is free again; None where that is not told."""
        if any("ignored SIGKILL" in one.error for one in outcomes.values()):
            return False
        if document.get("device") == "cpu":
            return True
        before = {one["index"]: one["memory"][0] for one in document.get("ranks", ()) if one.get("memory")}
        here, _ = _here(self.request, self.place, "memory") if before else ({}, "")
        told = [free >= RELEASED * before[index] for index, (free, _) in _memory(here) if index in before]
        return all(told) if told else None


def _ended(states: Sequence[_Seen]) -> _Trouble:
    """Who ended before the time, and whether somebody killed it, it did not find the others, or a call raised."""
    ended = [one for one in states if one.ended and one.ended != FINE]
    killed = [one for one in ended if not one.ended.startswith("exit code")]
    first = (killed or ended or list(states))[0]
    kind = "died" if killed else "unreachable" if first.phase.startswith(STARTS) else "failed"
    reason = f"rank {first.rank}, {first.phase}: {first.ended}" if killed else first.phase or first.ended
    return _Trouble(kind, cut(printable(reason), SAID), tuple(one.rank for one in killed or ended))


def suspects(states: Sequence[Any]) -> list[int]:
    """The ranks that others wait for: stopped or gone ones, those a call behind, those outside while others are in."""
    halted = [one.rank for one in states if one.state in (*HALTED, "Z", "X") or one.ended]
    behind = [one.rank for one in states if one.entered < max(other.entered for other in states)]
    outside = [one.rank for one in states if one.finished >= one.entered]
    found = halted or behind or outside
    return found if len(found) < len(states) else []


def _noted(note: IO[bytes], rank: int, pid: int | None = None, ended: str = "") -> _Seen:
    """What a rank has noted, and the state of its process where that is known."""
    note.seek(0)
    content = note.read(RECORD.size + PHASE).ljust(RECORD.size + PHASE, b"\0")
    entered, finished = RECORD.unpack_from(content)
    phase = content[RECORD.size :].rstrip(b"\0 ").decode(errors="replace")
    now = state(pid) or "X" if pid else ""
    return _Seen(rank, printable(phase), entered, finished, pid, now, ended)
