"""Device files with their rights, and whether this process may open them: prints `diag/device-nodes/1`.

Opens none of them: the driver would start the device. Reads the names in `/dev` and in the folders where accelerators
and adapters have theirs.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import sys
from collections.abc import Callable

FOLDERS = ("", "dri", "accel", "infiniband", "nvidia-caps-imex-channels", "vfio")
OTHERS = ("tty", "vcs", "loop", "ram", "ptp", "rtc", "hpet", "cpu", "mem", "null", "zero", "full")
"""Starts of names that every machine has."""


def files(root: str) -> list[str]:
    """The names of a folder, in order; nothing where there is none."""
    try:
        return sorted(os.listdir(root))
    except OSError:
        return []


def named(look: Callable[[int], object], number: int) -> str:
    """The name of a user or group, or its number where it has none here."""
    try:
        return str(look(number))
    except (KeyError, OSError):
        return str(number)


def told(path: str) -> dict[str, object] | None:
    """What a path is, where it is a device file."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISCHR(seen.st_mode):
        return None
    return {
        "path": path,
        "mode": stat.filemode(seen.st_mode),
        "owner": named(lambda uid: pwd.getpwuid(uid).pw_name, seen.st_uid),
        "group": named(lambda gid: grp.getgrgid(gid).gr_name, seen.st_gid),
        "accessible": os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids),
    }


def main() -> None:
    """Print the document."""
    paths = (os.path.join("/dev", folder, name) for folder in FOLDERS for name in files(os.path.join("/dev", folder)))
    nodes = [one for path in paths if not path[5:].startswith(OTHERS) and (one := told(path))]
    sys.stdout.write(
        json.dumps({"schema": "diag/device-nodes/1", "listed": bool(files("/dev")), "nodes": nodes}) + "\n"
    )


if __name__ == "__main__":
    main()
