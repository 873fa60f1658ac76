"""Which decode steps are asked about, handed over by `diag comm --model`, as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, DecodeWish, Fact, Recognise, probe

SCHEMA = "diag/decode/1"


@probe("decode", tells=(DecodeWish,), recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0))
def decode(capture: Capture) -> Iterator[Fact]:
    """Tokens in a step, bytes of the weights, bytes of an element that is sent, and steps that were measured."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    yield DecodeWish(
        origin=capture.said(f'"schema": "{SCHEMA}"'),
        batches=tuple(int(one) for one in document.get("batches", ()) if 0 < one < 2**24),
        weights_bytes=document.get("weights_bytes"),
        width=document.get("width"),
        steps=tuple((int(tokens), float(ms)) for tokens, ms in document.get("steps", ()) if ms > 0),
    )
