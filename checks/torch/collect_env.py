"""torch's `collect_env`, the most pasted report of the field, and what engines add to it.

Reads the old form (`Key: value`) and the sectioned one (`Key    : value`), either cut anywhere. Its "CUDA runtime
version" is the local toolkit's (nvcc), not what torch was built for; its list of devices is that of `nvidia-smi -L`,
or on ROCm torch's first device alone. "Could not collect", "N/A" and "No CUDA" are told as nothing.
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
    RuntimeKind,
    TorchBuild,
    canonical,
    local,
    numbers,
    probe,
)

Fields = Mapping[str, tuple[Line, str]]

NOTHING = ("", "n/a", "could not collect", "no cuda", "none", "not found")
NOT_BUILT = ("none", "could not collect")
"""What the report prints where `torch.version.cuda` is None and torch is no ROCm build either."""
ANSWERS = {"true": True, "yes": True, "false": False, "no": False}
BORDER = re.compile(r"^\W*(?:Collecting environment information|System Info\s*$)")
DEVICES, DRIVER = "gpu models and configuration", "nvidia driver version"
WANTED = {
    *("pytorch version", "is debug build", "cuda used to build pytorch", "rocm used to build pytorch"),
    *("is cuda available", "is xpu available", "cuda runtime version", "hip runtime version", "rocm version"),
    *(DEVICES, DRIVER, "vllm version", "sglang version", "sglang", "python version", "python platform"),
    *("os", "libc version", "hypervisor vendor", "model name", "cpu(s)"),
}
KEY_CAP = 48
RUNTIMES: tuple[tuple[str, str, RuntimeKind], ...] = (
    ("cuda runtime version", "cuda", "toolkit"),
    ("rocm version", "rocm", "toolkit"),
    ("hip runtime version", "rocm", "library"),
)
PIP = re.compile(r"\[pip3?\]\s+([A-Za-z0-9][\w.\-]*)==(\d\S*)")
CONDA = re.compile(r"\[conda\]\s+([A-Za-z0-9][\w.\-]*)\s+(\d\S*)\s+\S")
CONDA_NAMES = {"pytorch": "torch"}
LISTED = re.compile(r"^[\W_]*GPU (\d{1,4})\s*[:\uff1a]\s*(\S.*)")
PART = re.compile(r"^\s*MIG \S")
ROCM = re.compile(r"\((gfx[0-9a-f]+)[:)]")
MACHINES = "x86_64|aarch64|arm64|ppc64le|riscv64|loongarch64|s390x"
PLATFORM = re.compile(rf"^Linux-(.+?)-({MACHINES})(?:-with|$)")
OS = re.compile(rf"^(.*\S)\s+\(({MACHINES})\)$")
MAKERS = (
    ("nvidia", ("NVIDIA", "Tesla", "GeForce", "TITAN", "Quadro")),
    ("amd", ("AMD", "Radeon")),
    ("intel", ("Intel",)),
)


@probe(
    "collect-env",
    tells=(TorchBuild, Accelerator, Driver, Runtime, Python, Host, Package, Engine),
    recognise=Recognise(
        literals=("Collecting environment information", "System Info", "PyTorch version", "PyTorch Info"),
        pattern=BORDER.pattern + r"|^\W*(?:PyTorch Info\s*$|PyTorch version\s*[:\uff1a])",
    ),
)
def collect_env(capture: Capture) -> Iterator[Fact]:
    """What one report tells, each fact with the line it stands in."""
    fields: dict[str, tuple[Line, str]] = {}
    packages: dict[tuple[str, str], Package] = {}
    devices: list[Accelerator] = []
    listing = False
    for line in capture.lines():
        if "pytorch version" in fields and BORDER.match(line.text):
            break
        key, value = _field(line.text)
        if key in WANTED:
            fields.setdefault(key, (line, value))
            listing = key == DEVICES
        if listing and (device := _device(capture, line, value if key == DEVICES else line.text.strip())):
            devices.append(device)
        elif key != DEVICES and not PART.match(line.text):
            listing = False
        if package := _package(capture, line):
            packages.setdefault((package.name, package.version), package)
    told = {name: pair for name, pair in fields.items() if pair[1].lower() not in NOTHING}
    yield from (*_torch(capture, fields, told), *devices, *_machine(capture, told), *packages.values())


def _field(text: str) -> tuple[str, str]:
    """A line's key in lower case and its value; without a colon both are empty."""
    key, colon, value = text.replace("\uff1a", ":", 1).partition(":")
    if not colon or len(key) > KEY_CAP:
        return "", ""
    return key.strip(" \t|>*#_-\u00a0").lower(), value.strip(" \t*")


def _device(capture: Capture, line: Line, text: str) -> Accelerator | None:
    """One device of the list; parts of one (MIG) are none of their own."""
    if found := LISTED.match(text):
        name, index, architecture = found[2].partition(" (UUID")[0].strip(), int(found[1]), ""
    elif found := ROCM.search(text):
        name, index, architecture = text[: found.start()].strip(), 0, found[1]
    elif _maker(text):
        name, index, architecture = text.partition("NoGCNArchName")[0], None, ""
    else:
        return None
    return Accelerator(
        origin=capture.origin(line),
        vendor="amd" if architecture else _maker(name),
        name=name,
        index=index,
        architecture=architecture,
        seen_by="torch" if architecture else "tool",
    )


def _maker(name: str) -> str:
    return next((maker for maker, words in MAKERS if name.startswith(words)), "")


def _package(capture: Capture, line: Line) -> Package | None:
    """A package that is listed; conda calls one of them by another name than its distribution's."""
    if found := PIP.search(line.text):
        return Package(origin=capture.origin(line), name=canonical(found[1]), version=found[2], installer="pip")
    if found := CONDA.search(line.text):
        name = canonical(found[1])
        installer = "pip" if line.text.split()[-1] == "pypi" else "conda"
        return Package(
            origin=capture.origin(line), name=CONDA_NAMES.get(name, name), version=found[2], installer=installer
        )
    return None


def _torch(capture: Capture, fields: Fields, told: Fields) -> Iterator[TorchBuild]:
    if "pytorch version" not in told:
        return
    line, words = told["pytorch version"]
    version = words.split()[0]
    if not numbers(version):
        return
    backend, backend_version = _backend(version, fields, told)
    asked = "is xpu available" if backend == "xpu" else "is cuda available"
    debug = ANSWERS.get(fields.get("is debug build", (line, ""))[1].lower())
    answered, answer = fields.get(asked, (line, ""))
    yield TorchBuild(
        origin=capture.origin(line),
        version=version,
        backend=backend,
        backend_version=backend_version,
        debug=debug,
        available=ANSWERS.get(answer.lower()),
        answered=capture.origin(answered) if answer.lower() in ANSWERS else None,
    )


def _backend(version: str, fields: Fields, told: Fields) -> tuple[str, str]:
    """What torch was built for: as the report says, else by the local part of its version."""
    for name in ("rocm", "cuda"):
        if pair := told.get(f"{name} used to build pytorch"):
            return name, pair[1].split()[0]
    part = local(version)
    for name, start in (("rocm", "rocm"), ("cuda", "cu"), ("xpu", "xpu"), ("cpu", "cpu")):
        if part.startswith(start) and (name != "cuda" or part[2:3].isdigit()):
            return name, _numbered(part[len(start) :])
    answer = fields.get("cuda used to build pytorch")
    plain = not part or part.startswith("git")
    return ("cpu" if answer and answer[1].lower() in NOT_BUILT and plain else ""), ""


def _numbered(part: str) -> str:
    """The version in a local part: `121` is 12.1, `7.2` is itself."""
    return f"{part[:-1]}.{part[-1]}" if part.isdigit() and len(part) > 1 else part if part[:1].isdigit() else ""


def _machine(capture: Capture, told: Fields) -> Iterator[Fact]:
    """Driver, runtimes, engines and interpreter, then the host."""
    if (pair := told.get(DRIVER)) and pair[1][0].isdigit():
        yield Driver(origin=capture.origin(pair[0]), vendor="nvidia", version=pair[1].split()[0])
    for field, name, kind in RUNTIMES:
        if (pair := told.get(field)) and pair[1][0].isdigit():
            origin, version = capture.origin(pair[0]), pair[1].split()[0]
            yield Runtime(origin=origin, name=name, version=version, kind=kind)
    for field, name in (("vllm version", "vllm"), ("sglang", "sglang"), ("sglang version", "sglang")):
        if (pair := told.get(field)) and pair[1][0].isdigit():
            yield Engine(origin=capture.origin(pair[0]), name=name, version=pair[1].split()[0].partition("@")[0])
    if (pair := told.get("python version")) and pair[1][0].isdigit():
        yield Python(origin=capture.origin(pair[0]), version=pair[1].split()[0])
    yield from _host(capture, told)


def _host(capture: Capture, told: Fields) -> Iterator[Host]:
    if pair := told.get("os"):
        found = OS.match(pair[1])
        name, machine = (found[1], found[2]) if found else (pair[1], "")
        yield Host(origin=capture.origin(pair[0]), os=name, machine=machine)
    if pair := told.get("libc version"):
        yield Host(origin=capture.origin(pair[0]), libc=pair[1])
    platform = told.get("python platform")
    virtual = "wsl" if platform and "microsoft" in platform[1].lower() else ""
    if platform and (found := PLATFORM.match(platform[1])):
        yield Host(origin=capture.origin(platform[0]), virtual=virtual, kernel=found[1], machine=found[2])
    if (pair := told.get("hypervisor vendor")) and not virtual:
        yield Host(origin=capture.origin(pair[0]), virtual=pair[1].lower())
    if pair := told.get("model name"):
        yield Host(origin=capture.origin(pair[0]), cpu=pair[1])
    if (pair := told.get("cpu(s)")) and re.fullmatch(r"\d{1,6}", pair[1]):
        yield Host(origin=capture.origin(pair[0]), cpus=int(pair[1]))
