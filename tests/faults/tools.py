"""Tools that misbehave: `nvidia-smi` stands for all of them, since all are run by the same loop."""

from __future__ import annotations

from pathlib import Path

from .fault import BOUND, CUT, KEY, STOPPED, Fault

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
TABLE = (CAPTURES / "nvidia/smi-550-h100.txt").read_text("utf-8")
HEAD, HALF = ("\n".join(TABLE.splitlines()[:count]) for count in (2, 20))
NO_DRIVER = (CAPTURES / "nvidia-smi-535-no-driver.txt").read_text("utf-8").strip()
NO_LIBRARY = (CAPTURES / "nvidia-smi-470-no-library.txt").read_text("utf-8").strip()
UNKNOWN = "Failed to initialize NVML: Unknown Error"
"""Exit code 255, see https://github.com/NVIDIA/nvidia-docker/issues/1671."""
NOTHING = "nothing in it was understood"
ONCE = "[ $# = 0 ] || exit 6"
"""To misbehave by the table alone, not by the lists that are asked for beside it."""


def tool(name: str, body: str, reason: str, **more: object) -> Fault:
    """A fault of a shell script that is called like the tool."""
    files = {"bin/nvidia-smi": f"#!/bin/sh\n{body}\n"}
    return Fault(f"nvidia-smi {name}", **{"files": files, "unavailable": {"nvidia-smi": reason}, **more})  # type: ignore[arg-type]


def hanging(name: str, body: str, **more: object) -> Fault:
    """The same, of one that comes to no end of its own."""
    return tool(name, body, STOPPED, options=("--quick", *BOUND), incomplete=CUT, **more)


def failing(name: str, body: str, reason: str, **more: object) -> Fault:
    """The same, of one whose failure is a finding."""
    return tool(name, body, reason, exit=1, finds=("nvidia/driver-silent",), **more)


def odd(name: str, made: str, reason: str, **more: object) -> Fault:
    """The same, of what cannot be started."""
    return tool(name, "", reason, files={}, made=f"cd $BOX/bin; {made}", **more)


def printing(text: str, code: int) -> str:
    """A script that prints a text and ends with a code."""
    return f"cat <<'END'\n{text}\nEND\nexit {code}"


TOOLS = (
    hanging("hangs", "sleep 600"),
    hanging("ignores SIGTERM, and so does its child", "trap '' TERM HUP INT\n(sleep 600; sleep 600) &\nsleep 600"),
    hanging("closes its streams and hangs", "exec >&- 2>&- <&-\nsleep 600"),
    hanging("writes to stderr for ever", "exec yes >&2"),
    hanging("writes to stdout for ever", "exec yes"),
    hanging("stops itself", "kill -STOP $$"),
    tool(
        "hangs while a bundle is made",
        "sleep 600",
        "",
        command=("bundle", "-o", "b.tar.gz"),
        options=("--quick", *BOUND),
        exit=0,
        unavailable={},
        document="",
        incomplete="",
        writes=("cwd/b.tar.gz", KEY),
    ),
    failing("hangs, and there is no time bound", "sleep 600", "timed out after 20 s", soak=True, seconds=30),
    tool("prints 200 MB", f"{ONCE}; yes | head -c 200000000", NOTHING),
    tool("prints one line of 200 MB", f"{ONCE}; head -c 200000000 /dev/zero | tr '\\0' x", NOTHING),
    tool("prints what is no text", r"printf '\377\376\000\001\302'; head -c 100000 /dev/urandom", NOTHING),
    tool("prints a table that is cut in its head", printing(HEAD, 0), "", unavailable={}, answered=("nvidia-smi",)),
    tool(
        "prints half a table and dies",
        f"{printing(HALF, 0)[:-7]}\nkill -KILL $$",
        "killed by SIGKILL",
        exit=1,
        finds=("nvidia/driver-silent",),
        incomplete="",
    ),
    hanging("prints half a table and hangs", f"{printing(HALF, 0)[:-7]}\nsleep 600"),
    tool("ends without a word", "exit 0", NOTHING, first=True),
    tool("reads stdin for ever", "exec cat", NOTHING),
    tool("leaves a grandchild that holds the pipe", "sleep 600 &", NOTHING),
    failing("finds no driver (exit code 9)", printing(NO_DRIVER, 9), NO_DRIVER),
    failing("finds no library (exit code 12)", printing(NO_LIBRARY, 12), NO_LIBRARY.partition("\n")[0]),
    failing("cannot start NVML (exit code 255)", printing(UNKNOWN, 255), UNKNOWN),
    failing("kills itself", "kill -KILL $$", "killed by SIGKILL"),
    failing("dies by SIGSEGV", "kill -SEGV $$", "killed by SIGSEGV"),
    odd("is not executable", "touch nvidia-smi", "PermissionError: nvidia-smi (Permission denied)"),
    odd("is a folder", "mkdir nvidia-smi", "PermissionError: nvidia-smi (Permission denied)"),
    odd("is empty", "install -m 755 /dev/null nvidia-smi", "OSError: nvidia-smi (Exec format error)"),
    odd(
        "names an interpreter that is missing",
        "printf '#!$BOX/none/such\\n' >nvidia-smi; chmod 755 nvidia-smi",
        "OSError: nvidia-smi (the interpreter or loader it names does not exist)",
    ),
    odd("is a dangling link", "ln -s $BOX/none/such nvidia-smi", "FileNotFoundError: nvidia-smi"),
    odd("is a link to itself", "ln -s nvidia-smi nvidia-smi", "FileNotFoundError: nvidia-smi"),
)
