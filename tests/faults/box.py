"""One run of diag with a fault in its way: what came of it, how long, how large, and what it left."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from json import dumps
from pathlib import Path

from held import keep_parsed
from msgspec import json

from diag.report import Report

from .fault import Fault

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MADE = ("bin", "cwd", "home", "libraries", "tmp", "torch")
WATCHED = (*MADE, "none")
PATIENCE = 60.0
MARK = "DIAG_FAULT"


def begins(*command: str) -> bool:
    """Whether a program is there and does its work."""
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True).returncode == 0


NEEDS: Mapping[str, Callable[[], bool]] = {
    "a mount namespace": lambda: begins("unshare", "-m", "true"),
    "setpriv": lambda: begins("setpriv", "--bounding-set=-all", "--inh-caps=-all", "true"),
    "cc": lambda: begins("cc", "--version"),
    "pynvml": lambda: bool(importlib.util.find_spec("pynvml")),
    "torch": lambda: bool(importlib.util.find_spec("torch")),
}


@cache
def met(need: str) -> bool:
    """Whether this machine has what a fault needs."""
    return NEEDS[need]()


@dataclass(frozen=True)
class Ran:
    """How a run ended; `mib` is the most memory that diag or one of its children held, `left` what still runs."""

    code: int
    seconds: float
    mib: int
    out: str
    err: str
    left: Mapping[int, str]
    written: tuple[str, ...]

    @property
    def report(self) -> Report:
        return json.decode(self.out, type=Report)


def run(fault: Fault, box: Path) -> Ran:
    lay_out(fault, box)
    before = listing(box)
    began = time.monotonic()
    code, peak = waited(fault, box)
    seconds = time.monotonic() - began
    written = sorted(set(listing(box).items()) - set(before.items()))
    out, err = ((box / name).read_text("utf-8", "surrogateescape") for name in (fault.document or "out", "err"))
    return Ran(
        code, seconds, peak >> 10, out, err.removeprefix("diag: "), left(box), tuple(path for path, _ in written)
    )


def lay_out(fault: Fault, box: Path) -> None:
    for name in MADE:
        (box / name).mkdir()
    # What this machine's kernel has met is none of the tests' concern.
    for name, text in {"bin/dmesg": "#!/bin/sh\n", **fault.files}.items():
        place = box / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(filled(text, box))
        place.chmod(0o755 if text.startswith("#!") else 0o644)
    subprocess.run(("sh", "-ec", filled(fault.made, box)), cwd=box, check=True)
    if not fault.first and not (box / "home/.cache").is_file():
        keep_parsed(box / "home/.cache/diag")


def filled(text: str, box: Path) -> str:
    return text.replace("$BOX", str(box)).replace("$OWN", sys.executable)


KEPT = re.compile(r"(?:kb|scan)-[0-9a-f]{16}\.cache").fullmatch
"""What is parsed of the knowledge base, and what texts are searched for, is kept where that can be written."""


def surroundings(fault: Fault, box: Path) -> dict[str, str]:
    kept = {name: value for name in ("PYTHONPATH",) if (value := os.environ.get(name))}
    usual = {"PATH": f"{box}/bin:{SYSTEM}", "HOME": f"{box}/home", "TMPDIR": f"{box}/tmp"}
    asked = {**kept, **usual, MARK: str(box), **fault.environment}
    return {name: filled(value, box) for name, value in asked.items() if value is not None}


BROKER = """
import json, os, sys, time
telling, (command, environment, patience) = int(sys.argv[1]), json.loads(sys.argv[2])
os.set_inheritable(telling, False)
started = os.posix_spawn(command[0], command, environment)
end = time.monotonic() + patience
while not (ended := os.wait4(started, os.WNOHANG))[0]:
    if time.monotonic() > end:
        os.kill(started, 9)
    time.sleep(0.01)
os.write(telling, json.dumps([os.waitstatus_to_exitcode(ended[1]), ended[2].ru_maxrss]).encode())
"""
"""What starts diag and waits for it: small, for the kernel hands the peak of a process on to what it starts."""


def waited(fault: Fault, box: Path) -> tuple[int, int]:
    """Run diag to its end: the exit code, and the most memory of one process in KiB."""
    diag = (sys.executable, *(filled(one, box) for one in (*fault.program, *fault.command, *fault.options)))
    becoming = '"$@"\ncode=$?\n' + fault.after + "\nexit $code" if fault.after else 'exec "$@"'
    apart = (shutil.which("unshare") or "", "-m") if "a mount namespace" in fault.needs else ()
    script = filled(f"{fault.before}\n{becoming}", box)
    command = [*apart, "/bin/sh", "-c", script, "sh", *diag]
    plan = dumps((command, surroundings(fault, box), PATIENCE))  # names that are no text, too
    reading, writing = os.pipe()
    with (box / "out").open("wb") as out, (box / "err").open("wb") as err, open(reading, "rb") as told:
        broker = subprocess.Popen(
            (sys.executable, "-I", "-S", "-c", BROKER, str(writing), plan),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=box / "cwd",
            pass_fds=(writing,),
        )
        os.close(writing)
        ended = told.read()
        broker.wait()
    code, peak = json.decode(ended, type=tuple[int, int])
    return code, peak


def listing(box: Path) -> dict[str, int]:
    """Every file below the folders that diag might write to, with the time of its last change."""
    found = (path for name in WATCHED for path in (box / name).rglob("*") if not path.is_dir() and not KEPT(path.name))
    return {str(path.relative_to(box)): path.lstat().st_mtime_ns for path in found}


def left(box: Path) -> dict[int, str]:
    """What the run has started and left, after a moment to die: numbers and command lines."""
    end = time.monotonic() + 1
    while (found := marked(f"{MARK}={box}".encode())) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def marked(mark: bytes) -> dict[int, str]:
    """The processes with this in their environment."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found
