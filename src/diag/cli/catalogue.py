"""The commands about the rules themselves."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import json

from diag.check import Check
from diag.cli.emit import write
from diag.cli.opening import load
from diag.cli.options import Bounds
from diag.errors import DiagError
from diag.plugins import Loaded
from diag.text import in_one_line


def listed(roots: Sequence[Path]) -> int:
    """One line for each rule."""
    loaded = load(Bounds(root=tuple(roots)))
    for check in sorted(loaded.checks.values(), key=lambda one: one.id):
        write(in_one_line(f"{check.id:44} {check.kind:6} {check.severity:8} {check.words['en']['title']}") + "\n")
    for one in loaded.broken:
        write(in_one_line(f"not loaded: {one.where}: {one.error}") + "\n")
    return 0


def shown(id: str, roots: Sequence[Path]) -> int:
    """All about one rule."""
    write(_described(one_of(load(Bounds(root=tuple(roots))), id)))
    return 0


def one_of(loaded: Loaded, id: str, *, named: str = "check", listed: str = "checks list") -> Check:
    """The rule of this id; another id is a mistake, after which `listed` tells those there are."""
    if id in loaded.checks:
        return loaded.checks[id]
    near = get_close_matches(id, loaded.checks, 1)
    raise DiagError(f"no {named} {id!r}" + (f"; did you mean {near[0]!r}?" if near else f" (diag {listed})"))


def _described(check: Check) -> str:
    lines = [f"{check.id} ({check.severity}): {check.words['en']['title']}", "", check.explanation, ""]
    lines += [f"needs: {', '.join(kind.__name__ for kind in check.needs)}"]
    for remedy in check.remedies:
        lines += [f"fix ({remedy.safety}): {remedy.title['en']}", *(f"    {command}" for command in remedy.commands)]
    lines += [f"source: {source}" for source in check.sources]
    return "\n".join(lines) + "\n"


def selftest(roots: Sequence[Path]) -> int:
    """Run every vector; the exit code is 1 when one does not do what it must."""
    from diag.selftest import proved

    loaded = load(Bounds(root=tuple(roots)))
    failures = [failure for check in loaded.checks.values() for failure in proved(check, loaded)]
    broken = [f"not loaded: {one.where}: {one.error}" for one in loaded.broken]
    for line in (*failures, *broken):
        write(f"{in_one_line(line)}\n")
    vectors = sum(len(check.fires) + len(check.silent) for check in loaded.checks.values())
    write(f"{len(loaded.checks)} rules, {vectors} vectors, {len(failures)} failed, {len(broken)} files not loaded\n")
    return 1 if failures or broken else 0


def schema(document: str) -> int:
    """The JSON Schema of a document."""
    from diag.bundle import Manifest
    from diag.cli.export import Export
    from diag.cli.matrix import Document
    from diag.report import Report

    models = {"report": Report, "bundle": Manifest, "matrix": Document, "kb": Export}
    if document not in models:
        raise DiagError(f"no document {document!r}; there are {', '.join(models)}")
    write(json.format(json.encode(json.schema(models[document])), indent=2).decode() + "\n")
    return 0
