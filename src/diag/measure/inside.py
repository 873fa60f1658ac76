"""Take a plan of texts where this runs, and print them as one JSON list: the hands of a host inside a container.

`main(plan)` is called with what `diag.inside` sends: steps of which each is a command (`argv`), a file (`path`) or the
source of a child program (`program`, `arguments`), with a `timeout` in seconds. Each answer has `stdout`, `stderr`,
`exit_code`, `error` and `seconds` as a capture has them. Nothing is written; what hangs is killed with its group.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

KEEP = 2**20
"""Bytes kept of a stream or a file."""
PARALLEL = 8
GRACE = 0.5
"""Seconds in which the pipes of a dead step are read to their end."""


def main(plan: dict[str, Any]) -> None:
    """Take all steps, side by side, and print what came of them."""
    os.environ.update(plan["environment"])
    with ThreadPoolExecutor(PARALLEL) as pool:
        sys.stdout.write(json.dumps(list(pool.map(taken, plan["steps"]))) + "\n")


def taken(step: dict[str, Any]) -> dict[str, Any]:
    """What came of one step; whatever goes wrong is told of this step alone."""
    start = time.monotonic()
    answer: dict[str, Any] = {"stdout": "", "stderr": "", "exit_code": None, "error": ""}
    try:
        answer.update(file(step["path"]) if "path" in step else command(step))
    except OSError as error:
        answer["error"] = f"{type(error).__name__}: {step.get('path') or step['argv'][0]}"
    except Exception as error:
        answer["error"] = f"{type(error).__name__}: {error}"
    answer["seconds"] = round(time.monotonic() - start, 4)
    return answer


def file(path: str) -> dict[str, Any]:
    """The beginning of a file."""
    with open(path, "rb") as opened:
        return {"stdout": decoded(opened.read(KEEP))}


def command(step: dict[str, Any]) -> dict[str, Any]:
    """A command, or a child program under this interpreter, run to its end or its time."""
    argv = step.get("argv") or [sys.executable, "-c", step["program"], *step["arguments"]]
    if not shutil.which(argv[0]):
        return {"error": f"FileNotFoundError: {argv[0]}"}
    error, (stdout, stderr) = "", (bytearray(), bytearray())
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as child:
        readers = [
            threading.Thread(target=drained, args=pair) for pair in ((child.stdout, stdout), (child.stderr, stderr))
        ]
        for reader in readers:
            reader.daemon = True
            reader.start()
        try:
            code: int | None = child.wait(step["timeout"])
        except subprocess.TimeoutExpired:
            code, error = None, f"timed out after {step['timeout']:g} s"
        ended(child)
        for reader in readers:
            reader.join(GRACE)
    if code is not None and code < 0:
        names = {int(one): one.name for one in signal.Signals}
        error = f"killed by {names.get(-code, f'signal {-code}')}"
    return {"stdout": decoded(bytes(stdout)), "stderr": decoded(bytes(stderr)), "exit_code": code, "error": error}


def drained(stream: IO[bytes], kept: bytearray) -> None:
    """Read a stream to its end; its first bytes are kept, and none after them."""
    with stream:
        while piece := stream.read1(2**16):  # type: ignore[attr-defined]
            kept += piece[: KEEP - len(kept)]


def ended(child: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child's group."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass


def decoded(content: bytes) -> str:
    """Bytes as text, whatever they are."""
    return content.decode("utf-8", "backslashreplace")
