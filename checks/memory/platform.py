"""What an engine's platform takes for a device's memory, asked as the engine asks it.

Runs only where it is asked for (`--deep`, `diag mem probe`): importing an engine takes long.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from diag.api import Capture, Fact, How, PlatformMemory, Recognise, Unavailable, probe

SCHEMA = "diag/memory-platform/1"
CHILD = Path(__file__).with_name("_platform.py")
MISSING = "No module named"


@probe(
    "memory/platform",
    tells=(PlatformMemory,),
    measure=str(CHILD),
    interpreter="target",
    cost="deep",
    timeout=120.0,
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0),
)
def platform(capture: Capture) -> Iterator[Fact]:
    """The bytes that the platform tells, or why it tells none."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    if error := document.get("error"):
        how: How = "missing" if MISSING in error else "failed"
        kinds = (PlatformMemory.__name__,)
        yield Unavailable(origin=capture.said(error), what="memory/platform", how=how, reason=error, tells=kinds)
        return
    yield PlatformMemory(
        origin=capture.said(f'"platform": "{document["platform"]}"'),
        engine=document["engine"],
        version=document.get("version") or "",
        platform=document["platform"],
        total=document["total"],
        host_total=document["host_total"],
    )
