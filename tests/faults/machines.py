"""Machines that lack what nearly every machine has."""

from __future__ import annotations

from .fault import BOUND, NONE_SEEN, Fault

REFUSED = "dmesg: read kernel buffer failed: Operation not permitted"
ORDINARY = "exec setpriv --bounding-set=-all --inh-caps=-all"
HANGS = '''\
from diag.api import Host, probe
from pathlib import Path


@probe("site/{key}", tells=(Host,), measure=str(Path(__file__).with_name("_{key}.py")))
def {key}(capture):
    return ()
'''
FULL = "mkdir full; mount -t tmpfs -o size=16k none full; echo old >full/r.json"
FILLED = f"{FULL}; cat /dev/zero >full/rest 2>$BOX/none"


def machine(name: str, before: str = "", **more: object) -> Fault:
    """A fault of the machine."""
    return Fault(name, before=before, **more)  # type: ignore[arg-type]


def apart(name: str, before: str, **more: object) -> Fault:
    """A fault that is made in a mount namespace, which goes with the run."""
    return machine(name, before, needs=("root",), **more)


def child(key: str, body: str) -> dict[str, str]:
    """A root with a short child of its own that shares a process with the others."""
    return {f"root/checks/site/{key}.py": HANGS.format(key=key), f"root/checks/site/_{key}.py": body}


MACHINES = (
    machine("dmesg is refused", files={"bin/dmesg": f"#!/bin/sh\necho '{REFUSED}' >&2\nexit 1\n"}),
    machine("an ordinary user: root without its capabilities", 'set -- setpriv --bounding-set=-all --inh-caps=-all "$@"', needs=("root",)),
    apart("no /proc", "mount -t tmpfs none /proc"),
    apart("no /sys", "mount -t tmpfs none /sys"),
    apart("no /dev/shm", "mount -t tmpfs none /dev; for n in 'null 3' 'zero 5' 'urandom 9'; do mknod -m 666 /dev/${n% *} c 1 ${n#* }; done"),
    apart("every file system is read-only", "mount -o remount,bind,ro /", writes=()),
    machine("no HOME", environment={"HOME": None}, writes=()),
    machine("HOME is not there", environment={"HOME": "/no/such"}, writes=()),
    machine("HOME is a file", environment={"HOME": "/etc/hostname"}, writes=()),
    machine("the cache is a file", made="touch $BOX/home/.cache", writes=()),
    machine("no TMPDIR", environment={"TMPDIR": "/no/such"}),
    machine("PATH is not set", environment={"PATH": None}),
    machine("PATH is empty", environment={"PATH": ""}),
    machine("nothing is on PATH", environment={"PATH": "/no/such"}),
    machine("the environment is empty but for the package", environment={n: None for n in ("PATH", "HOME", "TMPDIR")}, writes=()),
    machine("the folder is deleted", "mkdir gone; cd gone; rmdir ../gone"),
    machine("stdin is closed", "exec <&-"),
    machine("stderr is closed", "exec 2>&-"),
    machine("stdout is closed", "exec >&-", options=("--quick", "--report", "r.json"), document="cwd/r.json", writes=("cwd/r.json", "home/.cache/diag/redact.key")),
    machine("all streams are closed", "exec <&- >&- 2>&-", options=("--quick", "--report", "r.json"), document="cwd/r.json", writes=("cwd/r.json", "home/.cache/diag/redact.key")),
    machine("LANG=C and no UTF-8, TERM not set", options=("--quick", "--lang", "zh"), incomplete="未发现加速器", environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TERM": None}),
    machine("a locale that is not there", environment={"LC_ALL": "xx_XX.UTF-8"}),
    machine("64 open files (ulimit -n)", "ulimit -n 64"),
    machine("20 open files (ulimit -n)", "ulimit -n 20"),
    machine("512 MiB of address space (ulimit -v)", "ulimit -v 524288"),
    machine("no file may grow (ulimit -f 0)", "ulimit -f 0", writes=()),
    apart("40 processes (ulimit -u)", ""),
    machine("no core, and one second of processor time for each child", "ulimit -c 0"),
    machine("stdout is a full device", "exec >/dev/full", exit=2, document="", incomplete="", stderr="stdout: No space left on device"),
    apart("the disk is full where the report goes", FILLED, after="cp full/r.json seen", options=("--quick", "--report", "full/r.json"), exit=2, incomplete="", stderr="cannot write full/r.json: No space left on device", writes=("cwd/seen", "home/.cache/diag/redact.key")),
    machine("a short child hangs beside the others", files=child("hanging", "import time\ntime.sleep(600)"), options=("--quick", "--root", "$BOX/root", "--timeout", "4"), unavailable={"site/hanging": "stopped: time bound reached"}, incomplete="the time bound was reached before all of site/hanging was read"),
    machine("a short child takes its process with it", files=child("dying", "import ctypes\nctypes.string_at(0)"), options=("--quick", "--root", "$BOX/root"), unavailable={"site/dying": "killed by SIGSEGV"}),
    machine("a short child prints for ever", files=child("loud", "while True: print('x' * 79)"), options=("--quick", "--root", "$BOX/root", "--timeout", "4"), unavailable={"site/loud": "x"}),
)
