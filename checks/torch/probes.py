"""What torch says of itself: its own child, and its warnings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Fact,
    Line,
    Recognise,
    TorchBuild,
    Unavailable,
    probe,
    torch_backend,
)

TOO_OLD = re.compile(r"driver on your system is too old \(found version (\d{4,6})\)")
UNFIT, SUPPORTS = (
    " is not compatible with the current PyTorch",
    "The current PyTorch install supports CUDA capabilities ",
)
CAPABILITY = " with CUDA capability "
NAMES = ("NVIDIA", "Tesla", "GeForce", "TITAN", "Quadro")
"""How the name of a device begins, whatever a launcher printed before it."""
ARCHITECTURE = re.compile(r"(?:sm|compute)_\w{1,6}")
NO_TORCH = "No module named 'torch'"
NOT_FOUND = re.compile(r"^\W{0,3}(?:\S.* )?ModuleNotFoundError: No module named 'torch'\s*$")
"""Not where it is set in by more: so pip prints what a package's build met in an environment of its own."""


@probe(
    "torch",
    tells=(TorchBuild, Accelerator),
    measure="torch_env",
    interpreter="target",
    cost="import",
    timeout=60.0,
    recognise=Recognise(literals=('"schema": "diag/torch-env/1"',), lines=0),
)
def torch(capture: Capture) -> Iterator[Fact]:
    """What torch answered in its own process, or why it could not."""
    document = capture.document("diag/torch-env/1")
    if document is None:
        return
    if error := document.get("error"):
        yield Unavailable(
            origin=capture.said(error),
            what="torch",
            reason=error,
            how="missing" if NO_TORCH in error else "failed",
            tells=("TorchBuild",),
        )
        return
    build, origin = document["build"], capture.said(f"torch {document['build']['version']}")
    backend, version = torch_backend(build)
    yield TorchBuild(
        origin=origin,
        version=build["version"],
        backend=backend,
        backend_version=version,
        debug=build["debug"],
        available=document["available"],
        architectures=tuple(build["architectures"]),
    )
    yield from (_listed(capture, device) for device in document["devices"])


def _listed(capture: Capture, device: dict[str, Any]) -> Accelerator:
    name = device.get("name", "")
    return Accelerator(
        origin=capture.said(name),
        name=name,
        index=device["index"],
        memory_mib=device.get("memory_bytes", 0) / 2**20 or None,
        architecture=device.get("architecture", ""),
        seen_by="torch",
    )


@probe(
    "torch/driver-warning",
    tells=(Driver,),
    recognise=Recognise(literals=("driver on your system is too old",), each=True, lines=50),
)
def driver_warning(capture: Capture) -> Iterator[Fact]:
    """The CUDA version that the driver offers, as torch found it: 11060 is 11.6."""
    told: set[int] = set()
    for line in capture.lines():
        if (found := TOO_OLD.search(line.text)) and (number := int(found[1])) not in told:
            told.add(number)
            offers = f"{number // 1000}.{number % 1000 // 10}"
            yield Driver(origin=capture.origin(line), vendor="nvidia", offers=offers, refused=True)


@probe(
    "torch/architecture-warning",
    tells=(Accelerator, TorchBuild),
    recognise=Recognise(literals=(UNFIT, SUPPORTS), each=True, lines=8),
)
def architecture_warning(capture: Capture) -> Iterator[Fact]:
    """The devices that torch has no kernels for, and the architectures that it has."""
    told: set[tuple[str, ...]] = set()
    for line in capture.lines():
        fact = _unfit(capture, line) or _supports(capture, line)
        if fact and (content := tuple(map(str, fact.told().values()))) not in told:
            told.add(content)
            yield fact


def _unfit(capture: Capture, line: Line) -> Accelerator | None:
    """The device of the warning's first line, whatever a launcher printed before its name."""
    before, capability, after = line.text.partition(CAPABILITY)
    architecture = ARCHITECTURE.match(after)
    if not (capability and architecture and UNFIT in after):
        return None
    starts = [before.find(word) for word in NAMES if word in before]
    name = before[min(starts) :] if starts else before.rpartition("| ")[2]
    return Accelerator(
        origin=capture.origin(line),
        vendor="nvidia",
        name=name.strip(),
        architecture=architecture[0],
        seen_by="torch",
    )


def _supports(capture: Capture, line: Line) -> TorchBuild | None:
    words = (word.strip(".,") for word in line.text.partition(SUPPORTS)[2].split())
    listed = tuple(takewhile(ARCHITECTURE.fullmatch, words))
    return TorchBuild(origin=capture.origin(line), backend="cuda", architectures=listed) if listed else None


@probe(
    "torch/import-error",
    tells=(TorchBuild,),
    recognise=Recognise(literals=(NO_TORCH,), pattern=NOT_FOUND.pattern, each=True, lines=10_000),
)
def import_error(capture: Capture) -> Iterator[Fact]:
    """A traceback that ends in torch not being there."""
    if line := next((line for line in capture.lines() if NOT_FOUND.match(line.text)), None):
        origin, reason = capture.origin(line), line.text.strip()
        yield Unavailable(origin=origin, what="torch", reason=reason, how="missing", tells=("TorchBuild",))
