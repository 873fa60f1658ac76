"""torch's `collect_env`, the most pasted report of the field, and what engines add to it.

Reads the old form (`Key: value`) and the sectioned one (`Key    : value`), either cut anywhere. Its "CUDA runtime
version" is the local toolkit's (nvcc), not what torch was built for. "Could not collect" is told as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Engine,
    Fact,
    Host,
    Line,
    Package,
    Python,
    Recognise,
    Runtime,
    TorchBuild,
    canonical,
    probe,
)

FIELD = re.compile(r"^[\W_]*([A-Za-z][\w /().-]*?)\s*[:\uff1a]\s*(.*?)\s*$")
NOTHING = {"", "n/a", "could not collect", "no cuda", "none", "not found"}
PIP = re.compile(r"\[pip3?\]\s+([A-Za-z0-9][\w.\-]*)==(\S+)")
CONDA = re.compile(r"\[conda\]\s+([A-Za-z0-9][\w.\-]*)\s+(\d\S*)\s+\S+")
DEVICE = re.compile(r"\bGPU (\d+)\s*[:\uff1a]\s*(\S.*?)\s*(?:\(UUID.*)?$")
PLATFORM = re.compile(r"Linux-(?P<kernel>.+?)-(?P<machine>x86_64|aarch64|ppc64le)\b")
MAKERS = (("nvidia", ("NVIDIA", "Tesla", "GeForce", "TITAN", "Quadro")), ("amd", ("AMD", "Radeon")))


@probe(
    "collect-env",
    tells=(TorchBuild, Accelerator, Driver, Runtime, Python, Host, Package, Engine),
    recognise=Recognise(
        literals=("Collecting environment information", "System Info", "PyTorch version", "PyTorch Info"),
        pattern=r"^\W*(?:Collecting environment information|System Info\s*$|PyTorch Info\s*$|PyTorch version\s*:)",
    ),
)
def collect_env(capture: Capture) -> Iterator[Fact]:
    """What one report tells, each fact with the line it stands in."""
    fields: dict[str, tuple[Line, str]] = {}
    for line in capture.lines():
        if found := FIELD.match(line.text):
            fields.setdefault(found[1].lower(), (line, found[2]))
        yield from _listed(capture, line, fields)
    told = {name: pair for name, pair in fields.items() if pair[1].strip().lower() not in NOTHING}
    yield from _torch(capture, fields, told)
    yield from _machine(capture, told)


def _listed(capture: Capture, line: Line, fields: Mapping[str, object]) -> Iterator[Fact]:
    """The devices and packages, which come a line each."""
    if found := PIP.search(line.text):
        yield Package(origin=capture.origin(line), name=canonical(found[1]), version=found[2], installer="pip")
    elif found := CONDA.search(line.text):
        yield Package(origin=capture.origin(line), name=canonical(found[1]), version=found[2], installer="conda")
    elif "gpu models and configuration" in fields and (found := DEVICE.search(line.text)):
        name = found[2]
        vendor = next((maker for maker, words in MAKERS if name.startswith(words)), "")
        yield Accelerator(origin=capture.origin(line), vendor=vendor, name=name, index=int(found[1]), seen_by="torch")


def _torch(
    capture: Capture, fields: Mapping[str, tuple[Line, str]], told: Mapping[str, tuple[Line, str]]
) -> Iterator[Fact]:
    if "pytorch version" not in told:
        return
    line, version = told["pytorch version"]
    cuda, rocm = (told.get(f"{name} used to build pytorch", (line, ""))[1] for name in ("cuda", "rocm"))
    known = "cuda used to build pytorch" in fields
    backend = "rocm" if rocm else "cuda" if cuda else "cpu" if version.endswith("+cpu") or known else ""
    answer = told.get("is cuda available", (line, ""))[1].lower()
    yield TorchBuild(
        origin=capture.origin(line),
        version=version.split()[0],
        backend="xpu" if "+xpu" in version else backend,
        backend_version=rocm or cuda,
        available={"true": True, "yes": True, "false": False, "no": False}.get(answer),
    )


def _machine(capture: Capture, told: Mapping[str, tuple[Line, str]]) -> Iterator[Fact]:
    if pair := told.get("nvidia driver version"):
        yield Driver(origin=capture.origin(pair[0]), vendor="nvidia", version=pair[1].split()[0])
    for field, name in (("cuda runtime version", "cuda"), ("hip runtime version", "rocm")):
        if pair := told.get(field):
            yield Runtime(origin=capture.origin(pair[0]), name=name, version=pair[1].split()[0], kind="toolkit")
    for field, name in (("vllm version", "vllm"), ("sglang", "sglang"), ("sglang version", "sglang")):
        if pair := told.get(field):
            yield Engine(origin=capture.origin(pair[0]), name=name, version=pair[1].split()[0])
    if pair := told.get("python version"):
        yield Python(origin=capture.origin(pair[0]), version=pair[1].split()[0])
    yield from _host(capture, told)


def _host(capture: Capture, told: Mapping[str, tuple[Line, str]]) -> Iterator[Host]:
    if pair := told.get("os"):
        yield Host(origin=capture.origin(pair[0]), os=pair[1])
    if pair := told.get("libc version"):
        yield Host(origin=capture.origin(pair[0]), libc=pair[1])
    if pair := told.get("python platform"):
        found = PLATFORM.search(pair[1])
        virtual = "wsl" if "microsoft" in pair[1].lower() else ""
        if found:
            yield Host(
                origin=capture.origin(pair[0]), virtual=virtual, kernel=found["kernel"], machine=found["machine"]
            )
    if pair := told.get("model name"):
        yield Host(origin=capture.origin(pair[0]), cpu=pair[1])
    if (pair := told.get("cpu(s)")) and pair[1].isdigit():
        yield Host(origin=capture.origin(pair[0]), cpus=int(pair[1]))
