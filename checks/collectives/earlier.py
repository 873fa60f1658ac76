"""What an earlier run measured, handed over by `diag comm --compare`: its results as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from diag.api import Capture, CollectiveEarlier, Fact, Latency, probe

FIELDS = frozenset(CollectiveEarlier.__struct_fields__) - {"origin", "latency_us", "rank_us"}


@probe("earlier", tells=(CollectiveEarlier,))
def earlier(capture: Capture) -> Iterator[Fact]:
    """Each result, as it was told then."""
    document = json.loads(capture.content)
    for one in document["results"]:
        told = {name: value for name, value in one.items() if name in FIELDS}
        latency = Latency(**one.get("latency_us", {}))
        origin = capture.said(f"{document['file']}: {one['op']} of {one['bytes']} bytes")
        yield CollectiveEarlier(origin=origin, latency_us=latency, **told)
