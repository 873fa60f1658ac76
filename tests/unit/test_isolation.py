"""Who is blamed for slow exchanges: twenty worlds that are not there, and matrices that were measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated import Machine, Slow
from told import examined

from diag.estimate.blame import judged, pairs_of
from diag.estimate.isolation import Known, asked, circle, narrowed
from diag.facts import CollectivePair, CollectiveVerdict
from diag.probe import program
from diag.sources import MEASURE

DEAD = 1e4
FOREIGN = program(str(MEASURE / "isolate.py"))["foreign"]


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


RECORDED = Path(__file__).with_name("isolation")
BLAMED = {"link": [("nic", (1,), "out")], "late": [("late", (2,), "")], "none": [("healthy", (), "")]}


def recorded(name: str) -> tuple[Known, list[dict[str, Any]]]:
    document = json.loads((RECORDED / f"{name}.json").read_text())
    hosts = tuple(one["host"] for one in document["ranks"])
    return Known(hosts, document["isolation"]["large"]), document["isolation"]["steps"]


@pytest.mark.parametrize("name", BLAMED)
def test_a_recorded_run_is_replayed(name):
    known, steps = recorded(name)
    for number, step in enumerate(steps):
        wanted = asked(known, steps[:number])
        assert wanted == {key: step[key] for key in wanted}
    assert asked(known, steps) is None
    assert [(one.kind, one.ranks, one.direction) for one in judged(known, steps)] == BLAMED[name]


@pytest.mark.parametrize("name", BLAMED)
def test_a_recorded_run_becomes_facts_and_a_matrix(name):
    report = examined((RECORDED / f"{name}.json").read_text())
    (told,) = report.facts.all(CollectiveVerdict)
    assert (told.kind, told.ranks, told.possible) == (BLAMED[name][0][0], BLAMED[name][0][1], 12)
    pairs = report.facts.all(CollectivePair)
    assert len(pairs) == 24
    assert (max(one.us / one.base_us for one in pairs) > 10) == (name == "link")


def matrix(rows: dict[int, dict[int, float]], passes: int = 6) -> list[dict[str, Any]]:
    """Passes of a matrix in milliseconds."""
    pairs = [[source, target] for source, row in rows.items() for target in row]
    seconds = [[1e-4, rows[source][target] / 1e3] for source, target in pairs]
    step = {"kind": "pairs", "of": "all", "bytes": [8192, 2**20], "rounds": [pairs], "seconds": [seconds]}
    return [step] * passes


FOUR = Known(("a", "b", "c", "d"))
EVEN = {one: {other: 0.6 + 0.1 * ((one + other) % 4) for other in range(4) if other != one} for one in range(4)}


def test_the_throttled_link_of_the_note():
    (told,) = judged(FOUR, matrix(EVEN | {1: {0: 13.4, 2: 13.4, 3: 13.4}}))
    assert (told.kind, told.ranks, told.direction) == ("nic", (1,), "out")


def test_a_rank_with_an_eighth_of_a_processor_is_found_alone():
    """Two of three of its pairs are slow, which is no row; its own work is 8.3 times slower."""
    steps = matrix(EVEN | {3: {0: 1.5, 1: 0.7, 2: 1.5}})
    assert [one.kind for one in judged(FOUR, steps)] in (["noise"], [])
    steps += [{"kind": "self", "seconds": [1e-4, 1e-4, 1e-4, 8.3e-4]}] * 3
    assert next((one.kind, one.ranks) for one in judged(FOUR, steps)) == ("device", (3,))


def test_a_message_that_never_arrives_is_a_dead_link():
    (told,) = judged(FOUR, matrix(EVEN, 1), dead=[(1, 2)])
    assert (told.kind, told.ranks, told.peers, told.seconds) == ("link", (1,), (2,), None)


def test_two_kinds_of_links_accuse_nobody():
    islands = {a: {b: 0.3 if a // 4 == b // 4 else 1.2 for b in range(8) if b != a} for a in range(8)}
    assert [one.kind for one in judged(Known(("a",) * 8), matrix(islands, 9))] == ["noise"]


def test_small_messages_that_come_later_by_a_wake_up_accuse_nobody():
    """So it was in a healthy run, in the least of nine passes."""
    steps = [one | {"seconds": [[[2e-4, 9e-4]] * 11 + [[3.31e-4, 9e-4]]]} for one in matrix(EVEN, 9)]
    assert judged(FOUR, steps) == []


def test_of_a_machine_that_others_use_more_is_taken_for_healthy():
    """Two of one pair's milliseconds are a fault on a quiet machine, and none where half of it works for others."""
    quiet = matrix(EVEN | {1: EVEN[1] | {2: 2.0}}, 9)
    (link,) = judged(FOUR, quiet)
    assert (link.kind, link.ranks, link.threshold) == ("link", (1,), 1.6)
    assert judged(FOUR, [one | {"foreign": 0.5} for one in quiet]) == []
    assert [one.kind for one in judged(FOUR, [quiet[0], *(one | {"foreign": 0.5} for one in quiet[1:])])] == ["link"]
    (cut,) = judged(FOUR, [one | {"foreign": 0.5} for one in matrix(EVEN | {1: EVEN[1] | {2: 13.4}}, 9)])
    assert (cut.kind, cut.ranks, cut.threshold) == ("link", (1,), 3.2)


def test_what_others_use_is_told_of_the_machine_where_it_is_most():
    """Two ranks on one machine, one on another: seconds of their own, of all that ran, and that there were."""
    assert FOREIGN([("a", 1.0, 2.5, 4.0), ("a", 0.5, 2.4, 4.0), ("b", 3.0, 3.1, 4.0)]) == 0.25
    assert FOREIGN([("a", 2.0, 1.9, 4.0)]) == 0.0


def test_data_that_change_are_told_of_the_rank_that_sends_them():
    steps = [one | {"wrong": [[2, 0], [2, 1], [2, 3]]} for one in matrix(EVEN, 1)]
    assert [(one.kind, one.ranks, one.direction) for one in judged(FOUR, steps)] == [("wrong", (2,), "out")]


@pytest.mark.parametrize("count", range(2, 12))
def test_all_meet_all_once(count):
    met = [frozenset(pair) for meeting in circle(count) for pair in meeting]
    assert len(met) == len(set(met)) == count * (count - 1) // 2
    for meeting in circle(count):
        seated = [one for pair in meeting for one in pair]
        assert len(seated) == len(set(seated))


@given(st.integers(4, 60), st.data())
def test_two_that_are_slow_together_are_narrowed_down(count, data):
    hosts = [str(one) for one in range(count)]
    bad = set(data.draw(st.lists(st.sampled_from(hosts), min_size=2, max_size=2, unique=True)))
    found = narrowed(hosts, lambda *groups: [9.0 if bad <= set(group) else 1.0 for group in groups])
    assert set(found) == bad
