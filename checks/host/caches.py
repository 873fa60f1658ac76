"""The folders that engines write models, compiled kernels and temporary files to.

Which of them a launch uses depends on the variables that are set for it: told are those of the environment that was
asked. What this cannot know: quotas, and what the server of a network file system allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diag.api import CacheFolder, Capture, Fact, Recognise, probe

CHILD = str(Path(__file__).resolve().parent / "_caches.py")
SCHEMA = "diag/caches/1"
PURPOSES = ("models", "compiled", "temporary")


@probe(
    "caches",
    tells=(CacheFolder,),
    measure=CHILD,
    arguments=("alone",),
    timeout=5.0,
    recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0),
)
def caches(capture: Capture) -> Iterator[Fact]:
    """Each folder, what is free, whether it may be written to. The process is its own: a dead mount stops it."""
    document = capture.document(SCHEMA) or {}
    folders = document.get("folders")
    for one in folders if isinstance(folders, list) else ():
        if isinstance(one, dict) and isinstance(one.get("path"), str) and one.get("purpose") in PURPOSES:
            yield CacheFolder(origin=capture.said(json.dumps(one, ensure_ascii=False)), **_told(one))


def _told(one: dict[str, Any]) -> dict[str, Any]:
    free, writable = one.get("free_bytes"), one.get("writable")
    return {
        "path": one["path"],
        "purpose": one["purpose"],
        "variable": str(one.get("variable") or ""),
        "free_bytes": free if isinstance(free, int) and not isinstance(free, bool) else None,
        "writable": writable if isinstance(writable, bool) else None,
    }
