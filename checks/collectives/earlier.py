"""What an earlier run measured, handed over by `diag comm --compare`: its results as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, CollectiveEarlier, Fact, Latency, Recognise, probe

SCHEMA = "diag/collectives-earlier/1"
FIELDS = frozenset(CollectiveEarlier.__struct_fields__) - {"origin", "latency_us", "rank_us", "file"}


@probe("earlier", tells=(CollectiveEarlier,), recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0))
def earlier(capture: Capture) -> Iterator[Fact]:
    """Each result, as it was told then."""
    document = capture.document(SCHEMA) or {}
    for one in document.get("results", ()):
        told = {name: value for name, value in one.items() if name in FIELDS}
        latency = Latency(**one.get("latency_us", {}))
        origin = capture.said(f"{document['file']}: {one['op']} of {one['bytes']} bytes")
        yield CollectiveEarlier(origin=origin, file=document["file"], latency_us=latency, **told)
