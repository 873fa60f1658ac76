"""What a Python environment has installed: read by our own child, or from what people paste of pip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

from diag.api import (
    Capture,
    Engine,
    Fact,
    Host,
    Line,
    Package,
    PackageFault,
    PackageList,
    Python,
    Recognise,
    Requirement,
    TorchBuild,
    Unavailable,
    canonical,
    expression,
    probe,
    torch_backend,
)

ENGINES = ("vllm", "sglang")
ASKED = (
    *("vllm", "sglang", "lmdeploy", "tensorrt-llm", "vllm-ascend", "vllm-kunlun", "vllm-metax", "vllm-musa"),
    *("torch", "torchvision", "torchaudio", "torchcodec", "torch-npu", "torch-xmlir", "torch-musa", "triton"),
    *("xformers", "flash-attn", "flashinfer-python", "sgl-kernel", "sglang-kernel", "transformers"),
)
"""Distributions whose requirements are told, and whose modules are looked for."""
NAME = expression(r"[A-Za-z0-9][\w.\-]*")
VERSION = expression(r"\d[\w.+!\-]*")
CONDA_NAME = expression(r"_?[A-Za-z0-9][\w.\-]*")
CONDA_NAMES = {"pytorch": "torch"}
"""Distributions that conda calls by another name."""
PINNED = expression(r"^[\s>]*([A-Za-z0-9][\w.\-]*)==(\d[\w.+!\-]*)\s*$")
WHEEL = expression(
    r"^[\s>]*([A-Za-z0-9][\w.\-]*) @ (?:file|https?)://\S*/[\w.]+-(\d[\w.+!%]*)(?:-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl\b"
)
EDITABLE = expression(r"^[\s>]*# Editable .*\(([A-Za-z0-9][\w.\-]*)==(\d[\w.+!\-]*)\)\s*$")
UNVERSIONED = expression(r"^[\s>]*(?:-e \S|[A-Za-z0-9][\w.\-]* @ \S)")
KNOWN = ("torch ", "vllm ", "sglang ", "transformers ")
"""Packages that a list has once and at the start of a row."""
HEADER = r"^\W*Package\s+Version\b"
ROW = r"^\s*(?:torch|vllm|sglang|transformers) {2,64}\d[\w.+!\-]*\s*$"
CONDA_ROW = r"^\s*pytorch {2,64}\d[\w.]* +\S+ +[\w\-/.]+\s*$"
EXPORTED = expression(r"^\W*- (_?[A-Za-z0-9][\w.\-]*)=(\d[\w.!]*)=([\w.]+)\s*$")
CONDA_TORCH = expression(r"py\d[\d.]{0,5}_(?:cuda(\d{1,2}\.\d{1,2})[\d.]*_|cpu_)")
"""How the project's own channel names its builds of torch: `py3.11_cuda12.1_cudnn9.1.0_0`, `py3.8_cpu_0`."""
FROZEN_LINE = "|".join(one.pattern for one in (PINNED, EDITABLE, UNVERSIONED))
MANY = 99
LAST_ASKED = "torch"
WHOLE_LIST = 25
"""Packages from which a pasted list is taken for an environment's whole; engines bring more than a hundred."""


@probe(
    "packages",
    tells=(Python, Package, PackageList, PackageFault, Requirement, TorchBuild, Engine, Host),
    measure="packages",
    arguments=ASKED,
    interpreter="target",
    recognise=Recognise(literals=('"schema": "diag/packages/1"',), lines=0),
)
def packages(capture: Capture) -> Iterator[Fact]:
    """The interpreter, its distributions and the torch it would import, read without importing any."""
    document = capture.document("diag/packages/1")
    if document is None:
        return
    origin = capture.said(f"{document['executable']} (Python {document['python']})")
    yield Python(
        origin=origin, version=document["python"], executable=document["executable"], prefix=document["prefix"]
    )
    yield Host(origin=origin, kernel=document["kernel"], machine=document["machine"], libc=document["libc"])
    yield PackageList(origin=origin, count=len(document["packages"]))
    seen: set[str] = set()
    for one in document["packages"]:
        name = canonical(one["name"])
        if name and name not in seen:
            seen.add(name)
            yield from _package(capture, name, one)
    for fault in document.get("faults", ()):
        name, problem, folder = fault["name"], fault["problem"], fault["location"]
        origin = capture.said(f"{name} {fault.get('version', '')} in {folder}: {problem}")
        yield PackageFault(origin=origin, name=name, problem=problem, location=folder)
    yield from _torch(capture, document)


def _package(capture: Capture, name: str, told: dict[str, Any]) -> Iterator[Fact]:
    origin = capture.said(f"{name} {told['version']} in {told['location']}")
    yield Package(
        origin=origin,
        name=name,
        version=told["version"],
        location=told["location"],
        installer=told["installer"],
        tag=told.get("tag", ""),
    )
    if name in ENGINES:
        yield Engine(origin=origin, name=name, version=told["version"])
    for wanted, specifier in told.get("requires", ()):
        words = capture.said(f"{name} {told['version']} requires {wanted}{specifier}")
        yield Requirement(origin=words, package=name, version=told["version"], name=wanted, specifier=specifier)


def _torch(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    words, executable = document["torch"], document["executable"]
    if words is None:
        reason = f"no torch on the path of {executable}"
        origin = capture.said(reason)
        yield Unavailable(origin=origin, what="torch", reason=reason, how="missing", tells=("TorchBuild",))
    elif "__version__" in words:
        backend, backend_version = torch_backend(words)
        origin = capture.said(f"torch/version.py: {words['__version__']}")
        yield TorchBuild(
            origin=origin,
            version=words["__version__"],
            backend=backend,
            backend_version=backend_version,
            debug=words.get("debug"),
        )


@probe(
    "pip/freeze",
    tells=(Package, PackageList, Engine),
    recognise=Recognise(literals=("==", " @ ", "-e "), pattern=FROZEN_LINE, each=True, lines=3, at_least=2),
)
def pip_freeze(capture: Capture) -> Iterator[Fact]:
    """`pip freeze`: a `name==version` a line, or where it was installed from; a long one is taken to be whole."""
    told: list[Fact] = []
    whole = True
    for line in capture.lines():
        if found := PINNED.match(line.text) or EDITABLE.match(line.text) or WHEEL.match(line.text):
            told += _pasted(capture, line, found[1], unquote(found[2]))
        elif UNVERSIONED.match(line.text):
            whole = False
    yield from told
    if whole and len(told) >= WHOLE_LIST and _whole(told):
        yield PackageList(origin=told[0].origin, count=_count(told))


@probe(
    "pip/list",
    tells=(Package, PackageList, Engine),
    recognise=Recognise(literals=("Package", *KNOWN), pattern=rf"{HEADER}|{ROW}", lines=2_000),
)
def pip_list(capture: Capture) -> Iterator[Fact]:
    """`pip list` and `uv pip list`: a table under `Package Version`, which ends at the first line of another shape.

    Without its header, as `grep` leaves it, it is read from the first package on that most of them have.
    """
    lines = list(capture.lines())
    headed = "Version" in lines[0].text.split()[1:2]
    columns = MANY if lines[0].text.split()[2:] and headed else 2
    told: list[Fact] = []
    last = ""
    for line in lines[headed:]:
        words, last = line.text.split(), line.text.strip()
        if 2 <= len(words) <= columns and NAME.fullmatch(words[0]) and VERSION.fullmatch(words[1]):
            told += _pasted(capture, line, words[0], words[1])
        elif told or not set(last) <= set("- "):
            break
    if headed:
        yield from _listed(told, last)
    elif _count(told) > 1:
        yield from told


@probe(
    "conda/list",
    tells=(Package, PackageList, Engine, TorchBuild),
    recognise=Recognise(
        literals=("# packages in environment at ", "pytorch  "),
        pattern=rf"^\W*packages in environment at |{CONDA_ROW}",
        lines=2_000,
    ),
)
def conda_list(capture: Capture) -> Iterator[Fact]:
    """`conda list`: name, version, build and channel; one that pip installed has the channel `pypi`."""
    told: list[Fact] = []
    last = ""
    lines = list(capture.lines())
    headed = "packages in environment at" in lines[0].text
    for line in lines[headed:]:
        words, last = line.text.split(), line.text.strip()
        if 3 <= len(words) <= 4 and CONDA_NAME.fullmatch(words[0]) and VERSION.fullmatch(words[1]):
            installer = "pip" if words[-1] == "pypi" else "conda"
            told += _pasted(capture, line, CONDA_NAMES.get(words[0], words[0]).lstrip("_"), words[1], installer)
            told += _conda_torch(capture, line, words)
        elif not last.startswith("#"):
            break
    if headed:
        yield from _listed(told, last)
    elif _count(told) > 1:
        yield from told


@probe(
    "conda/export",
    tells=(Package, Engine, TorchBuild),
    recognise=Recognise(literals=("=",), pattern=EXPORTED.pattern, each=True, lines=2, at_least=4),
)
def conda_export(capture: Capture) -> Iterator[Fact]:
    """`conda env export`: name, version and build; a file without builds says what is wanted, not what is there."""
    for line in capture.lines():
        if found := EXPORTED.match(line.text):
            yield from _pasted(capture, line, CONDA_NAMES.get(found[1], found[1]).lstrip("_"), found[2], "conda")
            yield from _conda_torch(capture, line, found.groups())


def _conda_torch(capture: Capture, line: Line, words: Sequence[str]) -> Iterator[Fact]:
    """The build of torch that a row of conda names."""
    if words[0] == "pytorch" and (found := CONDA_TORCH.match(words[2])):
        backend, version = ("cuda", found[1]) if found[1] else ("cpu", "")
        origin = capture.origin(line)
        yield TorchBuild(origin=origin, version=words[1], backend=backend, backend_version=version)


def _listed(told: list[Fact], last: str) -> Iterator[Fact]:
    """The packages of a table, and that they are all, unless dots stand for those left out or the end is missing."""
    yield from told
    if _whole(told) and not (last and set(last) <= set("[].… ")):
        yield PackageList(origin=told[0].origin, count=_count(told))


def _whole(told: list[Fact]) -> bool:
    """Whether a list, which is in the order of the alphabet, reaches as far as the packages that are asked about."""
    names = [fact.name for fact in told if isinstance(fact, Package)]
    return bool(names) and max(names) >= LAST_ASKED and not all(LAST_ASKED in name for name in names)


def _count(told: list[Fact]) -> int:
    return sum(isinstance(fact, Package) for fact in told)


def _pasted(capture: Capture, line: Line, name: str, version: str, installer: str = "") -> Iterator[Fact]:
    name = canonical(name)
    yield Package(origin=capture.origin(line), name=name, version=version, installer=installer)
    if name in ENGINES:
        yield Engine(origin=capture.origin(line), name=name, version=version)
