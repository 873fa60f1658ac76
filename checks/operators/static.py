"""Which kernels torch's dispatcher has for the accelerator: its own table, read without executing anything."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, OperatorTable, Recognise, Unavailable, by_torch, probe

SCHEMA = "diag/operators/1"
OWNED = ("fallback", "backend-fallback", "python")
"""Placements of which it matters who registered the kernel."""


@probe(
    "operators/static",
    tells=(OperatorTable,),
    measure="operators",
    arguments=('{"how": "static"}',),
    interpreter="target",
    cost="active",
    timeout=90.0,
    spared=by_torch(1),
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}", "how": "static"',), lines=0),
)
def static(capture: Capture) -> Iterator[Fact]:
    """The table, or why there is none."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    if "operators" not in document:
        reason = document.get("error") or "torch sees no accelerator"
        origin = capture.said(reason)
        yield Unavailable(origin=origin, what="operators/static", reason=reason, tells=(OperatorTable.__name__,))
        return
    found: dict[str, list[str]] = {}
    for one in document["operators"]:
        found.setdefault(one["placement"], []).append(one["name"])
    owners = {one["name"]: one["owner"] for one in document["operators"] if one["placement"] in OWNED and one["owner"]}
    yield OperatorTable(
        origin=capture.said(f'"device": "{document["device"]}", "key": "{document["key"]}"'),
        device=document["device"],
        key=document["key"],
        torch=document["torch"],
        owners=owners,
        seconds=document.get("seconds"),
        **{
            placement.replace("-", "_"): tuple(found.get(placement, ()))
            for placement in ("native", "python", "fallback", "backend-fallback", "missing")
        },
    )
