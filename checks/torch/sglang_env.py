"""`python3 -m sglang.check_env`, and what others print in its form: mmcv, mmengine, OpenMMLab's projects.

A device is printed under all the numbers that bear its name (`GPU 0,1: NVIDIA H100`), its compute capability likewise;
old reports have the driver's version once for each device. "Module Not Found" is told as nothing. The toolkit's line of
nvcc and the topology are read elsewhere. Packages were once named by their modules (`zmq`, `PIL`), later by their
distributions. On an NPU the report does not say whether torch found it through its plug-in.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    Setting,
    TorchBuild,
    canonical,
    expression,
    probe,
    replace,
)

INTERPRETER = expression(r"^\W*Python: (\d{1,2}\.\d{1,3}\.\d{1,3}\S*) [(|]")
AVAILABLE = expression(r"^\W*(CUDA|ROCM|NPU|XPU|MUSA) available: (True|False)\s*$")
NUMBERED = expression(r"^\W*(?:GPU|NPU|XPU) (\d{1,4}(?:,\d{1,4}){0,255})( Compute Capability)?: (\S.*)$")
CAPABILITY = expression(r"(\d{1,2})\.(\d)")
DRIVEN = expression(r"^\W*(CUDA|ROCM|Ascend) Driver Versions?: (\d[\w.\-]{0,40})")
VENDORS = {"CUDA": "nvidia", "ROCM": "amd", "Ascend": "ascend"}
HIPCC = expression(r"^\W*HIPCC: HIP version: (\d[\w.\-]{0,60})")
TORCH = expression(r"^\W*PyTorch: (\d\S{0,80})\s*$")
BUILT = expression(r"\+(?:cu(\d{1,3})(\d)|rocm(\d{1,3}(?:\.\d{1,3}){1,2}))(?=\D|$)")
BACKENDS = {"CUDA": "cuda", "ROCM": "rocm", "XPU": "xpu"}
PACKAGE = expression(r"^\W*([A-Za-z][\w.\-]{0,60}): (\d\S{0,80}|Module Not Found)\s*$")
MODULES = {"zmq": "pyzmq", "pil": "pillow", "multipart": "python-multipart"}
"""Distributions that old reports call by their modules."""
ENGINES = ("vllm", "sglang")
HYPERVISOR = expression(r"^\W*Hypervisor vendor::? (\w[\w .\-]{0,40}?)\s*$")
LIMIT = expression(r"^\W*ulimit soft: (\d{1,20})\s*$")


@probe(
    "sglang-env",
    tells=(TorchBuild, Accelerator, Driver, Runtime, Python, Package, Engine, Host, Setting),
    recognise=Recognise(
        literals=("Python: ", " available: ", "CUDA_HOME: ", "sgl_kernel: "),
        pattern=rf"{INTERPRETER.pattern}|{AVAILABLE.pattern}|^\W*(?:CUDA_HOME: /|sgl_kernel: \d)",
        lines=160,
    ),
)
def sglang_env(capture: Capture) -> Iterator[Fact]:
    """What one report tells; its packages follow torch's line and end at the first line of another shape."""
    devices: dict[int, Accelerator] = {}
    builds: list[TorchBuild] = []
    answered: tuple[str, Line, bool] | None = None
    told: list[Fact] = []
    listing = False
    for line in capture.lines():
        if found := AVAILABLE.match(line.text):
            answered = answered or (found[1], line, found[2] == "True")
        elif found := NUMBERED.match(line.text):
            numbers = [int(one) for one in found[1].split(",")]
            if not found[2]:
                devices |= {number: _device(capture, line, found[3].strip(), number) for number in numbers}
            elif (capability := CAPABILITY.fullmatch(found[3].strip())) and answered and answered[0] == "CUDA":
                sm = f"sm_{capability[1]}{capability[2]}"
                devices |= {one: replace(devices[one], architecture=sm) for one in numbers if one in devices}
        elif found := TORCH.match(line.text):
            builds += [_torch(capture, line, found[1], answered)]
            listing = True
        elif listing and (found := PACKAGE.match(line.text)):
            told += _package(capture, line, found[1], found[2])
        else:
            listing = False
            told += _other(capture, line)
    if answered or devices or builds:
        yield from (*builds[:1], *devices.values(), *told)


def _device(capture: Capture, line: Line, name: str, index: int) -> Accelerator:
    vendor = "ascend" if name.startswith("Ascend") else ""
    return Accelerator(origin=capture.origin(line), vendor=vendor, name=name, index=index, seen_by="torch")


def _torch(capture: Capture, line: Line, version: str, answered: tuple[str, Line, bool] | None) -> TorchBuild:
    """The build; a vendor's plug-in answers for itself, not for torch."""
    word = answered[0] if answered else ""
    built = BUILT.search(version)
    return TorchBuild(
        origin=capture.origin(line),
        version=version,
        backend=BACKENDS.get(word, ""),
        backend_version=(f"{built[1]}.{built[2]}" if built[1] else built[3]) if built else "",
        available=answered[2] if answered and word in BACKENDS else None,
        answered=capture.origin(answered[1]) if answered and word in BACKENDS else None,
    )


def _package(capture: Capture, line: Line, name: str, version: str) -> Iterator[Fact]:
    name = canonical(name)
    if version[0].isdigit():
        yield Package(origin=capture.origin(line), name=MODULES.get(name, name), version=version)
        if name in ENGINES:
            yield Engine(origin=capture.origin(line), name=name, version=version)


def _other(capture: Capture, line: Line) -> Iterator[Fact]:
    origin = capture.origin(line)
    if found := INTERPRETER.match(line.text):
        yield Python(origin=origin, version=found[1])
    elif found := DRIVEN.match(line.text):
        yield Driver(origin=origin, vendor=VENDORS[found[1]], version=found[2])
    elif found := HIPCC.match(line.text):
        yield Runtime(origin=origin, name="rocm", version=found[1], kind="toolkit")
    elif found := HYPERVISOR.match(line.text):
        yield Host(origin=origin, virtual=found[1].lower())
    elif found := LIMIT.match(line.text):
        yield Setting(origin=origin, name="nofile", value=found[1], kind="limit")
