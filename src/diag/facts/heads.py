"""The head of a table that diag prints in the columns of nccl-tests, as it is written and as it is read back."""

from __future__ import annotations

from typing import Any

from diag.facts.collective import Collective
from diag.text import expression

OURS = "diag"
WORLD = expression(
    r"^# diag \S{1,40} mode: (synchronised|free-running|graph) ranks: ([0-9]{1,6}|None) nodes: ([0-9]{1,6}|None) "
    r"backend: ?(\S{0,60})(?: tool: (\S{1,40}))?\s*$"
)
DEVICE = expression(r"^# device: ?(.{0,120}?) library: ?(\S{0,120}) ?(\S{0,40})\s*$")


def table_head(first: Collective, version: str, mode: str) -> tuple[str, str]:
    """Its lines: what `first`, like all in the table, was measured with, and which diag prints it."""
    world = f"# diag {version} mode: {mode} ranks: {first.ranks} nodes: {first.nodes} backend: {first.backend}"
    world += "" if first.tool == OURS else f" tool: {first.tool}"
    return world, f"# device: {first.device} library: {first.library} {first.library_version}"


def read_table_head(text: str) -> dict[str, Any]:
    """What a line of it tells, by the names of a `Collective`; empty where the line is no such one."""
    if found := WORLD.search(text):
        ranks, nodes = (int(one) if one.isdigit() else None for one in found.group(2, 3))
        return {"tool": found[5] or OURS, "mode": found[1], "ranks": ranks, "nodes": nodes, "backend": found[4]}
    found = DEVICE.search(text)
    return dict(zip(("device", "library", "library_version"), found.groups(), strict=True)) if found else {}
