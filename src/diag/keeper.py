"""Who looks after ranks, so that these cannot hang: what they note is read, and where it stands still they are ended.

Each rank is a child that notes in a file without a name which call it is in (`measure/collectives.py`). Where nothing
moves for longer than it may, or a child ends before its time, it is looked at what all of them do, and they are killed;
what was measured by then is kept. Of ranks on other hosts is known what their keepers put into the store.
"""

from __future__ import annotations

import os
import re
import resource
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from tempfile import TemporaryFile
from typing import IO, Any

from msgspec import DecodeError, Struct, ValidationError, convert, json
from msgspec.structs import asdict, replace

from diag.capture import Capture
from diag.child import ASKING, SAID, SCHEMA, Place, answered, command, here, printed
from diag.errors import DiagError
from diag.leftovers import Leftovers
from diag.looked import looked_at
from diag.processes import state
from diag.ranks import Rank
from diag.spawn import STOPPED, Children, Command, Outcome
from diag.text import cut, printable

RECORD, PHASE = struct.Struct("<qq"), 480
"""What a rank notes, as `measure/collectives.py` writes it."""
STARTS = ("meeting", "waiting", "joining", "the first")
"""How phases begin in which ranks find each other."""
SLOW, QUICK = ("importing", "first use", *STARTS), " on cpu"
"""Those in which one may take long without a fault, and how of these end those that are quick."""
HALTED = ("T", "t")
"""The states of processes that somebody stopped."""
START = 4.0
"""How many times longer nothing may move before the first round: eight devices can take half a minute to begin."""
MISSING = re.compile(r"waiting for rank (\d+)")
LONGEST = 7200.0
TURN, LAST_WORDS = 0.05, 0.5
"""Seconds between two looks; and those that others have to end when one has ended."""
HEARD = 10.0
"""Seconds for which is waited for what other hosts say when something is wrong."""
TOOLS = 8.0
"""Seconds that looking at processes may take."""
FINE = "exit code 0"
OPEN, EACH = 32, 6
"""Files that diag has open at most, and those that each rank adds."""
NETWORK = re.compile(
    r"connect|timed? ?out|name or service|address|unreachable|resol|refused|DistNetwork|DistStore", re.IGNORECASE
)
"""What an error says where ranks did not find each other."""
RELEASED = 0.95
"""The share of the free memory from before that must be free again."""


class Seen(Struct, frozen=True):
    """What is known of a rank from outside."""

    rank: int
    phase: str = ""
    entered: int = 0
    finished: int = 0
    pid: int | None = None
    state: str = ""
    ended: str = ""


class Trouble(Struct, frozen=True):
    """Why ranks did not measure to the end: see `CollectiveTrouble`."""

    kind: str
    reason: str
    suspects: tuple[int, ...] = ()
    seconds: float | None = None
    released: bool | None = None


class Keeper:
    """The ranks of a world that this process started."""

    def __init__(self, request: dict[str, Any], ranks: Sequence[Rank], place: Place) -> None:
        self.request, self.ranks, self.place = request, ranks, place
        self.patience = request["patience"]
        if place.deadline is not None:
            left = max(1.0, place.deadline - time.monotonic() - LAST_WORDS)
            self.request |= {name: min(request[name], left / 3) for name in ("budget", "isolate")}
        # A rank waits longer for the others than diag waits for it: diag is to say what happened.
        self.request["patience"] = (START + 1) * self.patience

    def run(self) -> tuple[dict[str, Any], tuple[Capture, ...]]:
        """Let them measure: the document, and what was seen of their processes where they stood still."""
        _room(OPEN + EACH * len(self.ranks))
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
                if trouble and trouble.kind != "stopped":
                    # Of what others tell of ranks elsewhere the process ids are another host's.
                    pids = [one.pid for one in states if one.pid and not one.ended]
                    states = self._exchanged(states)
                    leftovers.of(children.pids.values())
                    seen = tuple(looked_at(pids, time.monotonic() + TOOLS)) if trouble.kind == "stalled" else ()
            document = self._document(children.outcomes, states)
            if trouble and trouble.kind == "stopped":
                document["stopped"] = STOPPED
            elif trouble:
                leftovers.remove()
                document["trouble"] = asdict(self._explained(trouble, states, children.outcomes, document))
            return document, seen

    def _commands(self) -> list[Command]:
        def path(file: IO[bytes]) -> str:
            return f"/proc/{os.getpid()}/fd/{file.fileno()}" if os.path.isdir("/proc/self/fd") else ""

        commands = []
        for rank, note in zip(self.ranks, self.notes, strict=True):
            request = {**self.request, "progress": path(note), "partial": path(self.partial) if rank.rank == 0 else ""}
            commands.append(command(request, self.place, rank.environment(), LONGEST))
        return commands

    def _watched(self, children: Children) -> Trouble | None:
        """Wait until all have ended, or until something is wrong."""
        since, last = time.monotonic(), list[Seen]()
        while True:
            children.turn(TURN)
            if any(one.error.startswith(STOPPED) for one in children.outcomes.values()):
                return Trouble("stopped", STOPPED)
            if any(one.exit_code != 0 for one in children.outcomes.values()):
                end = time.monotonic() + LAST_WORDS
                while children.pids and time.monotonic() < end:
                    children.turn(TURN)
                return Trouble("died", "")
            if not children.pids:
                return None
            states = [_noted(note, rank.rank) for rank, note in zip(self.ranks, self.notes, strict=True)]
            if states != last:
                since, last = time.monotonic(), states
            still = time.monotonic() - since
            if still > self.patience and (still > START * self.patience or not self._may_be_slow(states, children)):
                return Trouble("stalled", f"nothing moved for {still:.0f} s", seconds=round(still, 1))

    def _may_be_slow(self, states: Sequence[Seen], children: Children) -> bool:
        """Whether they may be about something that takes long, and none is stopped."""
        halted = any(state(pid) in HALTED for pid in children.pids.values())
        slow = (one.phase for one in states if not one.phase.endswith(QUICK))
        return not halted and any(not phase or phase.startswith(SLOW) for phase in slow)

    def _states(self, children: Children) -> list[Seen]:
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

    def _exchanged(self, own: Sequence[Seen]) -> list[Seen]:
        """With what others said of the ranks that a launcher started elsewhere; those of other ranks tell of theirs."""
        rank = self.place.rank
        if not rank:
            return list(own)
        first = rank.rank == 0
        told = {"ask": "said", "wait": HEARD} if first else {"ask": "tell", "said": [asdict(one) for one in own]}
        answer, _ = answered(command({**self.request, **told}, self.place, rank.environment(), ASKING), self.place)
        known = {}
        with suppress(ValidationError):
            known = {one.rank: one for said in convert(answer.get("said", ()), list[list[Seen]]) for one in said}
        whole = {**{one.rank: one for one in own}, **known}
        return [whole[number] for number in sorted(whole)]

    def _partial(self) -> dict[str, Any]:
        self.partial.seek(0)
        with suppress(DecodeError):
            told = json.decode(self.partial.read() or b"{}")
            return told if isinstance(told, dict) else {}
        return {}

    def _document(self, outcomes: Mapping[int, Outcome], states: Sequence[Seen]) -> dict[str, Any]:
        """What rank 0 printed, or let us have before it could not."""
        whole = {"schema": SCHEMA, **{key: self.request[key] for key in ("device", "backend", "dtype")}}
        whole |= printed(outcomes.get(0, Outcome()), SCHEMA) or self._partial()
        rank = self.ranks[0]
        return {**whole, "launcher": rank.launcher, "size": rank.size, "states": [asdict(one) for one in states]}

    def _explained(
        self, trouble: Trouble, states: Sequence[Seen], outcomes: Mapping[int, Outcome], document: Mapping[str, Any]
    ) -> Trouble:
        """The trouble with who is suspected, and whether what they held is free again."""
        released = self._released(outcomes, document)
        absent = [int(found[1]) for one in states if (found := MISSING.fullmatch(one.phase))]
        known = {one.rank for one in states if one.phase and not one.phase.startswith("meeting")}
        if trouble.kind == "stalled" and (away := [one for one in absent if one not in known]):
            reason = f"rank {away[0]} did not come within {trouble.seconds:.0f} s"
            return Trouble("unreachable", reason, tuple(away), trouble.seconds, released)
        if trouble.kind == "stalled" and all(one.ended in ("", FINE) for one in states):
            return Trouble(trouble.kind, trouble.reason, tuple(suspects(states)), trouble.seconds, released)
        return replace(ended_early(states), released=released)

    def _released(self, outcomes: Mapping[int, Outcome], document: Mapping[str, Any]) -> bool | None:
        """Whether the ranks are gone and the memory of their devices is free again; None where that is not told."""
        if any("ignored SIGKILL" in one.error for one in outcomes.values()):
            return False
        if document.get("device") == "cpu":
            return True
        before = {one["index"]: one["memory"][0] for one in document.get("ranks", ()) if one.get("memory")}
        if not before:
            return None
        found, _ = here(self.request, self.place, "memory")
        told = [free >= RELEASED * before[index] for index, free, _ in found.told() if index in before]
        return all(told) if told else None


def ended_early(states: Sequence[Seen]) -> Trouble:
    """Who ended before the time, and whether somebody killed it, it did not find the others, or a call raised."""
    ended = [one for one in states if one.ended and one.ended != FINE]
    killed = [one for one in ended if not one.ended.startswith("exit code")]
    first = (killed or ended or list(states))[0]
    about = tuple(one.rank for one in killed or ended)
    if killed:
        return Trouble("died", _reason(f"rank {first.rank}, {first.phase}: {first.ended}"), about)
    apart = first.phase.startswith(STARTS) and NETWORK.search(first.phase)
    return Trouble("unreachable" if apart else "failed", _reason(first.phase or first.ended), about)


def _reason(said: str) -> str:
    return cut(printable(said), SAID)


def suspects(states: Sequence[Any]) -> list[int]:
    """The ranks that others wait for: stopped or gone ones, those a call behind, those outside while others are in."""
    halted = [one.rank for one in states if one.state in (*HALTED, "Z", "X") or one.ended]
    behind = [one.rank for one in states if one.entered < max(other.entered for other in states)]
    outside = [one.rank for one in states if one.finished >= one.entered]
    found = halted or behind or outside
    return found if len(found) < len(states) else []


def _room(files: int) -> None:
    """See that so many files may be open at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        raise DiagError(f"the ranks need {files} open files, and {hard} are allowed (ulimit -n)")
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def _noted(note: IO[bytes], rank: int, pid: int | None = None, ended: str = "") -> Seen:
    """What a rank has noted, and the state of its process where that is known."""
    note.seek(0)
    content = note.read(RECORD.size + PHASE).ljust(RECORD.size + PHASE, b"\0")
    entered, finished = RECORD.unpack_from(content)
    phase = content[RECORD.size :].rstrip(b"\0 ").decode(errors="replace")
    now = state(pid) or "X" if pid else ""
    return Seen(rank, printable(phase), entered, finished, pid, now, ended)
