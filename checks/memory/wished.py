"""What is asked of a memory plan beside its launch, handed over by `diag mem plan`, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diag.api import Capture, Fact, MemoryWish, Recognise, probe

SCHEMA = "diag/memory-wish/1"
COUNTS, BYTES = range(1, 2**27), 2**60


@probe("memory/wish", tells=(MemoryWish,), recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0))
def wish(capture: Capture) -> Iterator[Fact]:
    """A device's bytes, how many devices, the weights' bytes, requests and the tokens of each."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    yield MemoryWish(
        origin=capture.said(f'"schema": "{SCHEMA}"'),
        device_bytes=_size(document, "device_bytes"),
        devices=_count(document, "devices"),
        weights_bytes=_size(document, "weights_bytes"),
        weights_from="checkpoint" if document.get("weights_from") == "checkpoint" else "given",
        requests=_count(document, "requests"),
        length=_count(document, "length"),
    )


def _count(document: dict[str, Any], key: str) -> int | None:
    value = document.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value in COUNTS else None


def _size(document: dict[str, Any], key: str) -> float | None:
    value = document.get(key)
    sized = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < BYTES
    return value if sized else None
