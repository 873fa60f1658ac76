"""What a text told, in the short form of the files `sources.yaml` in `tests/captures`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from held import LOADED, readings
from msgspec.structs import asdict

from diag import engine
from diag.capture import Capture
from diag.facts import (
    Accelerator,
    Collective,
    Driver,
    Engine,
    EngineState,
    Facts,
    HardwareEvent,
    Host,
    KernelModule,
    Link,
    Mount,
    Package,
    PackageList,
    PciDevice,
    Python,
    Reading,
    Runtime,
    Setting,
    Text,
    TorchBuild,
    Unavailable,
)
from diag.sources import Paste

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
FOLDERS = sorted(path.parent for path in CAPTURES.rglob("sources.yaml"))


def _sources(folder: Path) -> Iterator[dict[str, Any]]:
    """The texts of one folder, each named by its path in `tests/captures`."""
    for one in yaml.safe_load((folder / "sources.yaml").read_text("utf-8")):
        yield {**one, "file": (folder / one["file"]).relative_to(CAPTURES).as_posix()}


SOURCES: list[dict[str, Any]] = [one for folder in FOLDERS for one in _sources(folder)]
MIB = 2**20
MEASURED = {
    *("bytes", "in_place", "iterations", "latency_us", "algbw_gbps", "busbw_gbps", "correct", "wrong", "rank_us")
}
SHORT = {
    *(
        Accelerator,
        Collective,
        Driver,
        Engine,
        EngineState,
        HardwareEvent,
        Host,
        KernelModule,
        Link,
        Mount,
        Package,
        PackageList,
    ),
    *(PciDevice, Python, Reading, Runtime, Setting, Text, TorchBuild, Unavailable),
}
PLAIN = sorted({kind for probe in LOADED.probes.values() for kind in probe.tells} - SHORT, key=lambda k: k.__name__)
"""Kinds that are compared field by field, under the name of their class."""


def text_of(name: str) -> str:
    return (CAPTURES / name).read_text("utf-8")


@lru_cache(maxsize=512)
def examined(*texts: str) -> engine.Examination:
    captures = [one for number, text in enumerate(texts, 1) for one in Paste(f"text{number}", text).captures(())]
    return engine.examine(captures, LOADED)


def facts_of(captures: Iterable[Capture]) -> Facts:
    return engine.examine(captures, LOADED, []).facts


def reading(text: str) -> set[str]:
    """The keys of the probes that tell something of a text."""
    return {key for key, _, told in readings([Capture.of("text", text, kind="text")]) if told}


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
        "settings": {f"{one.kind} {one.name}": one.value for one in facts.all(Setting)},
        "links": dict(Counter(one.kind for one in facts.all(Link))),
        "readings": _by_name((one.name, _joined(one.value, one.unit)) for one in facts.all(Reading)),
        "states": _by_name((one.name, _joined(one.value, one.unit)) for one in facts.all(EngineState)),
        "pci": dict(
            Counter(_joined(one.vendor_id, one.device_id, one.class_id, one.driver) for one in facts.all(PciDevice))
        ),
        "events": dict(
            Counter(_joined(one.kind, one.code, one.address, one.process) for one in facts.all(HardwareEvent))
        ),
        "collectives": _collectives(facts),
        "modules": sorted(one.name for one in facts.all(KernelModule)),
        **{kind.__name__: [one.told() for one in facts.all(kind)] for kind in PLAIN},
    }
    return {kind: _lists(value) for kind, value in kinds.items() if value}


def _by_name(told: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What was told under each name, in its order, in one string."""
    values: dict[str, list[str]] = {}
    for name, value in told:
        values.setdefault(name, []).append(value)
    return {name: ", ".join(found) for name, found in values.items()}


def _device(one: Accelerator) -> str:
    memory = f"{one.memory_mib:.0f} MiB" if one.memory_mib else ""
    return _joined(one.vendor, one.name, one.address, memory, one.architecture, one.seen_by)


def _collectives(facts: Facts) -> dict[str, Any]:
    """For each set of measurements that differ in size and speed alone: how many, the first, the last, and a sum."""
    tables: dict[str, list[Collective]] = {}
    for one in facts.all(Collective):
        told = {name: value for name, value in one.told().items() if name not in MEASURED}
        tables.setdefault(", ".join(f"{name} {value}" for name, value in told.items()), []).append(one)
    return {
        head: {
            "count": len(rows),
            "first": _measured(rows[0]),
            "last": _measured(rows[-1]),
            "busbw": round(sum(one.busbw_gbps or 0 for one in rows), 2),
        }
        for head, rows in tables.items()
    }


def _measured(one: Collective) -> str:
    told = {name: value for name, value in one.told().items() if name in MEASURED and name != "latency_us"}
    time = {name: value for name, value in asdict(one.latency_us).items() if value is not None}
    return ", ".join(f"{name} {_rounded(value)}" for name, value in (told | time).items())


def _rounded(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


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
