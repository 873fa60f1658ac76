"""Segments of engines and collective libraries in `/dev/shm`: those of this machine, and a pasted `ls -l`.

A listing tells names and sizes, not whether somebody still has them open. What this cannot know in a container: who
else shares its `/dev/shm`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diag.api import Capture, Fact, Recognise, SharedSegment, expression, probe, program

CHILD = str(Path(__file__).resolve().parent / "_shared_memory.py")
SCHEMA = "diag/shared-memory/1"
NAMES = (
    r"(?:torch_[0-9]|nccl-\w{6}\b|psm_[0-9a-f]{8}\b|sem\.(?:mp|loky)-|vllm_offload_|VLLM_|sgl_shm_|sglang_loads_"
    r"|cuda\.shm\.)"
)
LISTED = expression(
    rf"^\W{{0,3}}[-s][rwxsStT-]{{9}}[.+]?\s+[0-9]{{1,4}}\s+\S{{1,32}}\s+\S{{1,32}}\s+"
    rf"(?P<size>[0-9]{{1,18}}(?:\.[0-9])?)(?P<unit>[KMGT]?)\s+\S.{{5,28}}?\s(?P<path>(?:/dev/shm/)?{NAMES}\S{{0,200}})\s*$"
)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@probe(
    "shared-memory",
    tells=(SharedSegment,),
    measure=CHILD,
    cost="import",
    recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0),
)
def shared_memory(capture: Capture) -> Iterator[Fact]:
    """Each segment, with what is known of its process."""
    document = capture.document(SCHEMA) or {}
    told = document.get("segments")
    for one in told if isinstance(told, list) else ():
        if isinstance(one, dict) and isinstance(one.get("path"), str):
            yield SharedSegment(origin=capture.said(json.dumps(one)), path=one["path"], **_told(one))


def _told(one: dict[str, Any]) -> dict[str, Any]:
    """The fields that have the type they should have."""
    kinds: dict[str, tuple[type, ...]] = {
        "size_bytes": (int,),
        "pid": (int,),
        "age_seconds": (int, float),
        "alive": (bool,),
        "open": (bool,),
    }
    return {name: one[name] for name, kind in kinds.items() if isinstance(one.get(name), kind)}


@probe(
    "ls/shm",
    tells=(SharedSegment,),
    recognise=Recognise(
        (
            " torch_",
            " nccl-",
            " psm_",
            " sem.mp-",
            " sem.loky-",
            " vllm_offload_",
            " VLLM_",
            " sgl",
            " cuda.shm.",
            "/shm/",
        ),
        LISTED.pattern,
        each=True,
        lines=3,
    ),
)
def listed(capture: Capture) -> Iterator[Fact]:
    """What `ls -l /dev/shm` lists under names of engines and their libraries."""
    for line in capture.lines():
        if found := LISTED.match(line.text):
            name = re.sub("^/dev/shm/", "", found["path"])
            size = int(float(found["size"]) * UNITS[found["unit"]])
            pid = program(CHILD)["owner"](name)
            yield SharedSegment(origin=capture.origin(line), path=f"/dev/shm/{name}", size_bytes=size, pid=pid)
