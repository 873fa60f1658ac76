"""What torch says of itself: its own child, its warnings, and the list that people write by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
)

TOO_OLD = re.compile(r"driver on your system is too old \(found version (\d+)\)")
UNFIT = re.compile(r"^(?:.*\| )?\s*(\S.*?) with CUDA capability (sm_\d+\w*) is not compatible with the current PyTorch")
SUPPORTS = re.compile(r"The current PyTorch install supports CUDA capabilities ((?:sm_\d+\w*\s*|compute_\d+\w*\s*)+)")
NO_TORCH = "No module named 'torch'"
FORM = re.compile(r"^\s*[-*]\s+(GPU|PyTorch [Vv]ersion|Driver Version)\b[^:]*:\s*(\S.*?)\s*$")


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
            origin=capture.origin(Line(1, error)),
            what="torch",
            reason=error,
            how="missing" if NO_TORCH in error else "failed",
            tells=("TorchBuild",),
        )
        return
    build, origin = document["build"], capture.origin(Line(1, f"torch {document['build']['version']}"))
    backend, version = backend_of(build)
    yield TorchBuild(
        origin=origin,
        version=build["version"],
        backend=backend,
        backend_version=version,
        debug=build["debug"],
        available=document["available"],
        architectures=tuple(build["architectures"]),
    )
    for device in document["devices"]:
        yield Accelerator(
            origin=capture.origin(Line(1, device.get("name", ""))),
            vendor=_vendor(device.get("name", "")),
            name=device.get("name", ""),
            index=device["index"],
            memory_mib=device.get("memory_bytes", 0) / 2**20 or None,
            architecture=device.get("architecture", ""),
            seen_by="torch",
        )


def backend_of(build: dict[str, Any]) -> tuple[str, str]:
    """The runtime a torch was built for, and its version, from the words of `torch.version`."""
    for word, name in (("hip", "rocm"), ("cuda", "cuda"), ("xpu", "xpu")):
        if build.get(word):
            return name, str(build[word])
    return "cpu", ""


def _vendor(name: str) -> str:
    return next((vendor for vendor in ("nvidia", "amd", "intel") if name.lower().startswith(vendor)), "")


@probe(
    "torch/driver-warning",
    tells=(Driver,),
    recognise=Recognise(literals=("driver on your system is too old",), each=True, lines=10_000),
)
def driver_warning(capture: Capture) -> Iterator[Fact]:
    """The CUDA version that the driver offers, as torch found it: 11060 is 11.6."""
    for line in capture.lines():
        if found := TOO_OLD.search(line.text):
            number = int(found[1])
            offers = f"{number // 1000}.{number % 1000 // 10}"
            yield Driver(origin=capture.origin(line), vendor="nvidia", offers=offers)
            return


@probe(
    "torch/architecture-warning",
    tells=(Accelerator, TorchBuild),
    recognise=Recognise(
        literals=("is not compatible with the current PyTorch", "The current PyTorch install supports"),
        lines=3,
    ),
)
def architecture_warning(capture: Capture) -> Iterator[Fact]:
    """The device that torch has no kernels for, and the architectures that it has."""
    for line in capture.lines():
        if found := UNFIT.search(line.text):
            yield Accelerator(
                origin=capture.origin(line),
                vendor="nvidia",
                name=found[1],
                architecture=found[2],
                seen_by="torch",
            )
        elif found := SUPPORTS.search(line.text):
            yield TorchBuild(origin=capture.origin(line), backend="cuda", architectures=tuple(found[1].split()))


@probe(
    "torch/import-error",
    tells=(TorchBuild,),
    recognise=Recognise(literals=(NO_TORCH,), pattern=r"^\W*ModuleNotFoundError", each=True, lines=10_000),
)
def import_error(capture: Capture) -> Iterator[Fact]:
    """A traceback that ends in torch not being there."""
    line = next(iter(capture.lines()))
    reason = line.text.strip()
    yield Unavailable(origin=capture.origin(line), what="torch", reason=reason, how="missing", tells=("TorchBuild",))


@probe(
    "issue-form",
    tells=(TorchBuild, Accelerator, Driver),
    recognise=Recognise(
        literals=("GPU", "PyTorch Version", "PyTorch version", "Driver Version"),
        pattern=FORM.pattern,
        each=True,
        lines=6,
        at_least=2,
    ),
)
def issue_form(capture: Capture) -> Iterator[Fact]:
    """The bullets in which people name their device, driver and torch by hand."""
    for line in capture.lines():
        found = FORM.match(line.text)
        if found is None:
            continue
        key, value = found[1].lower(), found[2]
        if key == "gpu":
            yield Accelerator(origin=capture.origin(line), vendor=_vendor(value), name=value)
        elif not value[0].isdigit():
            continue
        elif key == "driver version":
            yield Driver(origin=capture.origin(line), vendor="nvidia", version=value.split()[0])
        else:
            yield TorchBuild(origin=capture.origin(line), version=value.split()[0])
