"""Network interfaces of the kernel as this process sees them: prints `diag/interfaces/1`.

Reads names, states and sizes, and whether an interface has an address that others can reach; no address is printed.
`own_name` is where the table of hosts leads the machine's name: an address that every machine has is told, any other is
`away`, and nothing where the table does not have the name. No name server is asked. Another folder and another table
may be given as arguments.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import sys

ROOT = "/sys/class/net"
TABLE = "/etc/hosts"
INET6 = "/proc/net/if_inet6"
GET_ADDRESS = 0x8915
"""The request `SIOCGIFADDR`."""
GLOBAL = "00"
"""The scope that the kernel gives an IPv6 address that is good beyond its link."""
OWN = (b"\x7f", b"\xa9\xfe")
"""How IPv4 addresses begin that are good for this host or this link alone."""


def read(*path: str) -> str:
    """The first line of a file, empty where it cannot be read."""
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
            return file.readline(200).strip()
    except (OSError, ValueError):
        return ""


def number(text: str) -> int | None:
    """A count; the kernel says -1 where it does not know."""
    return int(text) if text.isdigit() else None


def ipv4(name: str) -> bool:
    """Whether an interface has an IPv4 address that is good beyond its link."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            told = fcntl.ioctl(asked.fileno(), GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return False
    return not told[20:24].startswith(OWN)


def ipv6() -> set[str]:
    """The interfaces that have an IPv6 address that is good beyond their link."""
    try:
        with open(INET6, encoding="utf-8", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return set()
    return {row[5] for row in rows if len(row) > 5 and row[3] == GLOBAL}


def own_name(table: str) -> str:
    """What the first line with the machine's name has for an address: a loopback one, `away`, or nothing."""
    name = socket.gethostname().lower()
    names = {name, name.partition(".")[0]}
    try:
        with open(table, encoding="utf-8", errors="replace") as file:
            lines = [line.partition("#")[0].lower().split() for line in file.readlines(2**20)]
    except OSError:
        return ""
    address = next((words[0] for words in lines if names & set(words[1:])), "")
    return address if address.startswith(("127.", "::1")) else address and "away"


def main() -> None:
    """Print the document."""
    root, table, *_ = (*sys.argv[1:], *(ROOT, TABLE)[len(sys.argv) - 1 :])
    names = sorted(name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name)))
    reachable = ipv6()
    told = [
        {
            "name": name,
            "state": read(root, name, "operstate"),
            "mtu": number(read(root, name, "mtu")),
            "speed_mbps": number(read(root, name, "speed")),
            "addressed": name in reachable or ipv4(name),
        }
        for name in names
    ]
    document = {"schema": "diag/interfaces/1", "interfaces": told, "own_name": own_name(table)}
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
