"""diag as a user calls it: another process, its own home, whatever folders are on its path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from held import keep_parsed

CALL = ("-c", "from diag.cli import main; main()")


def diag(home: Path, *arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in an empty folder of its own."""
    folder = home / "elsewhere"
    folder.mkdir(exist_ok=True, parents=True)
    if not (home / "cache").exists():
        keep_parsed(home / "cache/diag")
    places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config")}
    path = os.pathsep.join(filter(None, (environment.pop("PYTHONPATH", ""), os.environ.get("PYTHONPATH"))))
    told = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1", "PYTHONPATH": path, **places, **environment}
    argv = [sys.executable, *CALL, *arguments]
    return subprocess.run(argv, input=text, env=told, cwd=folder, capture_output=True, text=True, timeout=60)


def examine(home: Path, text: str, *options: str, **environment: str) -> dict[str, Any]:
    """The report document on a text."""
    done = diag(home, "env-check", "-", "--format", "json", *options, text=text, **environment)
    assert done.returncode in (0, 1, 4), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document
