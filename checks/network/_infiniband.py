"""RDMA adapters as the kernel shows them in `/sys/class/infiniband`: prints `diag/infiniband/1`.

Reads no more than names and states, needs no rights and no tool. Another folder may be given as the argument.
"""

from __future__ import annotations

import json
import os
import sys

ROOT = "/sys/class/infiniband"
GAP = 16
"""Empty rows after which the rest of a table of GIDs is passed over."""
NONE = "0000:0000:0000:0000:0000:0000:0000:0000"


def read(*path: str) -> str:
    """The first line of a file, empty where it cannot be read."""
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.readline(200).strip()
    except OSError:
        return ""


def names(*path: str) -> list[str]:
    """What a folder holds, in order; nothing where there is none."""
    try:
        return sorted(os.listdir(os.path.join(*path)))
    except OSError:
        return []


def gids(root: str, device: str, port: str) -> list[dict[str, object]]:
    """The rows of a port's table that are in use, with what kind they are and whose."""
    path, told, empty = (root, device, "ports", port), list[dict[str, object]](), 0
    for index in sorted(int(name) for name in names(*path, "gids") if name.isdigit()):
        gid = read(*path, "gids", str(index))
        empty = empty + 1 if gid in ("", NONE) else 0
        if not empty:
            kind, interface = (read(*path, "gid_attrs", of, str(index)) for of in ("types", "ndevs"))
            told.append({"index": index, "gid": gid, "kind": kind, "interface": interface})
        elif empty >= GAP:
            break
    return told


def ports(root: str) -> list[dict[str, object]]:
    """Every port of every adapter, with the files as they are."""
    return [
        {
            "device": device,
            "port": port,
            "firmware": read(root, device, "fw_ver"),
            "board": read(root, device, "board_id"),
            "interface": " ".join(names(root, device, "device", "net")),
            **{name: read(root, device, "ports", port, name) for name in ("state", "phys_state", "rate", "link_layer")},
            "gids": gids(root, device, port),
        }
        for device in names(root)
        for port in names(root, device, "ports")
    ]


def main() -> None:
    """Print the document."""
    root = sys.argv[1] if len(sys.argv) > 1 else ROOT
    document = {"schema": "diag/infiniband/1", "present": os.path.isdir(root), "ports": ports(root)}
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
