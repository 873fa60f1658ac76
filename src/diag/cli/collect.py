"""`diag bundle`: what this host tells, in one archive."""

from __future__ import annotations

from pathlib import Path

from diag import __version__, bundle
from diag.cli.emit import write
from diag.cli.opening import deadline_of, live_host, load, now, within
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
    host = live_host(live, deadline_of(bounds))
    gate = Redactor(redact_key(), host.known) if redacted else None
    with within(bounds.timeout):
        captures = host.captures(tuple(load(bounds).probes.values()))
        manifest = bundle.write(path, captures, gate, tool=__version__, source=host.name, taken_at=now())
    counted = sum((manifest.redacted or {}).values())
    write(f"{path}: {len(manifest.members)} captures, {counted} values replaced\n")
    return 0
