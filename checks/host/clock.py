"""Whether the clock is kept in step with others: the kernel's own flag, `timedatectl`, `chronyc tracking`.

`timedatectl` asks the kernel's flag too, which a daemon that was told not to set it leaves off. What this cannot know:
how far the clock is off where no daemon measures it, and who keeps it on a machine whose hypervisor does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from diag.api import Capture, Clock, Fact, Recognise, expression, probe

CHILD = str(Path(__file__).resolve().parent / "_clock.py")
SCHEMA = "diag/clock/1"
FLAG = expression(r"^\W*(?:System clock synchronized|NTP synchronized|NTPSynchronized)\s{0,4}[:=]\s{0,4}(yes|no)\s*$")
LEAP = expression(r"^\W*Leap status\s{1,12}: (Normal|Not synchroni[sz]ed|Insert second|Delete second)\s*$")
OFFSET = expression(r"^\W*System time\s{1,12}: ([0-9]{1,9}\.[0-9]{1,9}) seconds (fast|slow) of NTP time\s*$")


@probe("clock", tells=(Clock,), measure=CHILD, recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0))
def clock(capture: Capture) -> Iterator[Fact]:
    """What the kernel says, and whose traces are there."""
    document = capture.document(SCHEMA)
    if document and isinstance(document.get("synchronized"), bool):
        service = str(document.get("service") or "")
        told = {"synchronized": document["synchronized"], "service": service}
        yield Clock(origin=capture.said(json.dumps(told)[1:-1]), synchronized=document["synchronized"], service=service)


@probe(
    "timedatectl",
    tells=(Clock,),
    recognise=Recognise(
        ("System clock synchronized:", "NTP synchronized:", "NTPSynchronized="), FLAG.pattern, each=True, lines=0
    ),
)
def timedatectl(capture: Capture) -> Iterator[Fact]:
    """The flag alone."""
    for line in capture.lines():
        if found := FLAG.match(line.text):
            yield Clock(origin=capture.origin(line), synchronized=found[1] == "yes")


@probe(
    "chronyc-tracking",
    tells=(Clock,),
    recognise=Recognise(("Reference ID  ", "Leap status  "), r"^\W*(?:Reference ID|Leap status)\s+: ", lines=14),
)
def chronyc_tracking(capture: Capture) -> Iterator[Fact]:
    """What `chronyc tracking` prints: positive where the clock is ahead."""
    offset: float | None = None
    for line in capture.lines():
        if found := OFFSET.match(line.text):
            offset = float(found[1]) * (1 if found[2] == "fast" else -1)
        elif found := LEAP.match(line.text):
            known = not found[1].startswith("Not")
            origin = capture.origin(line)
            yield Clock(origin=origin, synchronized=known, service="chronyd", offset_seconds=offset if known else None)
            offset = None
