"""`diag device`: test each device by itself, and judge what it does."""

from __future__ import annotations

import sys

from msgspec import json

from diag.cli.opening import deadline_of, now
from diag.cli.options import Bounds, Content, Device, Live, Output
from diag.cli.place import target_python
from diag.probe import Cost
from diag.sources import LiveHost

COSTS: tuple[Cost, ...] = ("passive", "deep")
"""What it costs to look at what explains a bad number, and to measure."""
PROBE = "device/self-test"
LONGEST, SPARE = 840.0, 0.75
"""Seconds that all devices may take, and the share of a bound on the whole that is theirs."""


def run(asked: Device, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Test and report."""
    from diag.cli import examine

    request = {
        "devices": asked.device,
        "imports": asked.imports,
        "budget": asked.budget,
        "patience": asked.patience,
        "limit": min(LONGEST, bounds.timeout * SPARE) if bounds.timeout else LONGEST,
    }
    arguments = {PROBE: (json.encode(request).decode(),)}
    python, deadline = target_python(asked.python), deadline_of(bounds)
    host = LiveHost(python, sys.executable, COSTS, deadline, now, arguments=arguments)
    question = examine.Question(command=examine.DEVICE, opened=(host,))
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())
