"""Collectives without ranks: how samples become numbers, who is suspected, which sizes are asked for."""

from __future__ import annotations

import json
import random
import statistics
import time
from typing import NamedTuple

import pytest
from told import examined

from diag.cli.comm import batches, sizes_of
from diag.errors import DiagError
from diag.facts import Collective, bus_factor
from diag.probe import program
from diag.render.collectives import size
from diag.sources import MEASURE
from diag.world import suspects

SWEEP = program(str(MEASURE / "sweep.py"))
MIB = 2**20


def document(seconds: float, *, op: str = "all_reduce", ranks: int = 8, bytes: int = 2_600_000) -> str:
    result = {"op": op, "bytes": bytes, "mode": "synchronised", "in_place": True, "correct": True, "error": ""}
    result |= {"calls": 60, "median": seconds, "interval90": seconds / 100, "foreign_cpu": 0.0}
    result |= {"blocks": [[seconds] * 10] * 6, "ranks": [[seconds] * 6] * ranks}
    each = {"host": "a", "device": "P800", "torch": "2.9.0", "library": "", "cpus": 8, "libraries": []}
    told = {"schema": "diag/collectives/1", "device": "cuda", "backend": "nccl", "dtype": "bf16", "size": ranks}
    told |= {"ranks": [{"rank": rank, **each} for rank in range(ranks)], "results": [result], "launcher": "diag"}
    return json.dumps(told)


def measured(text: str) -> Collective:
    (told,) = examined(text).facts.all(Collective)
    return told


def test_the_seed_case():
    told = measured(document(0.1347e-3))
    assert (round(told.algbw_gbps, 1), round(told.busbw_gbps, 1)) == (19.3, 33.8)
    assert told.latency_us.median == 134.7
    assert told.says() == "all_reduce of 2600000 bytes, bf16, 8 ranks, synchronised, 134.7 µs, busbw 33.78 GB/s"


@pytest.mark.parametrize(
    ("op", "factor"), [("all_reduce", 1.75), ("all_gather", 0.875), ("all_to_all", 0.875), ("broadcast", 1.0)]
)
def test_bus_bandwidth_by_the_factors_of_nccl_tests(op, factor):
    told = measured(document(1e-3, op=op, bytes=8 * MIB))
    assert told.algbw_gbps == pytest.approx(8.388608)
    assert told.busbw_gbps == pytest.approx(8.388608 * factor, rel=1e-5)
    assert (bus_factor(op, 1), bus_factor("mystery", 8)) == (None, None)


def test_a_damaged_document_tells_nothing_and_breaks_nothing():
    whole = document(1e-3)
    for changed in (
        whole[:300],
        whole.replace('"ranks": [[', '"ranks": [["'),
        whole.replace('"rank": 3', '"rank": {}'),
    ):
        assert examined(changed).broken == ()


class Seen(NamedTuple):
    rank: int
    entered: int
    finished: int
    state: str = "S"
    ended: str = ""


@pytest.mark.parametrize(
    ("states", "named"),
    [
        ([Seen(0, 5, 4), Seen(1, 5, 4), Seen(2, 4, 4)], [2]),
        ([Seen(0, 5, 4), Seen(1, 5, 4, "T"), Seen(2, 5, 4)], [1]),
        ([Seen(0, 5, 4), Seen(1, 5, 5), Seen(2, 5, 4)], [1]),
        ([Seen(0, 5, 4), Seen(1, 5, 4, "", "killed by SIGKILL")], [1]),
        ([Seen(0, 5, 4), Seen(1, 5, 4), Seen(2, 5, 4)], []),
        ([Seen(0, 0, 0), Seen(1, 0, 0)], []),
    ],
)
def test_who_keeps_the_others_waiting(states, named):
    assert suspects(states) == named


def test_sizes_and_batches():
    assert sizes_of("1KiB:8KiB") == (1024, 2048, 4096, 8192)
    assert sizes_of("1K:1M:32,2.6MB") == (1024, 32768, 1048576, 2_600_000)
    assert sizes_of("10240") == (10240,)
    assert [size(one) for one in (1024, 3 * MIB, 2**30, 2_600_000)] == ["1 KiB", "3 MiB", "1 GiB", "2600 KB"]
    assert batches("1, 8,256") == [1, 8, 256]
    for wrong in ("", "x", "1KiB:", "0", "100TiB", "1:2:1", "1:2:3:4", "-1"):
        with pytest.raises(DiagError):
            sizes_of(wrong)
    with pytest.raises(DiagError):
        batches("1,,2")


def test_the_interval_is_that_of_blocks_and_leaves_the_warm_up_out():
    chance = random.Random(1)
    blocks = [[9.0] * 3, *([1.0 + chance.gauss(0, 0.05) for _ in range(20)] for _ in range(8))]
    middle, half = SWEEP["interval"](blocks)
    assert middle == pytest.approx(statistics.median(statistics.median(one) for one in blocks[1:]))
    assert 0 < half < 0.05
    unsteady = [[1.0] * 9 if number % 2 else [4.0] * 9 for number in range(9)]
    assert SWEEP["interval"](unsteady)[1] > 0.3


def test_sums_of_the_pattern_are_exact_and_differ_along_it_where_that_can_be():
    for ranks in range(2, 257):
        period = SWEEP["period"](ranks)
        sums = [sum((one + owner) % period for owner in range(ranks)) for one in range(period)]
        assert max(sums) <= SWEEP["EXACT"]
        assert len(set(sums)) > 1 or ranks > 36


@pytest.mark.parametrize("spent", [0.0, 5.0])
def test_a_round_is_planned_within_what_is_left(spent):
    taken = SWEEP["Taken"]([[0.01]], [[0.01]], [], [1], [])
    now = time.monotonic()
    plan = SWEEP["planned"]([taken, taken], now + 5.0 - spent)
    assert plan == ([] if spent else [(0, 49), (1, 49)])
