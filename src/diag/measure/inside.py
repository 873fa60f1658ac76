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
import time
from concurrent.futures import ThreadPoolExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    """What came of one step."""
    start = time.monotonic()
    answer: dict[str, Any] = {"stdout": "", "stderr": "", "exit_code": None, "error": ""}
    try:
        answer.update(file(step["path"]) if "path" in step else command(step))
    except OSError as error:
        answer["error"] = "%s: %s" % (type(error).__name__, step.get("path") or step["argv"][0])  # noqa: UP031
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
    pipe = subprocess.PIPE
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)
    error = ""
    try:
        stdout, stderr = child.communicate(timeout=step["timeout"])
    except subprocess.TimeoutExpired:
        error = f"timed out after {step['timeout']:g} s"
        stdout, stderr = ended(child)
    code = None if error else child.returncode
    if code is not None and code < 0:
        error = f"killed by {signal.Signals(-code).name}"
    return {"stdout": decoded(stdout), "stderr": decoded(stderr), "exit_code": code, "error": error}


def ended(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Kill the child with its group; what it had written, as far as that can be read."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate(timeout=GRACE)
    except (OSError, subprocess.TimeoutExpired):
        return b"", b""


def decoded(content: bytes) -> str:
    """The first and the last bytes of a text of any length."""
    if len(content) > KEEP:
        content = content[: KEEP // 2] + b"\n" + content[-KEEP // 2 :]
    return content.decode("utf-8", "backslashreplace")
