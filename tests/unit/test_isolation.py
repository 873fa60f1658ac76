"""Who is blamed for slow exchanges: twenty worlds that are not there, and matrices that were measured."""

from __future__ import annotations

from typing import Any

import pytest
from simulated import Machine, Slow

from diag.estimate.blame import judged
from diag.estimate.isolation import pairs_of

DEAD = 1e4


def world(hosts: int, each: int = 8) -> tuple[str, ...]:
    return tuple(f"h{rank // each}" for rank in range(hosts * each))


def away(one: int, other: int, each: int = 8) -> bool:
    return one // each != other // each


def sends(*ranks: int, factor: float = 4.0) -> Slow:
    return lambda source, target: factor if source in ranks else 1.0


def nic(*ranks: int, factor: float = 4.0) -> Slow:
    return lambda source, target: factor if away(source, target) and {source, target} & set(ranks) else 1.0


def rank(*ranks: int, factor: float = 4.0) -> Slow:
    return lambda source, target: factor if {source, target} & set(ranks) else 1.0


def between(one: int, other: int, factor: float = DEAD, *, both: bool = True) -> Slow:
    slow = {(one, other), (other, one)} if both else {(one, other)}
    return lambda source, target: factor if (source, target) in slow else 1.0


HALF_A_RAIL = tuple(range(3, 512, 16))
ROW = tuple(range(8, 16))
LAST = tuple(range(4088, 4096))
WORLDS: dict[str, tuple[dict[str, Any], str, tuple[int, ...], str]] = {
    "8 on one host, dead link": ({"hosts": world(1), "slow": between(2, 5)}, "link", (2,), "both"),
    "8 on one host, one direction": ({"hosts": world(1), "slow": between(6, 1, both=False)}, "link", (6,), "out"),
    "8 on one host, slow device link": ({"hosts": world(1), "slow": rank(7)}, "node", (7,), "both"),
    "8 on one host, what one sends": ({"hosts": world(1), "slow": sends(4)}, "node", (4,), "out"),
    "8 on one host, late rank": ({"hosts": world(1), "late": frozenset({3})}, "late", (3,), ""),
    "8 on one host, slow device": ({"hosts": world(1), "device": frozenset({5})}, "device", (5,), ""),
    "8 on one host, noise": ({"hosts": world(1), "noise": 0.3}, "healthy", (), ""),
    "8 hosts of one, slow interface": ({"hosts": world(8, 1), "slow": sends(2)}, "nic", (2,), "out"),
    "16 on two hosts, slow interface": ({"hosts": world(2), "slow": nic(9)}, "nic", (9,), "both"),
    "32, slow interface": ({"hosts": world(4), "slow": nic(17)}, "nic", (17,), "both"),
    "32, slow host": ({"hosts": world(4), "slow": nic(*ROW)}, "host", ROW, "both"),
    "64, late rank": ({"hosts": world(8), "late": frozenset({40})}, "late", (40,), ""),
    "64, dead link inside a host": ({"hosts": world(8), "slow": between(16, 19)}, "link", (16,), "both"),
    "128, noise": ({"hosts": world(16), "noise": 0.2}, "healthy", (), ""),
    "512, half a rail": ({"hosts": world(64), "slow": nic(*HALF_A_RAIL)}, "rail", HALF_A_RAIL, "both"),
    "512, what one interface sends": (
        {"hosts": world(64), "slow": lambda one, other: 4.0 if one == 77 and away(one, other) else 1.0},
        *("nic", (77,), "out"),
    ),
    "1024, dead path between two hosts": (
        {"hosts": world(128), "slow": between(41, 977), "together": frozenset({"h5", "h122"})},
        *("link", (41,), "both"),
    ),
    "4096, slow interface": ({"hosts": world(512), "slow": nic(1234)}, "nic", (1234,), "both"),
    "4096, slow host": ({"hosts": world(512), "slow": nic(*LAST)}, "host", LAST, "both"),
    "4096, noise": ({"hosts": world(512), "noise": 0.1}, "healthy", (), ""),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_that_is_not_there(name, said):
    facts, *wanted = WORLDS[name]
    machine = Machine(**facts)
    taken = machine.isolated()
    (found,) = judged(machine.known, taken)
    assert [found.kind, found.ranks, found.direction] == wanted
    every = pairs_of(len(machine.hosts))
    said.append(f"isolation  {name:36} {found.kind:8} {machine.counted:7} of {every:9} ordered pairs")
    assert machine.counted <= 9 * every
