"""Plans as the product makes them: from texts, through its probes, rules and rows of reference."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from diag import plugins
from diag.capture import Capture
from diag.engine import examine
from diag.facts import Facts, MemoryPlan
from diag.plugins import Loaded

CONFIGS = Path(__file__).parent / "memory" / "configs"
GIB = 2**30


@cache
def loaded() -> Loaded:
    return plugins.load([plugins.bundled()])


def facts(launch: str, config: str, **asked: Any) -> Facts:
    """What is known of a launch; `asked` is a memory wish, `release` the engine's as NAME==VERSION, `device` a name."""
    release, device, log = (asked.pop(name, "") for name in ("release", "device", "log"))
    words = [*([release] if release else []), *([f"'gpu={asked.get('devices', 1)}x{device}'"] if device else [])]
    texts = {
        "launch": launch,
        "model/whole": (CONFIGS / f"{config}.json").read_text(),
        "memory/wish": json.dumps({"schema": "diag/memory-wish/1", **asked}),
        **({"matrix": f"diag matrix check {' '.join(words)}"} if words else {}),
    }
    captures = [Capture.of(key, text, kind="asked", exit_code=0) for key, text in texts.items()]
    logs = [Capture.of("log", log, kind="text")] if log else []
    return examine([*captures, *logs], loaded(), []).facts


def planned(launch: str, config: str, **asked: Any) -> MemoryPlan:
    """The plan of a launch."""
    known = facts(launch, config, **asked)
    (plan,) = known.all(MemoryPlan)
    return plan
