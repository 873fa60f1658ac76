"""Where torch's operators run on the accelerator, as three detectors saw it; what they do stands beside each of them.

In `env-check` it is the dispatcher's table and the steps of a sampler for a few requests, without timing any twice;
`diag ops` asks for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from diag.api import (
    Capture,
    Fact,
    Operator,
    OperatorDeath,
    OperatorScan,
    OperatorStep,
    OperatorTable,
    Placement,
    Recognise,
    Unavailable,
    by_torch,
    probe,
)

SCHEMA = "diag/operators/1"
KINDS = (OperatorTable, Operator, OperatorStep, OperatorScan, OperatorDeath)
OWNED = ("fallback", "backend-fallback", "python")
"""Placements of which it matters who registered the kernel."""
LEFT = "not run: no time"
"""How it is said that a step or operator was not come to."""
SHOWN = 8
"""Operators that a detector cannot tell of, as far as they are named."""
Document = dict[str, Any]


@probe(
    "operators/detectors",
    tells=KINDS,
    measure="operators",
    arguments=(
        '{"how": ["static", "dynamic"], "parts": ["sampler"], "batch": 8, "budget": 0, "patience": 8, "limit": 8}',
    ),
    interpreter="target",
    cost="active",
    timeout=600.0,
    spared=by_torch(1),
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0),
)
def detectors(capture: Capture) -> Iterator[Fact]:
    """What each detector told, a line each, or why it did not."""
    answered = set[str]()
    wanted: list[str] = []
    for line in capture.lines():
        part = capture.part([line])
        if document := part.document(SCHEMA):
            wanted = document["detectors"]
            answered.add(document["how"])
            yield from _unknown(part, document)
            yield from _told(part, document)
    ended = [] if "" in answered else [how for how in wanted if how not in answered]
    if ended:
        yield _untold(capture, ended, capture.failed or "the child ended before it answered")


def _told(part: Capture, document: Document) -> Iterator[Fact]:
    """The facts of one detector's document."""
    if not document["how"] or "operators" not in document:
        reason = document.get("error") or "torch sees no accelerator"
        yield _untold(part, [document["how"]] if document["how"] else document["detectors"], reason)
        return
    yield from {"static": _table, "dynamic": _steps, "timing": _launches}[document["how"]](part, document)


def _untold(part: Capture, detectors: Iterable[str], reason: str) -> Unavailable:
    kinds = {"static": (OperatorTable,), "dynamic": (OperatorStep,)}
    tells = [kind.__name__ for how in detectors for kind in (*kinds.get(how, ()), Operator, OperatorScan)]
    what = f"operators/{'+'.join(detectors)}"
    return Unavailable(origin=part.said(reason), what=what, reason=reason, tells=tuple(dict.fromkeys(tells)))


def _unknown(part: Capture, document: Document) -> Iterator[Fact]:
    """The operators that were asked for and that this torch does not have: told with the first of the detectors."""
    if document.get("unknown") and document["how"] == document["detectors"][0]:
        reason = f"torch {document['torch']} has no operator {', '.join(document['unknown'])}"
        yield Unavailable(origin=part.said(reason), what="operators", reason=reason, tells=(Operator.__name__,))


def _table(part: Capture, document: Document) -> Iterator[Fact]:
    found: dict[str, list[str]] = {}
    for one in document["operators"]:
        found.setdefault(one["placement"], []).append(one["name"])
    owners = {one["name"]: one["owner"] for one in document["operators"] if one["placement"] in OWNED and one["owner"]}
    yield OperatorTable(
        origin=part.said(f'"device": "{document["device"]}", "key": "{document["key"]}"'),
        device=document["device"],
        key=document["key"],
        torch=document["torch"],
        asked=tuple(document.get("asked", ())),
        owners=owners,
        **{
            placement.replace("-", "_"): tuple(found.get(placement, ()))
            for placement in ("native", "python", "fallback", "backend-fallback", "missing")
        },
    )
    yield _scan(part, document, len(document["operators"]), [])


def _steps(part: Capture, document: Document) -> Iterator[Fact]:
    """Each step, and the operators that went over the CPU in one of them."""
    for one in document["operators"]:
        if one["placement"] == "copies":
            yield _copying(part, document["device"], one)
    untold = []
    for one in document["steps"]:
        at = one.get("at") or one.get("step") or one["operator"]
        if one.get("died"):
            yield _death(part, document, at, one)
        elif one.get("error", "").startswith("not run"):
            untold.append(f"{at}: {one['error']}")
        elif "step" in one:
            yield _step(part, document["device"], one)
        elif "error" in one:
            untold.append(f"{at}: {one['error']}")
    yield _scan(part, document, len(document["operators"]), untold)


def _copying(part: Capture, device: str, one: Document) -> Operator:
    name = f"{one['name']}.{one['overload']}".rstrip(".")
    moved, copying = one["bytes_down"] + one["bytes_up"], one["copying"]
    spent = f"in {copying} calls {moved} bytes and {one['microseconds'] / 1000:.3g} ms"
    return Operator(
        origin=part.said(f"{name}: {', '.join(one['evidence'])}; {spent}"),
        name=name,
        device=device,
        detector="dynamic",
        placement="copies",
        steps=tuple(one["steps"]),
        shape=f"{one['shape']} {one['dtype']}",
        signs=tuple(one["evidence"]),
        host_us=one["microseconds"] / one["calls"],
        bytes=moved // copying,
    )


def _step(part: Capture, device: str, one: Document) -> OperatorStep:
    seconds = one.get("seconds") or one.get("profiled_seconds")
    return OperatorStep(
        origin=part.said(f"{one['step']}: {one.get('error') or f'{seconds} s'}"),
        step=one["step"],
        device=device,
        batch=one.get("batch", 0),
        vocabulary=one.get("vocabulary", 0),
        ms=None if seconds is None else round(seconds * 1e3, 4),
        host_us=one.get("host", {}),
        error=one.get("error", ""),
        operator=one.get("operator", ""),
        said=(*one.get("warnings", ()), *one.get("printed", ())),
    )


def _launches(part: Capture, document: Document) -> Iterator[Fact]:
    """The operators whose launch grows, and those of which nothing can be said."""
    untold = []
    for one in document["operators"]:
        at = one.get("at") or (f"{one['name']} with a generator" if one["seeded"] else one["name"])
        if one.get("died"):
            yield _death(part, document, at, one)
        elif one["verdict"] == "grows":
            yield _growing(part, document, one, at)
        elif one["verdict"] == "unknown":
            untold.append(f"{at}: {one.get('reason') or one.get('error', '')}")
    yield _scan(part, document, len(document["operators"]), untold)


def _growing(part: Capture, document: Document, one: Document, at: str) -> Operator:
    placement: Placement = "grows"
    small, large, floor = (one[name] * 1e6 for name in ("small", "large", "floor"))
    said = f"launch {small:.0f} µs for {document['small']} numbers, {large:.0f} µs for {document['large']}"
    return Operator(
        origin=part.said(f"{at}: {said}; a copy takes {floor:.0f} µs"),
        name=one["name"],
        device=document["device"],
        detector="timing",
        placement=placement,
        shape=f"[{document['large']}]",
        signs=(said,),
        host_us=round(large, 1),
    )


def _death(part: Capture, document: Document, at: str, one: Document) -> OperatorDeath:
    return OperatorDeath(
        origin=part.said(f"{at}: {one['error']}"),
        detector=document["how"],
        device=document["device"],
        at=at,
        error=one["error"],
        said=tuple(one.get("printed", ())),
    )


def _scan(part: Capture, document: Document, looked: int, untold: list[str]) -> OperatorScan:
    return OperatorScan(
        origin=part.said(f'"how": "{document["how"]}"'),
        detector=document["how"],
        device=document["device"],
        looked=looked,
        seconds=document["seconds"],
        untold=tuple(untold[:SHOWN]) + ((f"… ({len(untold)})",) if len(untold) > SHOWN else ()),
        left=sum(one.partition(": ")[2].startswith(LEFT) for one in untold),
    )
