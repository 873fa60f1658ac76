"""`diag matrix show`: what is known of an engine, a device or a vendor, as tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from rich.console import Console
from rich.table import Table

from diag.check import Check
from diag.cli.emit import look, write
from diag.cli.opening import load
from diag.cli.options import Bounds
from diag.errors import DiagError
from diag.facts import DeviceModel, KnownSet, Release, TorchArchitectures, Vendor
from diag.plugins import Loaded
from diag.text import in_one_line, matches
from diag.versions import canonical, satisfies
from diag.ways.nearest import rows
from diag.ways.tables import Tables

PIPED = 200
"""Columns of a table that goes into a pipe."""


def show(component: str, bounds: Bounds) -> int:
    """Print the tables about a component, or what there is where none is named."""
    loaded = load(bounds)
    tables = rows(loaded)
    found = list(_of(component, tables, loaded)) if component else list(_all(tables, loaded))
    if not found:
        raise DiagError(f"nothing is known of {component!r}{_near(component, tables)} (diag matrix show)")
    shown = look(sys.stdout)
    sink = io.StringIO()
    console = Console(file=sink, width=shown.width or PIPED, force_terminal=shown.colour, no_color=not shown.colour)
    for table in found:
        console.print(table)
    write("".join(f"{line.rstrip()}\n" for line in sink.getvalue().splitlines()), painted=shown.colour)
    return 0


def _near(component: str, tables: Tables) -> str:
    known = [
        *tables.releases,
        *(one.vendor for one in tables.of(Vendor)),
        *(one.name for one in tables.of(DeviceModel)),
    ]
    near = get_close_matches(component, known, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _of(component: str, tables: Tables, loaded: Loaded) -> Iterator[Table]:
    """The tables about a release, a distribution, a device or a vendor."""
    name, sign, version = component.partition("==")
    package = canonical(name)
    if sign and (release := tables.release(package, version)):
        yield _release(release)
        yield from _sets(component, [one for one in tables.of(KnownSet) if one.versions.get(package) == version])
        yield from _rules(component, (one for one in _about(loaded) if _reads(one, package, version)))
    elif package in tables.releases:
        yield _releases(package, tables.releases[package])
        yield from _sets(package, [one for one in tables.of(KnownSet) if package in one.versions])
        yield from _rules(package, (one for one in _about(loaded) if _reads(one, package)))
    for known in tables.of(KnownSet):
        if known.id == component:
            yield _set(known)
    device = component.removeprefix("gpu=").lower()
    device = device.partition(" ")[2] if device.partition(" ")[0] in _makers(tables) else device
    models = [one for one in tables.of(DeviceModel) if any(_goes_by(device, known) for known in one.names)]
    models = models or [one for one in tables.of(DeviceModel) if one.name.lower() == device]
    if models:
        yield _devices(component, models)
        yield from _builds(models, tables)
        yield from _sets(component, [one for one in tables.of(KnownSet) if any(matches(device, p) for p in one.gpu)])
    if component in _makers(tables):
        yield _devices(component, [one for one in tables.of(DeviceModel) if one.vendor == component])
        own = next(one for one in tables.of(Vendor) if one.vendor == component)
        for plugin in own.packages:
            if plugin in tables.releases:
                yield _releases(plugin, tables.releases[plugin])
        yield from _sets(component, [one for one in tables.of(KnownSet) if one.vendor == component])
        yield from _rules(component, (one for one in _about(loaded) if one.about == component))


def _makers(tables: Tables) -> set[str]:
    return {one.vendor for one in tables.of(Vendor)}


def _goes_by(word: str, name: str) -> bool:
    """Whether a model's name is the word, or begins with it."""
    run, known = (text.lower().replace(" ", "").replace("-", "").replace("_", "") for text in (word, name))
    return matches(word, name) or run == known or name.lower().startswith((f"{word} ", f"{word}-"))


def _all(tables: Tables, loaded: Loaded) -> Iterator[Table]:
    """What there is: releases by distribution, sets that ran, rules by subject."""
    table = _table("Releases", "distribution", "releases", "oldest", "newest", "checked")
    for name, releases in sorted(tables.releases.items()):
        checked = max(one.checked for one in releases)
        _add(table, name, str(len(releases)), releases[-1].version, releases[0].version, checked)
    yield table
    yield from _sets("all", tables.of(KnownSet))
    counted: dict[str, int] = {}
    for one in _about(loaded):
        counted["/".join(one.id.split("/")[:-1])] = counted.get("/".join(one.id.split("/")[:-1]), 0) + 1
    table = _table("Rules on versions", "subject", "rules")
    for subject, count in sorted(counted.items()):
        _add(table, subject, str(count))
    yield table


def _about(loaded: Loaded) -> list[Check]:
    return [one for one in loaded.checks.values() if one.verdict]


def _reads(check: Check, package: str, version: str = "") -> bool:
    """Whether a rule is about a distribution, in this version where one is named."""
    ranges = [allowed for name, allowed in check.ranges.items() if matches(package, name)]
    return any(not version or not allowed or any(satisfies(version, one) for one in allowed) for allowed in ranges)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _add(table: Table, *cells: Any) -> None:
    from rich.text import Text

    table.add_row(*(Text(in_one_line(str(cell))) for cell in cells))


def _releases(package: str, releases: Sequence[Release]) -> Table:
    table = _table(package, "version", "released", "python", "torch", "runtime", "builds", "glibc", "pairs")
    for one in releases:
        runtime = f"{one.runtime} {one.runtime_version}".strip()
        pins = (one.pins.get("python", ""), one.pins.get("torch", ""))
        pairs = ", ".join(f"{name} {version}" for name, version in one.pairs.items())
        _add(table, one.version, one.released, *pins, runtime, " ".join(one.builds), one.glibc, pairs)
    return table


def _release(release: Release) -> Table:
    table = _table(f"{release.package} {release.version}", "states", "value")
    told = {
        "released": release.released,
        "runtime": f"{release.runtime} {release.runtime_version}".strip(),
        "architectures": " ".join(release.architectures),
        "glibc": release.glibc,
        "overrides": " ".join(release.overrides),
        **{f"goes with {name}": version for name, version in release.pairs.items()},
        **{f"asks for {name}": pin for name, pin in release.pins.items()},
        "doubt": release.doubt,
        "source": release.source,
        "checked": release.checked,
    }
    for name, value in told.items():
        if value:
            _add(table, name, value)
    return table


def _set(known: KnownSet) -> Table:
    table = _table(known.id, "states", "value")
    told = {
        "level": known.level,
        "device": " | ".join(known.gpu),
        "count": known.count,
        **{f"has {name}": version for name, version in known.versions.items()},
        **{f"beside it {name}": version for name, version in known.beside.items()},
        "model": known.model,
        "image": known.image,
        **{f"command {number}": command for number, command in enumerate(known.install, 1)},
        "started with": known.flags,
        "result": known.result,
        "note": known.note.get("en", ""),
        "source": known.source,
        "checked": known.checked,
    }
    for name, value in told.items():
        if value:
            _add(table, name, value)
    return table


def _devices(title: str, models: Sequence[DeviceModel]) -> Table:
    table = _table(f"{title}: devices", "model", "architecture", "GB", "GB/s", "bf16", "fp8", "int8", "link", "checked")
    for one in models:
        figures = (one.memory_gb, one.bandwidth_gbps, one.bf16_tflops, one.fp8_tflops, one.int8_tops)
        _add(
            table, one.name, one.architecture, *("" if f is None else f"{f:g}" for f in figures), one.link, one.checked
        )
    return table


def _builds(models: Sequence[DeviceModel], tables: Tables) -> Iterator[Table]:
    wanted = {one.architecture for one in models if one.architecture}
    table = _table("builds of torch whose list has it", "torch", "runtime", "architectures")
    for one in tables.of(TorchArchitectures):
        if wanted & set(one.architectures):
            _add(table, one.torch, f"{one.runtime} {one.version}", " ".join(one.architectures))
    if table.row_count:
        yield table


def _sets(title: str, known: Sequence[KnownSet]) -> Iterator[Table]:
    table = _table(f"{title}: sets that ran", "id", "level", "device", "versions", "model", "result", "checked")
    for one in known:
        versions = ", ".join(f"{name} {version}" for name, version in one.versions.items())
        device = f"{one.count or ''}{'x' if one.count else ''}{' | '.join(one.gpu)}"
        _add(table, one.id, one.level, device, versions, one.model, one.result, one.checked)
    if known:
        yield table


def _rules(title: str, checks: Iterable[Check]) -> Iterator[Table]:
    table = _table(f"{title}: known to fail", "rule", "severity", "fault", "checked")
    for one in checks:
        _add(table, one.id, one.severity, one.words["en"]["title"], one.checked)
    if table.row_count:
        yield table
