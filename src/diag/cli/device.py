"""`diag device`: test each device by itself, and judge what it does."""

from __future__ import annotations

import re
import sys

from msgspec import json

from diag.cli.opening import deadline_of, now
from diag.cli.options import Bounds, Content, Device, Live, Output
from diag.cli.place import target_python
from diag.errors import DiagError
from diag.probe import Cost
from diag.sources import LiveHost

COSTS: tuple[Cost, ...] = ("passive", "deep")
"""What it costs to look at what explains a bad number, and to measure."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,30}(:\d{1,3})?")
PROBE = "device/self-test"
LONGEST, SPARE = 840.0, 0.75
"""Seconds that all devices may take, and the share of a bound on the whole that is theirs."""


def run(asked: Device, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Test and report."""
    from diag.cli import examine

    if strange := [one for one in asked.device if not NAME.fullmatch(one)]:
        raise DiagError(f"--device {strange[0]!r}: it is not a name such as cuda, cuda:1 or cpu")
    request = {
        "devices": list(dict.fromkeys(asked.device)),
        "imports": asked.imports,
        "budget": asked.budget,
        "patience": asked.patience,
        "limit": min(LONGEST, bounds.timeout * SPARE) if bounds.timeout else LONGEST,
    }
    arguments = {PROBE: (json.encode(request).decode(),)}
    python, deadline = target_python(asked.python), deadline_of(bounds)
    host = LiveHost(python, sys.executable, COSTS, deadline, now, arguments=arguments, measures=(PROBE,))
    question = examine.Question(command=examine.DEVICE, opened=(host,))
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())
