"""What a text told, in the short form of `tests/captures/sources.yaml`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from diag import engine, plugins
from diag.capture import Capture
from diag.facts import (
    Accelerator,
    Driver,
    Engine,
    Facts,
    Host,
    Mount,
    Package,
    Python,
    Runtime,
    TorchBuild,
    Unavailable,
)
from diag.sources import Paste

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
LOADED = plugins.load(plugins.roots())
SOURCES: list[dict[str, Any]] = yaml.safe_load((CAPTURES / "sources.yaml").read_text("utf-8"))
MIB = 2**20


def text_of(name: str) -> str:
    return (CAPTURES / name).read_text("utf-8")


def examined(*texts: str) -> engine.Examination:
    captures = [one for number, text in enumerate(texts, 1) for one in Paste(f"text{number}", text).captures(())]
    return engine.examine(captures, LOADED)


def facts_of(captures: Iterable[Capture]) -> Facts:
    return engine.examine(captures, LOADED).facts


def scopes(*texts: str) -> dict[str, dict[str, Any]]:
    """What is told of each machine, by its scope."""
    facts = examined(*texts).facts
    return {scope: told(facts.within(scope)) for scope in facts.scopes()}


def told(facts: Facts, packages: Iterable[str] = ()) -> dict[str, Any]:
    """Every fact that probes tell of, kind by kind; kinds without one are left out."""
    kinds = {
        "torch": [build.told() for build in facts.all(TorchBuild)],
        "devices": dict(Counter(map(_device, facts.all(Accelerator)))),
        "driver": [
            _joined(one.vendor, one.version, one.offers and f"offers {one.offers}") for one in facts.all(Driver)
        ],
        "runtime": [_joined(one.name, one.kind, one.version) for one in facts.all(Runtime)],
        "engine": [_joined(one.name, one.version) for one in facts.all(Engine)],
        "python": [one.version for one in facts.all(Python)],
        "host": {name: value for one in facts.all(Host) for name, value in one.told().items()},
        "mounts": {one.path: [(one.size_bytes or 0) // MIB, (one.free_bytes or 0) // MIB] for one in facts.all(Mount)},
        "packages": _packages(facts, packages),
        "unavailable": [f"{one.what} {one.how}" for one in facts.all(Unavailable)],
    }
    return {kind: _lists(value) for kind, value in kinds.items() if value}


def _device(one: Accelerator) -> str:
    memory = f"{one.memory_mib:.0f} MiB" if one.memory_mib else ""
    return _joined(one.vendor, one.name, one.address, memory, one.architecture, one.seen_by)


def _packages(facts: Facts, names: Iterable[str]) -> dict[str, Any]:
    found = facts.all(Package)
    return {"count": len(found), **{one.name: one.version for one in found if one.name in names}} if found else {}


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _lists(value: Any) -> Any:
    """Tuples as YAML gives them."""
    if isinstance(value, (list, tuple)):
        return [_lists(one) for one in value]
    return {key: _lists(one) for key, one in value.items()} if isinstance(value, dict) else value
