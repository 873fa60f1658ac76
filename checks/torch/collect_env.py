"""torch's `collect_env`, the most pasted report of the field, and what engines add to it.

Reads the old form (`Key: value`) and the sectioned one (`Key    : value`), either cut anywhere. Its "CUDA runtime
version" is the local toolkit's (nvcc), not what torch was built for; its list of devices is that of `nvidia-smi -L`, or
on ROCm torch's first device alone. Intel's devices are listed twice: those on the bus ("onboard") and those torch
detects. "Could not collect", "N/A" and "No CUDA" are told as nothing. Its packages are those of the `pip3` found first,
which may be another interpreter's. The topology that vLLM adds and environment variables are read elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Engine,
    Fact,
    Host,
    Line,
    Package,
    Partition,
    Python,
    Recognise,
    Runtime,
    RuntimeKind,
    SeenBy,
    TorchBuild,
    canonical,
    expression,
    local,
    numbers,
    probe,
)

Fields = Mapping[str, tuple[Line, str]]

NOTHING = ("", "n/a", "could not collect", "no cuda", "none", "not found")
NOT_BUILT = ("none", "could not collect")
"""What the report prints where `torch.version.cuda` is None and torch is no ROCm build either."""
ANSWERS = {"true": True, "yes": True, "false": False, "no": False}
BORDER = expression(r"^\W*(?:Collecting environment information|System Info\s*$)")
TITLES = r"PyTorch Info\s*$|vLLM Info\s*$|Intel XPU / GPU Info\s*$"
LABELS = (
    *("PyTorch version", "CUDA used to build PyTorch", "GPU models and configuration", "Nvidia driver version"),
    *("Intel GPU models onboard", "vLLM Version"),
)
FIRST = (
    *("[pip3] numpy==", "[pip3] nvidia-cublas==", "[pip3] nvidia-cublas-cu11", "[pip3] nvidia-cublas-cu12"),
    *("[pip3] nvidia-nccl-cu11", "[pip3] nvidia-nccl-cu12", "[pip3] nvidia-nccl-cu13", "[pip3] torch=="),
    "[conda] nvidia-cublas",
)
"""Packages that a list has once: where its head is missing, one of them opens what is left."""
DEVICES, DRIVER = "gpu models and configuration", "nvidia driver version"
ONBOARD, DETECTED, INTEL = "intel gpu models onboard", "intel gpu models detected", "intel gpu models"
INTEL_DRIVERS, CPU = "intel gpu driver version", "cpu"
BLOCKS = {DEVICES, ONBOARD, DETECTED, INTEL, INTEL_DRIVERS, CPU}
"""Fields whose value goes on in the lines below."""
SEEN: Mapping[str, SeenBy] = {DEVICES: "tool", ONBOARD: "pci", DETECTED: "torch", INTEL: "torch"}
WANTED = {
    *("pytorch version", "is debug build", "cuda used to build pytorch", "rocm used to build pytorch"),
    *("hip used to build pytorch", "xpu used to build pytorch", "is cuda available", "is xpu available"),
    *("cuda runtime version", "hip runtime version", "miopen runtime version", "rocm version"),
    *("oneapi compiler version", "oneccl version", DRIVER, "vllm version", "sglang version", "sglang"),
    *("python version", "python platform", "os", "libc version", "hypervisor vendor", "model name", "cpu(s)"),
}
KEY_CAP = 48
BUILT = (
    ("hip used to build pytorch", "rocm"),
    ("rocm used to build pytorch", "rocm"),
    ("cuda used to build pytorch", "cuda"),
    ("xpu used to build pytorch", "xpu"),
)
RUNTIMES: tuple[tuple[str, str, RuntimeKind], ...] = (
    ("cuda runtime version", "cuda", "toolkit"),
    ("rocm version", "rocm", "toolkit"),
    ("hip runtime version", "rocm", "library"),
    ("miopen runtime version", "miopen", "library"),
    ("oneapi compiler version", "oneapi", "toolkit"),
    ("oneccl version", "oneccl", "library"),
)
INTEL_RUNTIMES = {
    **dict.fromkeys(("intel-opencl-icd", "intel_opencl"), "compute-runtime"),
    **dict.fromkeys(("libze1", "level_zero"), "level-zero"),
}
PIP = expression(r"\[(?:pip3?|uv)\]\s+([A-Za-z0-9][\w.\-]*)==(\d\S*)")
CONDA = expression(r"\[conda\]\s+([A-Za-z0-9][\w.\-]*)\s+(\d\S*)\s+\S")
CONDA_NAMES = {"pytorch": "torch"}
LISTED = expression(r"^[\W_]*GPU (\d{1,4})\s*[:\uff1a]\s*(\S.*)")
PART = expression(r"^\W*MIG (\d\S*)\s+Device\s+\d")
ROCM = expression(r"\((gfx[0-9a-f]+)[:)]")
HYGON = ("gfx92", "gfx936", "gfx938")
"""Architectures of a vendor whose torch calls itself ROCm's."""
XPU = expression(r"\[(\d{1,4})\] _XpuDeviceProperties\(name='([^']+)'")
XPU_MEMORY = expression(r"total_memory=(\d{1,9})MB")
COMMIT = expression(r"(?:git)?[0-9a-f]{6,40}")
MACHINES = "x86_64|aarch64|arm64|ppc64le|riscv64|loongarch64|s390x"
PLATFORM = expression(rf"^Linux-(.+?)-({MACHINES})(?:-|$)")
OS = expression(rf"^(.*\S)\s+\(({MACHINES})\)$")


@dataclass
class _Report:
    """What was read so far: fields by their keys in lower case, and what stands in lists."""

    fields: dict[str, tuple[Line, str]] = field(default_factory=dict)
    packages: dict[tuple[str, str], Package] = field(default_factory=dict)
    listed: list[Accelerator | Partition | Runtime | Driver] = field(default_factory=list)

    @property
    def told(self) -> Fields:
        """The fields without those that tell nothing."""
        return {name: pair for name, pair in self.fields.items() if pair[1].lower() not in NOTHING}


@probe(
    "collect-env",
    tells=(TorchBuild, Accelerator, Partition, Driver, Runtime, Python, Host, Package, Engine),
    recognise=Recognise(
        literals=(
            *("Collecting environment information", "System Info", "PyTorch Info", "Intel XPU / GPU Info"),
            *(*LABELS, *FIRST),
        ),
        pattern=rf"{BORDER.pattern}|^(?!\s*[-*+] )\W*(?:{TITLES}|(?:{'|'.join(LABELS)})\s*[:\uff1a]|(?:pip3|conda)\])",
    ),
)
def collect_env(capture: Capture) -> Iterator[Fact]:
    """What one report tells, each fact with the line it stands in."""
    report, block = _Report(), ""
    for line in capture.lines():
        if "pytorch version" in report.fields and BORDER.match(line.text):
            break
        key, value = _field(line.text)
        if key in WANTED:
            report.fields.setdefault(key, (line, value))
        ended = key in WANTED or not line.text.strip()
        block = key if key in BLOCKS else "" if ended else block
        report.listed += _in_block(capture, line, block, value if key in BLOCKS else line.text.strip(), report)
        if package := _package(capture, line):
            report.packages.setdefault((package.name, package.version), package)
    listed = sorted(report.listed, key=lambda one: isinstance(one, Accelerator) and one.seen_by == "pci")
    yield from (*_torch(capture, report.fields, report.told), *listed)
    yield from (*_machine(capture, report.told), *report.packages.values())


def _field(text: str) -> tuple[str, str]:
    """A line's key in lower case and its value; without a colon both are empty."""
    key, colon, value = text.replace("\uff1a", ":", 1).partition(":")
    if not colon or len(key) > KEY_CAP or text.lstrip()[:2] in ("- ", "* "):
        return "", ""
    return key.strip(" \t|>*#_-\u00a0").lower(), value.strip(" \t*")


def _in_block(
    capture: Capture, line: Line, block: str, text: str, report: _Report
) -> Iterator[Accelerator | Partition | Runtime | Driver]:
    """What a line of a list tells: a device or a part of one, what drives them, or the name of the CPU."""
    if block == CPU:
        _name_of_cpu(line, text, report)
    elif block == INTEL_DRIVERS:
        yield from _intel_driver(capture, line, text)
    elif block == DEVICES and (part := PART.match(text)):
        devices = [one for one in report.listed if isinstance(one, Accelerator)]
        index = devices[-1].index if devices else None
        yield Partition(origin=capture.origin(line), index=index, name=part[1], vendor="nvidia")
    elif block and (device := _device(capture, line, block, text)):
        yield device


def _name_of_cpu(line: Line, text: str, report: _Report) -> None:
    """Where there is no `lscpu`: a line with the name alone, `Name: …` or `Name=…`."""
    label, sign, value = re.sub("[=\uff1a]", ":", text, count=1).partition(":")
    name = value.strip() if label.strip() == "Name" else "" if sign else label.strip()
    if name and set(name) - set("= "):
        report.fields.setdefault("model name", (line, name))


def _intel_driver(capture: Capture, line: Line, text: str) -> Iterator[Runtime | Driver]:
    """A package of the compute runtime on Linux; on Windows the version of the driver."""
    name, _, version = text.lstrip("* ").partition(":")
    if version.strip()[:1].isdigit() and name in INTEL_RUNTIMES:
        yield Runtime(origin=capture.origin(line), name=INTEL_RUNTIMES[name], version=version.strip())
    elif name[:1].isdigit():
        yield Driver(origin=capture.origin(line), vendor="intel", version=name.split()[0])


def _device(capture: Capture, line: Line, block: str, text: str) -> Accelerator | None:
    """One device of a list."""
    origin, seen_by = capture.origin(line), SEEN[block]
    if found := XPU.search(text):
        memory = XPU_MEMORY.search(text)
        mib = float(memory[1]) if memory else None
        return Accelerator(origin=origin, name=found[2], index=int(found[1]), memory_mib=mib, seen_by=seen_by)
    if found := LISTED.match(text):
        name, index = found[2].partition(" (UUID")[0].strip(), int(found[1])
        vendor = "nvidia" if name.endswith("(nvgpu)") else ""
        return Accelerator(origin=origin, vendor=vendor, name=name, index=index, seen_by=seen_by)
    if block == ONBOARD and text.startswith("* "):
        return Accelerator(origin=origin, name=text[2:].strip(), seen_by=seen_by)
    return _first_device(capture, line, text) if block == DEVICES else None


def _first_device(capture: Capture, line: Line, text: str) -> Accelerator | None:
    """Torch's first device, where `nvidia-smi` was not there to list them: in the line of the label, by its name.

    On ROCm the architecture follows it, which old builds do not know; the name may be missing.
    """
    found = ROCM.search(text)
    name = (text[: found.start()] if found else text.partition("NoGCNArchName")[0]).strip()
    labelled = _field(line.text)[0] == DEVICES
    if not found and not (labelled and name.lower() not in NOTHING):
        return None
    architecture = found[1] if found else ""
    vendor = "amd" if not name and not architecture.startswith(HYGON) else ""
    origin = capture.origin(line)
    return Accelerator(origin=origin, vendor=vendor, name=name, index=0, architecture=architecture, seen_by="torch")


def _package(capture: Capture, line: Line) -> Package | None:
    """A package that is listed; conda calls one of them by another name than its distribution's."""
    if found := PIP.search(line.text):
        installer = "uv" if "[uv]" in line.text else "pip"
        return Package(origin=capture.origin(line), name=canonical(found[1]), version=found[2], installer=installer)
    if found := CONDA.search(line.text):
        name = canonical(found[1])
        installer = "pip" if line.text.split()[-1] == "pypi" else "conda"
        return Package(
            origin=capture.origin(line), name=CONDA_NAMES.get(name, name), version=found[2], installer=installer
        )
    return None


def _torch(capture: Capture, fields: Fields, told: Fields) -> Iterator[TorchBuild]:
    line, words = told.get("pytorch version", (None, ""))
    version = words.split()[0] if words and numbers(words) else ""
    backend, backend_version = _backend(version, fields, told)
    line = line or next((told[key][0] for key, _ in BUILT if key in told), None)
    if line is None or not (version or backend):
        return
    asked = "is xpu available" if backend == "xpu" else "is cuda available"
    answered, answer = fields.get(asked, (line, ""))
    yield TorchBuild(
        origin=capture.origin(line),
        version=version,
        backend=backend,
        backend_version=backend_version,
        debug=ANSWERS.get(fields.get("is debug build", (line, ""))[1].lower()),
        available=ANSWERS.get(answer.lower()),
        answered=capture.origin(answered) if answer.lower() in ANSWERS else None,
    )


def _backend(version: str, fields: Fields, told: Fields) -> tuple[str, str]:
    """What torch was built for: as the report says, else by the local part of its version."""
    for key, name in BUILT:
        if pair := told.get(key):
            return name, pair[1].split()[0]
    part = local(version)
    for name, start in (("rocm", "rocm"), ("cuda", "cu"), ("xpu", "xpu"), ("cpu", "cpu")):
        if part.startswith(start) and (name != "cuda" or part[2:3].isdigit()):
            return name, _numbered(part[len(start) :])
    answer = fields.get("cuda used to build pytorch")
    plain = not part or COMMIT.fullmatch(part) is not None
    return ("cpu" if version and answer and answer[1].lower() in NOT_BUILT and plain else ""), ""


def _numbered(part: str) -> str:
    """The version in a local part: `121` is 12.1, `7.2` is itself."""
    return f"{part[:-1]}.{part[-1]}" if part.isdigit() and len(part) > 1 else part if part[:1].isdigit() else ""


def _machine(capture: Capture, told: Fields) -> Iterator[Fact]:
    """Driver, runtimes, engines and interpreter, then the host."""
    if (pair := told.get(DRIVER)) and pair[1][0].isdigit():
        yield Driver(origin=capture.origin(pair[0]), vendor="nvidia", version=pair[1].split()[0])
    for key, name, kind in RUNTIMES:
        if (pair := told.get(key)) and pair[1][0].isdigit():
            origin, version = capture.origin(pair[0]), pair[1].split()[0]
            yield Runtime(origin=origin, name=name, version=version, kind=kind)
    for key, name in (("vllm version", "vllm"), ("sglang", "sglang"), ("sglang version", "sglang")):
        if (pair := told.get(key)) and pair[1][0].isdigit():
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
