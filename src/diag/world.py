"""A world of ranks that measure collectives: all of them started here, the one that a launcher wants, or Ray's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from json import dumps
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import asdict

from diag.capture import Capture
from diag.child import BRIEF, SCHEMA, THOROUGH, Asked, Place, answered, command, here
from diag.keeper import FINE, LONGEST, Keeper, Seen, Trouble, ended_early, suspects
from diag.ranks import HERE, Rank
from diag.text import printable

__all__ = ["BRIEF", "THOROUGH", "Asked", "Place", "joined", "measured", "suspects"]
BARE = 2
"""Ranks where there is no accelerator."""
IDLE = 0.5
"""The share of its memory that must be free on a device that is measured unasked: a server may run on it."""


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
    document, seen = Keeper(request, ranks, place).run()
    yield _capture(key, document, place, error=document.pop("stopped", ""))
    yield from seen


def joined(asked: Asked, place: Place) -> str:
    """Take part as a rank that does not report; what there is to say of it, empty where all went well."""
    request, ranks, _ = _ranks(asked, place)
    document, _ = Keeper(request, ranks, place).run()
    trouble = document.get("trouble")
    return f"rank {ranks[0].rank}: {trouble['reason']}" if trouble else ""


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
        found, error = here(request, place, "count" if asked.bare else "memory")
        if error:
            return request, [], error
        request |= {"device": found.device, "backend": found.backend}
        request["in_use"] = [index for index, free, whole in found.told() if free < IDLE * whole]
        count = asked.ranks or found.devices or (BARE if asked.bare else 0)
    else:
        count = asked.ranks
    port = _free_port()
    return request, [Rank(one, count, one, HERE, port, "diag") for one in range(count)], ""


def _placed(asked: Asked, place: Place) -> tuple[dict[str, Any], str]:
    """What ranks measured that Ray placed, and what went wrong where there is nothing of it."""
    if silent := _unheard(place.ray, asked.patience):
        return {}, silent
    request = {**place.fixed, **asdict(asked), "ray": place.ray}
    hands = replace(place, program=place.program.with_name("ray_ranks.py"))
    told, error = answered(command(request, hands, {}, asked.budget + asked.isolate + LONGEST), place, SCHEMA)
    if error:
        return {}, error
    try:
        states = convert(told.get("states"), list[Seen])
    except ValidationError:
        return {}, "what it tells of the ranks is malformed"
    document = {"schema": SCHEMA, **{name: request[name] for name in ("device", "backend", "dtype")}}
    document |= {**told, "launcher": "Ray"}
    if stalled := told.get("stalled"):
        reason = f"nothing moved for {stalled:.0f} s"
        document["trouble"] = asdict(Trouble("stalled", reason, tuple(suspects(states)), stalled))
    elif any(one.ended != FINE for one in states):
        document["trouble"] = asdict(ended_early(states))
    return document, ""


def _unheard(address: str, patience: float) -> str:
    """Why nobody is to be spoken to at the address of a cluster: Ray itself goes on trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isascii() and port.isdigit()):
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=patience).close()
    except (OSError, ValueError, OverflowError) as error:
        return f"no Ray cluster answers at {printable(address)}: {getattr(error, 'strerror', '') or error}"
    return ""


def _free_port() -> int:
    with socket.socket() as one:
        one.bind((HERE, 0))
        return int(one.getsockname()[1])
