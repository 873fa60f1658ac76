"""Which decode steps are asked about, handed over by `diag comm --model`, as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diag.api import Capture, DecodeWish, Fact, Recognise, probe

SCHEMA = "diag/decode/1"
TOKENS, LEAST, MOST = range(1, 2**24), 1e-6, 2**60


@probe("decode", tells=(DecodeWish,), recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0))
def decode(capture: Capture) -> Iterator[Fact]:
    """Tokens in a step, bytes of the weights, bytes of an element that is sent, and steps that were measured."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    weights, width = document.get("weights_bytes"), document.get("width")
    steps = [one for one in _list(document, "steps") if isinstance(one, list) and len(one) == 2]
    yield DecodeWish(
        origin=capture.said(f'"schema": "{SCHEMA}"'),
        batches=tuple(one for one in _list(document, "batches") if _counts(one)),
        weights_bytes=weights if _between(weights) else None,
        width=width if _counts(width) else None,
        steps=tuple((tokens, float(ms)) for tokens, ms in steps if _counts(tokens) and _between(ms)),
    )


def _list(document: dict[str, Any], key: str) -> list[Any]:
    value = document.get(key)
    return value if isinstance(value, list) else []


def _counts(value: Any) -> bool:
    return isinstance(value, int) and value in TOKENS


def _between(value: Any) -> bool:
    return isinstance(value, (int, float)) and LEAST < value < MOST
