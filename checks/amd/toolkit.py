"""ROCm's own versions: of its toolkit, of HIP in its compiler, and of the driver in the kernel.

What this cannot know: which of several toolkits a program uses; torch brings libraries of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Accelerator, Capture, Driver, Fact, Recognise, Runtime, expression, probe

RELEASE = expression(r"^\W*([0-9]{1,4}(?:\.[0-9]{1,4}){1,4})(?:-\S{0,40})?\W*$")
HIP = expression(r"^\W*HIP version\s{0,20}: ([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,6})")
MODULE = expression(r"^\W*filename:\s+\S{0,200}/amdgpu\.ko")
VERSION = expression(r"^\W*version:\s+([0-9]{1,4}(?:\.[0-9]{1,4}){1,4})\W*$")
ARCHITECTURE = expression(r"^\W*(gfx[0-9][0-9a-f]{2,4})\W*$")
HYGON = {"gfx926", "gfx928", "gfx936", "gfx938"}


@probe("opt/rocm/version", tells=(Runtime,), path="/opt/rocm/.info/version")
def rocm_version(capture: Capture) -> Iterator[Fact]:
    """The version of the toolkit in its usual folder, `6.4.1-83`: the build after the dash is left out."""
    for line in capture.lines():
        if found := RELEASE.match(line.text):
            yield Runtime(origin=capture.origin(line), name="rocm", version=found[1], kind="toolkit")
            return


@probe("sys/module/amdgpu", tells=(Driver,), path="/sys/module/amdgpu/version")
def amdgpu_version(capture: Capture) -> Iterator[Fact]:
    """The version of the loaded driver; the kernel's own has no such file."""
    for line in capture.lines():
        if found := RELEASE.match(line.text):
            yield Driver(origin=capture.origin(line), vendor="amd", version=found[1])
            return


@probe(
    "modinfo/amdgpu",
    tells=(Driver,),
    recognise=Recognise(literals=("/amdgpu.ko",), pattern=MODULE.pattern, lines=4),
)
def modinfo(capture: Capture) -> Iterator[Fact]:
    """What `modinfo amdgpu` says of the module that would be loaded; the kernel's own has no version."""
    for line in capture.lines():
        if found := VERSION.match(line.text):
            yield Driver(origin=capture.origin(line), vendor="amd", version=found[1])
            return


@probe(
    "hipcc",
    tells=(Runtime,),
    command=("hipcc", "--version"),
    cost="import",
    timeout=20.0,
    recognise=Recognise(literals=("HIP version",), pattern=HIP.pattern, lines=3),
)
def hipcc(capture: Capture) -> Iterator[Fact]:
    """The version of HIP that the compiler and `hipconfig` name; RCCL prints such a line, too, without their others."""
    own = "HIP version: " in capture.content or "hipconfig" in capture.content
    for line in capture.lines():
        if own and (found := HIP.match(line.text)):
            yield Runtime(origin=capture.origin(line), name="hip", version=found[1], kind="toolkit")
            return


@probe(
    "rocm-agent-enumerator",
    tells=(Accelerator,),
    recognise=Recognise(literals=("gfx000",), pattern=r"^\W*gfx000\W*$", lines=64),
)
def rocm_agent_enumerator(capture: Capture) -> Iterator[Fact]:
    """The architectures, `gfx000` for a processor. A device may be listed twice: each is told once, without number."""
    seen: set[str] = set()
    for line in capture.lines():
        found = ARCHITECTURE.match(line.text)
        if not found and line.text.strip():
            return
        if found and found[1] != "gfx000" and found[1] not in seen:
            seen.add(found[1])
            vendor = "hygon" if found[1] in HYGON else "" if found[1] == "gfx906" else "amd"
            yield Accelerator(origin=capture.origin(line), vendor=vendor, architecture=found[1], seen_by="tool")
