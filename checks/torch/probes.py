"""What torch says of itself: its own child, and its warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from diag.api import (
    Accelerator,
    Capture,
    DeviceTrial,
    Driver,
    Fact,
    How,
    Library,
    Line,
    Recognise,
    Runtime,
    TorchBuild,
    Unavailable,
    expression,
    probe,
    torch_backend,
)

TOO_OLD = expression(r"driver on your system is too old \(found version (\d{4,6})\)")
UNFIT, SUPPORTS = (
    " is not compatible with the current PyTorch",
    "The current PyTorch install supports CUDA capabilities ",
)
EXTENSIONS = ("torch_npu", "torch_xmlir", "torch_musa", "torch_mlu", "intel_extension_for_pytorch")
"""What makes torch know further devices; from 2.5 on it loads most of them by itself."""
LIBRARIES = (
    *("libnccl", "librccl", "libcudart", "libcuda", "libcublas", "libcudnn", "libnvrtc", "libnvshmem", "libnvidia-ml"),
    *("libamdhip64", "libhsa-runtime64", "libMIOpen", "librocblas", "libhipblas", "libhccl", "libascendcl", "libhcom"),
    *("libxpurt", "libxpucuda", "libbkcl", "libccl", "libsycl", "libze_", "libmpi", "libucc", "libucp", "libucs"),
    *("libibverbs", "libstdc++", "libgomp", "libiomp5", "libomp", "libtorch_", "libc10", "libpython"),
)
TELLERS = {"ncclGetVersion": "nccl", "cudaRuntimeGetVersion": "cuda"}
CAPABILITY = " with CUDA capability "
NAMES = ("NVIDIA", "Tesla", "GeForce", "TITAN", "Quadro")
"""How the name of a device begins, whatever a launcher printed before it."""
ARCHITECTURE = expression(r"(?:sm|compute)_\w{1,6}")
NO_TORCH = "No module named 'torch'"
NOT_FOUND = expression(r"^\W{0,3}(?:\S.* )?ModuleNotFoundError: No module named 'torch'\s*$")
"""Not where it is set in by more: so pip prints what a package's build met in an environment of its own."""


@probe(
    "torch",
    tells=(TorchBuild, Accelerator, DeviceTrial, Library, Runtime, Driver),
    measure="torch_env",
    arguments=EXTENSIONS,
    interpreter="target",
    cost="import",
    timeout=150.0,
    recognise=Recognise(literals=('"schema": "diag/torch-env/1"',), lines=0),
)
def torch(capture: Capture) -> Iterator[Fact]:
    """What torch answered in its own process, or why it could not."""
    document = capture.document("diag/torch-env/1") or {}
    if error := document.get("error"):
        how: How = "missing" if NO_TORCH in error else "failed"
        yield _unavailable(capture, "torch", error, how=how, tells="TorchBuild")
    elif document.get("build"):
        yield _build(capture, document)
        yield from (_listed(capture, device) for device in document["devices"])
        yield from _trials(capture, document)
        yield from _loaded(capture, document)
        yield from _warned(capture, document.get("warnings", ()))
        if death := document.get("unseen"):
            yield _unavailable(capture, "torch/devices", death, how="failed", tells="Accelerator")


def _unavailable(capture: Capture, what: str, reason: str, *, how: How, tells: str) -> Unavailable:
    return Unavailable(origin=capture.said(reason), what=what, reason=reason, how=how, tells=(tells,))


def _build(capture: Capture, document: dict[str, Any]) -> TorchBuild:
    build = document["build"]
    backend, version = torch_backend(build)
    architectures = document.get("architectures", build.get("architectures", ()))
    return TorchBuild(
        origin=capture.said(f"torch {build['version']}"),
        version=build["version"],
        backend=backend,
        backend_version=version,
        debug=build.get("debug"),
        available=document.get("available"),
        architectures=tuple(architectures),
        cxx11_abi=build.get("cxx11_abi"),
        collectives=tuple(build.get("collectives", ())),
    )


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


def _trials(capture: Capture, document: dict[str, Any]) -> Iterator[DeviceTrial]:
    """Whether a kernel ran on each device; a library that only refuses to be used in a fork says nothing of it."""
    for one in document.get("trials", ()):
        backend, error = document.get("backend", ""), one.get("error", "")
        if "forked subprocess" not in error:
            origin = capture.said(error or f"{backend}:{one['index']} ran a kernel")
            seconds = one.get("answer")
            yield DeviceTrial(
                origin=origin, backend=backend, index=one["index"], ok=not error, error=error, seconds=seconds
            )


def _loaded(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    """The libraries in memory that the field knows, with their versions, and the one torch was compiled against."""
    rocm = document["build"].get("hip")
    if version := document["build"].get("nccl"):
        name, origin = "rccl" if rocm else "nccl", capture.said(f"torch was compiled against {version}")
        yield Runtime(origin=origin, name=name, version=version, kind="compiled")
    for file in document.get("libraries", ()):
        name, _, version = file.rpartition("/")[2].partition(".so")
        if name.startswith(LIBRARIES):
            yield Library(origin=capture.said(file), name=name, path=file, version=version.strip("."), process="torch")
    for function, number in document.get("versions", {}).items():
        origin = capture.said(f"{function}: {number}")
        if function == "cuDriverGetVersion" and not document.get("extensions"):
            yield Driver(origin=origin, vendor="nvidia", offers=_cuda(number))
        elif function in TELLERS:
            version = _cuda(number) if function == "cudaRuntimeGetVersion" else _nccl(number)
            name = "rccl" if rocm and TELLERS[function] == "nccl" else TELLERS[function]
            yield Runtime(origin=origin, name=name, version=version, kind="loaded")


def _cuda(number: int) -> str:
    """A CUDA version from its number: 11060 is 11.6."""
    return f"{number // 1000}.{number % 1000 // 10}"


def _nccl(number: int) -> str:
    """A NCCL version from its code: 22705 is 2.27.5, and up to 2.8 2804 is 2.8.4 (`NCCL_VERSION` of `nccl.h`)."""
    scale = 10_000 if number >= 10_000 else 1_000
    return f"{number // scale}.{number % scale // 100}.{number % 100}"


def _warned(capture: Capture, warnings: Iterable[str]) -> Iterator[Fact]:
    """What torch warned of while it was asked, read as in a log."""
    for text in (line for warning in warnings for line in warning.split("\n")):
        line = Line(capture.first, text)
        if told := _refused(capture, line) or _unfit(capture, line) or _supports(capture, line):
            yield told


@probe(
    "torch/driver-warning",
    tells=(Driver,),
    recognise=Recognise(literals=("driver on your system is too old",), each=True, lines=50),
)
def driver_warning(capture: Capture) -> Iterator[Fact]:
    """The CUDA version that the driver offers, as torch found it: 11060 is 11.6."""
    told: set[str] = set()
    for line in capture.lines():
        if (found := _refused(capture, line)) and found.offers not in told:
            told.add(found.offers)
            yield found


def _refused(capture: Capture, line: Line) -> Driver | None:
    """What torch says of a driver that is too old for it."""
    found = TOO_OLD.search(line.text)
    origin = capture.origin(line)
    return Driver(origin=origin, vendor="nvidia", offers=_cuda(int(found[1])), refused=True) if found else None


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
