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
OPERATOR = re.compile(r"(?:\w{1,60}::)?\w{1,100}(?:\.\w{1,60})?")
PROBES = ("operators/detectors",)
LONGEST, SPARE = 240.0, 0.35
"""Seconds that each of the detectors that execute may take, and the share of a bound on the whole that is theirs."""


def run(asked: Operators, *, output: Output, content: Content, bounds: Bounds) -> int:
    """Look and report."""
    from diag.cli import examine, hot_fix, process

    if asked.hot_fix:
        return hot_fix.run(asked.hot_fix)
    if asked.pid:
        return process.run(asked.pid, output=output, content=content, bounds=bounds)
    if not NAME.fullmatch(asked.device):
        raise DiagError(f"--device {asked.device!r}: it is not a name such as cuda, npu or xpu")
    operators = [one.strip() for names in asked.only for one in names.split(",")]
    if strange := [one for one in operators if not OPERATOR.fullmatch(one)]:
        raise DiagError(f"--only {strange[0]!r}: it is no operator such as aten::exponential_ or aten::sort.values")
    request = {
        "how": ["static", "dynamic", "timing"],
        "device": asked.device,
        "imports": asked.imports,
        "operators": operators,
        "parts": [] if asked.part == "all" else [asked.part],
        "batch": asked.batch,
        "vocabulary": asked.vocabulary,
        "budget": asked.budget,
        "patience": 60,
        "limit": min(LONGEST, bounds.timeout * SPARE) if bounds.timeout else LONGEST,
    }
    python, deadline = target_python(asked.python), deadline_of(bounds)
    arguments = dict.fromkeys(PROBES, (json.encode(request).decode(),))
    host = LiveHost(python, sys.executable, COSTS, deadline, now, arguments=arguments, measures=PROBES)
    question = examine.Question(command=examine.OPS, opened=(host,))
    return examine.run(question, output=output, content=content, bounds=bounds, live=Live())
