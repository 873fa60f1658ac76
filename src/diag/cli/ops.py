"""`diag ops`: find operators of torch that run on the CPU instead of the accelerator."""

from __future__ import annotations

import re
import sys

from msgspec import json

from diag.cli.opening import deadline_of, now
from diag.cli.options import Bounds, Content, Live, Operators, Output
from diag.cli.place import target_python
from diag.errors import DiagError
from diag.probe import Cost
from diag.sources import LiveHost

COSTS: tuple[Cost, ...] = ("passive", "active")
"""What it costs to look at what explains a finding, and to ask torch."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
PROBES = ("operators/static",)


def run(asked: Operators, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Look and report."""
    from diag.cli import examine

    if not NAME.fullmatch(asked.device):
        raise DiagError(f"--device {asked.device!r}: it is not a name such as cuda, npu or xpu")
    request = json.encode({"device": asked.device, "imports": asked.imports}).decode()
    python, deadline = target_python(asked.python), deadline_of(bounds)
    arguments = dict.fromkeys(PROBES, (request,))
    host = LiveHost(python, sys.executable, COSTS, deadline, now, arguments=arguments, measures=PROBES)
    question = examine.Question(command=examine.OPS, opened=(host,))
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())
