"""What a Python environment has installed: read by our own child, or from what people paste of pip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from diag.api import (
    Capture,
    Engine,
    Fact,
    Host,
    Line,
    Package,
    PackageList,
    Python,
    Recognise,
    TorchBuild,
    Unavailable,
    canonical,
    probe,
)

ENGINES = ("vllm", "sglang")
FROZEN = re.compile(r"^\s*([A-Za-z0-9][\w.\-]*)(?:\[[\w,\s\-]*\])?==([\w.+!\-]+)\s*(?:\\|;.*|#.*)?$")
ROW = re.compile(r"^\s*([A-Za-z0-9][\w.\-]*)\s+(\d[\w.+!\-]*)(?:\s+(\S.*?))?\s*$")
WHOLE_LIST = 25
"""Packages from which a pasted list is taken for an environment's whole; engines bring more than a hundred."""
TORCH_WORDS = (("hip", "rocm"), ("cuda", "cuda"), ("xpu", "xpu"))


@probe(
    "packages",
    tells=(Python, Package, PackageList, TorchBuild, Engine, Host),
    measure="packages",
    interpreter="target",
    recognise=Recognise(literals=('"schema": "diag/packages/1"',), lines=0),
)
def packages(capture: Capture) -> Iterator[Fact]:
    """The interpreter, its distributions and the torch it would import, read without importing any."""
    document = capture.document("diag/packages/1")
    if document is None:
        return
    origin = capture.origin(Line(1, f"{document['executable']} (Python {document['python']})"))
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
    yield from _torch(capture, document)


def _package(capture: Capture, name: str, told: dict[str, str]) -> Iterator[Fact]:
    origin = capture.origin(Line(1, f"{name} {told['version']} in {told['location']}"))
    yield Package(
        origin=origin,
        name=name,
        version=told["version"],
        location=told["location"],
        installer=told["installer"],
    )
    if name in ENGINES:
        yield Engine(origin=origin, name=name, version=told["version"])


def _torch(capture: Capture, document: dict[str, Any]) -> Iterator[Fact]:
    words, executable = document["torch"], document["executable"]
    if words is None:
        reason = f"no torch on the path of {executable}"
        origin = capture.origin(Line(1, reason))
        yield Unavailable(origin=origin, what="torch", reason=reason, how="missing", tells=("TorchBuild",))
    elif "__version__" in words:
        backend = next(((name, str(words[word])) for word, name in TORCH_WORDS if words.get(word)), ("cpu", ""))
        origin = capture.origin(Line(1, f"torch/version.py: {words['__version__']}"))
        yield TorchBuild(
            origin=origin,
            version=words["__version__"],
            backend=backend[0],
            backend_version=backend[1],
            debug=words.get("debug"),
        )


@probe(
    "pip/freeze",
    tells=(Package, PackageList, Engine),
    recognise=Recognise(literals=("==",), pattern=FROZEN.pattern, each=True, lines=3, at_least=2),
)
def pip_freeze(capture: Capture) -> Iterator[Fact]:
    """`pip freeze`: a `name==version` a line; a long one is taken to be whole."""
    told = [
        fact for line in capture.lines() if (found := FROZEN.match(line.text)) for fact in _pasted(capture, line, found)
    ]
    yield from told
    if len(told) >= WHOLE_LIST:
        yield PackageList(origin=told[0].origin, count=len(told))


@probe(
    "pip/list",
    tells=(Package, PackageList, Engine),
    recognise=Recognise(literals=("Package",), pattern=r"^\s*Package\s+Version\b", lines=2_000),
)
def pip_list(capture: Capture) -> Iterator[Fact]:
    """`pip list` and `uv pip list`: a table under `Package Version`, which ends at the first line of another shape."""
    told: list[Fact] = []
    for line in list(capture.lines())[1:]:
        if found := ROW.match(line.text):
            told += _pasted(capture, line, found)
        elif line.text.strip() and not set(line.text.strip()) <= set("- "):
            break
    yield from told
    if told:
        yield PackageList(origin=told[0].origin, count=len(told))


def _pasted(capture: Capture, line: Line, found: re.Match[str]) -> Iterator[Fact]:
    name = canonical(found[1])
    yield Package(origin=capture.origin(line), name=name, version=found[2])
    if name in ENGINES:
        yield Engine(origin=capture.origin(line), name=name, version=found[2])
