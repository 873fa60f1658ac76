"""Machines that lack what nearly every machine has, that grant little, or that have no room."""

from __future__ import annotations

from .fault import KEY, STOPPED, Fault

UNCACHED = {"exit": 1, "finds": ("host/cache-not-writable",), "writes": ()}
REFUSED = "dmesg: read kernel buffer failed: Operation not permitted"
NAMESPACE = ("a mount namespace",)
POWERLESS = 'set -- setpriv --bounding-set=-all --inh-caps=-all "$@"'
DEVICES = """\
mount -t tmpfs none /dev
for one in 'null 3' 'zero 5' 'urandom 9'; do mknod -m 666 /dev/${one% *} c 1 ${one#* }; done"""
NOBODY = """\
prefix=$($OWN -c 'import sys; print(sys.base_prefix)')
as="setpriv --reuid=65534 --regid=65534 --clear-groups"
if ! $as test -x $OWN && [ "${prefix#/root/}" != "$prefix" ]; then
  mkdir $BOX/hold && mount --bind $prefix $BOX/hold
  mount -t tmpfs -o mode=755 none /root && mkdir -p $prefix && mount --bind $BOX/hold $prefix
fi 2>$BOX/refused
cd /
$as $OWN -c 'import diag' 2>$BOX/refused || exit 77
"""
"""An interpreter below /root is shown to all by a mount; 77 means that nobody can read this installation."""
SLEEP = "import time\ntime.sleep(600)"
SMALL = "mkdir full; mount -t tmpfs -o size=16k none full"
FILLED = f"{SMALL}; echo old >full/r.json; cp full/r.json full/b.tar.gz; cat /dev/zero >full/rest 2>$BOX/none"
KEPT = '[ "$(cat full/r.json full/b.tar.gz)" = "$(echo old; echo old)" ] && [ $(ls -A full | wc -l) = 3 ] || code=70'
NO_SPACE = "No space left on device"
INTO = ("--quick", "--report")
PROBE = """\
from diag.api import Host, probe
from pathlib import Path


@probe("site/{key}", tells=(Host,), measure=str(Path(__file__).with_name("_{key}.py")))
def {key}(capture):
    return ()
"""


def machine(name: str, before: str = "", **more: object) -> Fault:
    """A fault of the machine."""
    return Fault(name, before=before, **more)  # type: ignore[arg-type]


def without(name: str, **environment: str | None) -> Fault:
    """A fault of the environment; where HOME is unfit, nothing is cached."""
    return Fault(name, environment=environment, writes=() if "HOME" in environment else (KEY,))


def apart(name: str, before: str, **more: object) -> Fault:
    """A fault that is made in a mount namespace, which goes with the run."""
    return machine(name, before, **{"needs": NAMESPACE, **more})


def full(name: str, says: str, **more: object) -> Fault:
    """A disk that fills up: what lay there before stays, and nothing else is left."""
    usual = {"after": KEPT, "exit": 2, "document": "", "stderr": says, "incomplete": ""}
    return apart(name, FILLED, **{**usual, **more})


def child(name: str, key: str, body: str, reason: str, **more: object) -> Fault:
    """A short child that a root brings, and that shares a process with those of diag."""
    files = {f"root/checks/site/{key}.py": PROBE.format(key=key), f"root/checks/site/_{key}.py": body}
    usual = {"files": files, "answered": ("container", "environment", "pci", "infiniband")}
    asked = {"options": ("--quick", "--root", "$BOX/root"), "unavailable": {f"site/{key}": reason}}
    return Fault(f"a short child {name}", **{**usual, **asked, **more})  # type: ignore[arg-type]


MACHINES = (
    machine(
        "dmesg is refused",
        files={"bin/dmesg": f"#!/bin/sh\necho '{REFUSED}' >&2\nexit 1\n"},
        unavailable={"kernel-log": f"exit code 1: {REFUSED}"},
    ),
    machine(
        "dmesg is missing, and so is every other program",
        made="rm $BOX/bin/dmesg",
        environment={"PATH": "$BOX/bin"},
        unavailable={"kernel-log": "FileNotFoundError: dmesg"},
    ),
    apart(
        "no /proc",
        "mount -t tmpfs none /proc",
        unavailable={"proc/meminfo": "FileNotFoundError"},
        answered=("os-release",),
    ),
    apart("no /sys", "mount -t tmpfs none /sys", answered=("proc/meminfo",)),
    apart("no /dev/shm", DEVICES, answered=("proc/meminfo",)),
    apart("every file system is read-only", "mount -o remount,bind,ro /", **UNCACHED),
    apart(
        "the root folder of a user's own is unreadable",
        "mkdir -p $HOME/.config/diag/checks; mount -t tmpfs -o mode=000 none $HOME/.config",
    ),
    without("HOME is not set", HOME=None),
    without("HOME is not there", HOME="$BOX/none/such"),
    without("HOME is a file", HOME="/etc/hostname"),
    without("HOME is relative", HOME="no/such"),
    machine("the cache is a file", made="touch $BOX/home/.cache", **UNCACHED),
    machine("the key in the cache is a folder", made="mkdir -p $BOX/home/.cache/diag/redact.key", writes=()),
    machine(
        "the key in the cache is a pipe",
        made="mkdir -p $BOX/home/.cache/diag; mkfifo $BOX/home/.cache/diag/redact.key",
        writes=(),
    ),
    apart(
        "the disk is full where the cache lies",
        "mount -t tmpfs -o size=4k none $HOME; cat /dev/zero >$HOME/rest 2>$BOX/none",
        writes=(),
    ),
    without("TMPDIR is not there", TMPDIR="$BOX/none/such"),
    without("PATH is not set", PATH=None),
    without("PATH is empty", PATH=""),
    without("PATH leads nowhere", PATH="$BOX/none/such:/etc/hostname::"),
    without("the environment is empty", PATH=None, HOME=None, TMPDIR=None),
    without("the environment is no text", PATH="/usr/bin:/\udcff", HOME="/\udcff\n", TERM="\x1b[31m"),
    without("TERM is not set, LC_ALL=C without UTF-8", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", TERM=None),
    without("the locale is not there", LC_ALL="xx_XX.UTF-8", LANG="xx_XX.UTF-8"),
    machine("the folder is deleted", "mkdir gone; cd gone; rmdir ../gone", first=True),
    machine("stdin is closed", "exec <&-"),
    machine("stderr is closed", "exec 2>&-"),
)

LIMITS = (
    apart("an ordinary user (nobody)", NOBODY + 'set -- $as "$@"', needs=(*NAMESPACE, "setpriv"), **UNCACHED),
    machine("root without its capabilities", POWERLESS, needs=("setpriv",)),
    apart(
        "an ordinary user with 3 processes",
        NOBODY + 'set -- prlimit --nproc=3 $as "$@"',
        needs=(*NAMESPACE, "setpriv"),
        answered=("packages", "container", "df"),
        **UNCACHED,
    ),
    apart(
        "an ordinary user with 1 process",
        NOBODY + 'set -- prlimit --nproc=1 $as "$@"',
        needs=(*NAMESPACE, "setpriv"),
        unavailable={"packages": "BlockingIOError"},
        incomplete="the interpreter did not answer",
        answered=("proc/meminfo",),
        writes=(),
    ),
    machine("64 open files (ulimit -n)", "ulimit -n 64", first=True, answered=("packages", "container", "df")),
    machine(
        "20 open files (ulimit -n)",
        "ulimit -n 20",
        unavailable={"packages": "OSError: "},
        incomplete="the interpreter did not answer",
        answered=("proc/meminfo",),
    ),
    machine(
        "256 MiB of address space (ulimit -v)",
        "ulimit -v 262144",
        first=True,
        answered=("packages", "container", "df"),
    ),
    machine("a stack of 256 KiB (ulimit -s)", "ulimit -s 256", answered=("packages", "container", "df")),
    machine("SIGCHLD, SIGINT, SIGTERM and SIGPIPE are ignored", "trap '' CHLD INT TERM PIPE"),
)

OUTPUTS = (
    machine(
        "stdout is closed", "exec >&-", options=(*INTO, "r.json"), document="cwd/r.json", writes=("cwd/r.json", KEY)
    ),
    machine(
        "all streams are closed",
        "exec <&- >&- 2>&-",
        options=(*INTO, "r.json"),
        document="cwd/r.json",
        writes=("cwd/r.json", KEY),
    ),
    machine(
        "stdout is on a full disk", "exec >/dev/full", exit=2, document="", incomplete="", stderr=f"stdout: {NO_SPACE}"
    ),
    full("the disk is full at `--report`", "cannot write", options=(*INTO, "full/r.json"), document="out"),
    full(
        "the disk is full at `bundle`", "cannot write", command=("bundle", "-o", "full/b.tar.gz"), options=("--quick",)
    ),
    apart(
        "`--report` into a read-only file system",
        "echo old >r.json; mount -o remount,bind,ro /",
        options=(*INTO, "r.json"),
        exit=2,
        document="",
        incomplete="",
        stderr="cannot write r.json",
        writes=("cwd/r.json",),
    ),
)

SHORT = (
    child("takes its process with it", "dying", "import os\nos.kill(os.getpid(), 11)", "killed by SIGSEGV"),
    child("ends its process well", "leaving", "import os\nos._exit(0)", "it ended without its document"),
    child("raises", "raising", "raise ValueError('odd')", "ValueError: odd"),
    child(
        "hangs",
        "hanging",
        SLEEP,
        STOPPED,
        options=("--quick", "--root", "$BOX/root", "--timeout", "3"),
        incomplete="the time bound was reached before all of site/hanging was read",
    ),
    child(
        "hangs, and there is no time bound",
        "hanging",
        SLEEP,
        "timed out after 15 s",
        soak=True,
        seconds=30,
    ),
    child(
        "prints for ever",
        "loud",
        "while True: print('x' * 79)",
        STOPPED,
        options=("--quick", "--root", "$BOX/root", "--timeout", "3"),
        incomplete="the time bound was reached before all of site/loud was read",
    ),
    child("writes what is no JSON", "noisy", "import os\nos.write(1, b'{\\xff[')\nos._exit(3)", "exit code 3"),
)
