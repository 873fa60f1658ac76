"""Tables of collective benchmarks: what the saved texts do not show, and what must not be taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from told import facts_of

from diag.capture import Held
from diag.facts import Collective
from diag.sources import Paste

HEAD = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
ROW = "  1048576  262144  float  sum  -1  100.0  10.49  18.35  0  100.0  10.49  18.35  0\n"
RUN = "# nThread 1 nGpus 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: {m} validation: 1 graph: {g}\n"
RANK = "#  Rank  {0} Group  0 Pid  {0} on  {1} device  {2} [0x0f] NVIDIA H100\n"


def told(text: str) -> list[Collective]:
    return list(facts_of(Paste("text", Held(text)).captures(())).all(Collective))


def test_a_process_without_mpi_is_one_rank_and_has_no_bandwidth() -> None:
    alone = RUN.format(m=1, g=0) + RANK.format(0, "a", 0) + HEAD + ROW.replace("18.35", "0.00")
    found = told(alone + alone)
    assert [(one.ranks, one.nodes, one.busbw_gbps, one.algbw_gbps) for one in found] == [(1, 1, None, None)] * 4


def test_processes_that_print_between_each_other_are_ranks_alone() -> None:
    heads = RUN.format(m=1, g=0) * 2 + RANK.format(0, "a", 0) + RANK.format(0, "b", 0) + HEAD + HEAD
    found = told(heads + ROW.replace("18.35", "0.00") * 2)
    assert {(one.ranks, one.busbw_gbps) for one in found} == {(1, None)}


def test_bandwidth_without_a_rise_betrays_a_rank_that_is_alone() -> None:
    assert {one.ranks for one in told("./all_reduce_perf\n" + HEAD + ROW.replace("18.35", "0.00"))} == {1}


def test_ranks_are_those_of_the_rows_where_the_list_is_cut() -> None:
    listed = "".join(RANK.format(rank, "a", rank) for rank in range(4))
    row = "  1073741824  268435456  float  sum  -1  4000.0  268.44  469.76  0\n"
    assert [(one.ranks, one.nodes) for one in told(listed + HEAD + row)] == [(8, None)]


def test_hosts_of_one_name_are_not_counted() -> None:
    listed = "".join(RANK.format(rank, "node", rank % 2) for rank in range(4))
    row = "  1048576  262144  float  sum  -1  100.0  10.49  15.73  0\n"
    assert [(one.ranks, one.nodes) for one in told(listed + HEAD + row)] == [(4, None)]


def test_two_hosts() -> None:
    listed = "".join(RANK.format(rank, "ab"[rank // 4], rank % 4) for rank in range(8))
    assert {(one.ranks, one.nodes, one.device) for one in told(listed + HEAD + ROW)} == {(8, 2, "NVIDIA H100")}


@pytest.mark.parametrize(
    ("head", "mode"),
    [(RUN.format(m=1, g=5), "graph"), (RUN.format(m=1, g=0) + "# Blocking Enabled: wait\n", "synchronised")],
)
def test_mode(head: str, mode: str) -> None:
    assert {one.mode for one in told(head + HEAD + ROW)} == {mode}


def test_a_graph_that_a_command_asks_for_is_that_of_the_next_table() -> None:
    found = told(f"{RUN.format(m=1, g=0)}{HEAD}{ROW}$ ./all_reduce_perf -g 8 -G 1\n{RUN.format(m=1, g=0)}{HEAD}{ROW}")
    assert [one.mode for one in found] == ["", "", "graph", "graph"]


def test_calls_that_were_aggregated_have_no_latency() -> None:
    assert [one.latency_us.typical for one in told(RUN.format(m=100, g=0) + HEAD + ROW)] == [None, None]


def test_time_on_the_processor_is_no_latency() -> None:
    found = told(HEAD.replace(" time ", " cputime ") + ROW.replace("100.0", "9.00"))
    assert [(one.latency_us.typical, one.algbw_gbps) for one in found] == [(None, 10.49)] * 2


def test_times_of_single_calls() -> None:
    columns = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    head = f"# size count type redop root {columns} {columns}\n"
    calls = "100.0 10.49 18.35 0 90.0 140.0 139.0 5.0"
    found = told(f"{head}1048576 262144 float sum -1 {calls} {calls.replace('90.0', '91.0')}\n")
    assert [(one.latency_us.min, one.latency_us.mean, one.latency_us.max) for one in found] == [
        (90.0, 100.0, 140.0),
        (91.0, 100.0, 140.0),
    ]


def test_wrong_elements() -> None:
    found = told(HEAD + ROW.replace("18.35  0\n", "18.35  1.2e+06\n"))
    assert [(one.correct, one.wrong) for one in found] == [(True, 0), (False, 1_200_000)]


def test_errors_of_old_tables_are_judged_by_the_type() -> None:
    head = "# size count type redop time algbw busbw error time algbw busbw error\n"
    rows = [
        f"1048576 262144 float sum 100.0 10.49 18.35 {error} 100.0 10.49 18.35 {error}\n"
        for error in ("5e-07", "2e-01")
    ]
    assert [(one.correct, one.wrong) for one in told(head + rows[0] + rows[1])] == [(True, None)] * 2 + [
        (False, None)
    ] * 2


def test_milliseconds_of_the_oldest_tables() -> None:
    head = "#      bytes  N  type  op  time  algbw  busbw  res  time  algbw  busbw  res\n"
    row = "   33554432  8388608  float  sum  2.107  15.92  27.86  0e+00  2.105  15.94  27.89  0e+00\n"
    assert [(one.latency_us.typical, one.ranks) for one in told(head + row)] == [(2107.0, 8), (2105.0, 8)]


def test_all_gather_is_not_taken_for_all_to_all() -> None:
    row = "  1048576  32768  float  none  -1  100.0  10.49  9.18  0  100.0  10.49  9.18  {0}\n"
    assert {one.op for one in told(HEAD + row.format("0"))} == {"all_gather"}
    assert {one.op for one in told(HEAD + row.format("N/A"))} == {"all_to_all"}
    assert told(HEAD + row.replace("  0  ", "  N/A  ").format("N/A")) == []


def test_a_row_that_is_cut_does_not_hide_the_operation() -> None:
    row = "  1048576  32768  float  none  -1  100.0  10.49  9.18  0  100.0  10.49  9.18  0\n"
    assert {one.op for one in told(HEAD + row + row[: row.rindex("9.18")])} == {"all_gather"}


def test_columns_of_another_tool_are_not_those_of_nccl_tests() -> None:
    head = "size(B)  count  type  redop  latency(us)  min_lat(us)  max_lat(us)  algbw(GB/s)  busbw(GB/s)\n"
    assert told(head + "1024  256  int  sum  8.881746  8.882  8.882  0.115  0.202\n") == []


def test_a_row_that_is_cut_in_a_number_tells_nothing_of_that_place() -> None:
    assert [one.in_place for one in told(HEAD + ROW[: ROW.rindex("18.35") + 4])] == [False]


def document(**changed: Any) -> str:
    placed = {"time": 100.5, "alg_bw": 10.4, "bus_bw": 18.2, "nwrong": 0.0}
    devices = [
        {"rank": rank, "group": 0, "hostname": "ab"[rank // 4], "device_info": "NVIDIA H100"} for rank in range(8)
    ]
    config = {"nthreads": 1, "ngpus": 1, "iterations": 20, "aggregated_iterations": 1, "graph": 0, "devices": devices}
    calls = {"min_us": 90.0, "p50_us": 99.0, "p95_us": 120.0, "max_us": 140.0, "avg_us": 100.0}
    row = {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": "-1", "out_of_place": placed}
    results = [{**row, "out_of_place_per_iter": calls, "in_place": {**placed, "nwrong": None}}]
    start = {
        "version": 3,
        "start_time": "2026-07-01 10:00:00",
        "args": ["./build/all_reduce_perf"],
        "env": ["TOKEN=secret"],
    }
    return json.dumps({**start, "nccl_version": 22809, "config": config, "results": results, **changed})


@pytest.mark.parametrize("indent", [None, 2])
def test_document(indent: int | None) -> None:
    first, second = told(json.dumps(json.loads(document()), indent=indent))
    assert (first.op, first.bytes, first.ranks, first.nodes, first.device) == (
        "all_reduce",
        1048576,
        8,
        2,
        "NVIDIA H100",
    )
    assert (first.library_version, first.latency_us.median, first.busbw_gbps, first.correct) == (
        "2.28.9",
        99.0,
        18.2,
        True,
    )
    assert (second.in_place, second.correct, second.latency_us.mean) == (True, None, 100.5)
    assert "secret" not in first.origin.quote + second.origin.quote


@pytest.mark.parametrize("key", ["args", "nccl_version", "config", "results"])
@pytest.mark.parametrize("value", [None, [], {}, "x", -1, [[]], [None]])
def test_a_document_that_is_damaged_tells_less(key: str, value: object) -> None:
    found = facts_of(Paste("text", Held(document(**{key: value}))).captures(()))
    assert len(found.all(Collective)) in (0, 2)
    assert not [one for one in found if "diag could not read" in one.says()]
