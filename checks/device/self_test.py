"""What each device did in diag's own self-test: memory, links to the host, products, operators, and how it ended.

Runs only where it is asked for (`--deep`, `diag device`): it uses each device for some seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from diag.api import (
    Capture,
    DeviceMemory,
    DeviceNumerics,
    DeviceTest,
    Direction,
    Fact,
    HostLink,
    How,
    MatrixProduct,
    Origin,
    Recognise,
    Unavailable,
    by_torch,
    probe,
)

SCHEMA = "diag/device/1"
GB, TERA = 1e9, 1e12
KINDS = (DeviceTest, DeviceMemory, HostLink, MatrixProduct, DeviceNumerics)
NO_TORCH = "No module named 'torch'"
DIRECTIONS: dict[str, Direction] = {"to the device": "to-device", "from the device": "from-device"}


@probe(
    "device/self-test",
    tells=KINDS,
    measure="device",
    interpreter="target",
    cost="deep",
    timeout=900.0,
    spared=by_torch(1),
    recognise=Recognise(literals=(f'"schema": "{SCHEMA}"',), lines=0),
)
def self_test(capture: Capture) -> Iterator[Fact]:
    """What was measured of each device, or why nothing was."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    devices = document.get("devices", [])
    if not devices:
        reason = document.get("error") or document.get("unseen") or "torch sees no accelerator"
        how: How = "missing" if NO_TORCH in reason or reason.startswith("torch sees") else "failed"
        kinds = tuple(kind.__name__ for kind in KINDS)
        yield Unavailable(origin=capture.said(reason), what="device/self-test", how=how, reason=reason, tells=kinds)
    for one in devices:
        yield _test(capture, one)
        for step in one["steps"]:
            if "error" not in step:
                yield (_answered if "operator" in step else _measure)(capture, one, step)


def _test(capture: Capture, one: dict[str, Any]) -> DeviceTest:
    phase, error = one.get("phase", ""), one.get("error", "")
    return DeviceTest(
        origin=capture.said(f"{one['device']} {one.get('name', '')}: {error or 'done'} ({phase})"),
        device=one["device"],
        name=one.get("name", ""),
        address=one.get("address", ""),
        memory_bytes=one.get("memory_bytes"),
        phase=phase,
        error=error,
        done=sum("error" not in step for step in one["steps"]),
        untold=tuple(f"{step['step']}: {step['error']}" for step in one["steps"] if "error" in step),
        seconds=one.get("seconds"),
        free_bytes=one.get("free"),
        after_bytes=one.get("after"),
    )


def _answered(capture: Capture, one: dict[str, Any], step: dict[str, Any]) -> DeviceNumerics:
    """What an operator answered, as a fact."""
    told = {name: tuple(step.get(name, ())) for name in ("shape", "rows", "columns")}
    wrong, elements, looks = step["wrong"], step["elements"], step.get("looks", "")
    said = f"{one['device']} {step['step']}: {wrong} of {elements} wrong {looks}".rstrip()
    return DeviceNumerics(
        origin=capture.said(said),
        device=one["device"],
        name=one.get("name", ""),
        operator=step["operator"],
        dtype=step["type"],
        elements=elements,
        wrong=wrong,
        worst=step.get("worst"),
        allowed=step.get("allowed"),
        looks=looks,
        extent=step.get("extent", ""),
        correct=step["correct"],
        **told,
    )


def _measure(capture: Capture, one: dict[str, Any], step: dict[str, Any]) -> Fact:
    """A step as a fact: what it moved or reckoned, by the seconds of a call."""
    name, seconds, fastest = step["step"], step["seconds"], step["fastest"]
    if not 0 < min(seconds, fastest) <= max(seconds, fastest) < float("inf"):
        raise ValueError(seconds)
    amount = step.get("operations") or step.get("bytes") or step["read"] + step["written"]
    unit = TERA if "operations" in step else GB
    told: dict[str, Any] = {
        "origin": _origin(capture, one, step, amount),
        "device": one["device"],
        "name": one.get("name", ""),
        "value": _rounded(amount / seconds / unit),
        "best": _rounded(amount / fastest / unit),
        "seconds": seconds,
        "samples": step.get("samples"),
        "correct": step.get("correct"),
    }
    if "type" in step:
        return MatrixProduct(**told, dtype=step["type"], size=step["size"], wrong=step.get("wrong", 0))
    if "way" in step:
        return HostLink(**told, direction=DIRECTIONS[step["way"]], pinned=step["pinned"], bytes=step["bytes"])
    return DeviceMemory(**told, how=name.rpartition(" ")[2], bytes=step["read"])


def _origin(capture: Capture, one: dict[str, Any], step: dict[str, Any], amount: int) -> Origin:
    what = "operations" if "operations" in step else "bytes"
    return capture.said(f"{one['device']} {step['step']}: {amount} {what} in {step['seconds']:.6f} s")


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")
