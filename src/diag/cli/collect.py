"""`diag bundle`: what this host tells, in one archive."""

from __future__ import annotations

import time
from pathlib import Path

from diag import __version__, bundle
from diag.cli.emit import write
from diag.cli.opening import live_host, load, now
from diag.cli.options import Bounds, Live
from diag.cli.place import redact_key
from diag.errors import DiagError
from diag.redact import Redactor


def run(path: Path, *, bounds: Bounds, live: Live, redacted: bool) -> int:
    """Take the captures and write the archive."""
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise DiagError(f"{path}: a bundle is a .tar.gz")
    if not path.parent.is_dir():
        raise DiagError(f"cannot write {path}: {path.parent} is not a folder")
    host = live_host(live, time.monotonic() + bounds.timeout if bounds.timeout else None)
    gate = Redactor(redact_key(), host.known)
    captures = host.captures(tuple(load(bounds).probes.values()))
    through = gate if redacted else None
    manifest = bundle.write(path, captures, through, tool=__version__, source=host.name, taken_at=now())
    counted = sum((manifest.redacted or {}).values())
    write(f"{path}: {len(manifest.members)} captures, {counted} values replaced\n")
    return 0
