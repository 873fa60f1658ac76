"""What is known of other machines, and which of it speaks of a measurement."""

from __future__ import annotations

import json

import pytest
from told import LOADED, examined, text_of

from diag.facts import (
    Collective,
    CollectiveBaseline,
    CollectiveCompared,
    DeviceModel,
    Facts,
    Latency,
    Link,
    Origin,
    compared_collectives,
)
from diag.finding import Finding

ROWS = [row for one in LOADED.later for row in one.rows()]
BASELINES = [one for one in ROWS if isinstance(one, CollectiveBaseline)]
MODELS = {(one.vendor, one.name) for one in ROWS if isinstance(one, DeviceModel)}
HERE = Origin(capture="paste", line=1)
GIB = 2**30
TABLE = """\
# Using devices
{ranks}
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
 {size} {count}  float  sum  -1  {time:.0f}  {algbw:.2f}  {busbw:.2f}  0  {time:.0f}  {algbw:.2f}  {busbw:.2f}  0
"""


def table(device: str, ranks: int, size: int, busbw: float) -> str:
    """A row of nccl-tests."""
    listed = "\n".join(
        f"#  Rank {rank:2} Group  0 Pid   {rank + 70} on node1 device {rank:2} [0x{rank + 16:02x}] {device}"
        for rank in range(ranks)
    )
    algbw = busbw / (2 * (ranks - 1) / ranks)
    time = size / algbw / 1e3
    return TABLE.format(ranks=listed, size=size, count=size // 4, time=time, algbw=algbw, busbw=busbw)


def found(text: str) -> dict[str, Finding]:
    results = [one for one in examined(text).results if one.check.startswith("collectives/below")]
    return {one.check.partition("/")[2]: one.findings[0] for one in results if one.findings}


def judged(**told: object) -> list[tuple[float, str]]:
    """How a measurement of 8 H100 stands to each row that speaks of it, and in what it differs."""
    same = {"op": "all_reduce", "tool": "diag", "device": "NVIDIA H100 80GB HBM3", "ranks": 8, "nodes": 1}
    one = Collective(origin=HERE, **{**same, **told})  # type: ignore[arg-type]
    return [(pair.ratio, pair.differs) for pair in compared_collectives(Facts((*ROWS, *LOADED.references, one)))]


def test_rows_are_of_known_models_and_tell_one_figure() -> None:
    assert {(one.vendor, one.device) for one in BASELINES} <= MODELS
    assert all((one.busbw_gbps is None) != (one.latency_us is None) for one in BASELINES)
    assert all(one.until == 0 or one.until >= one.bytes for one in BASELINES)
    assert all(one.source.startswith("http") for one in BASELINES if one.standing in ("pass", "measured", "vendor"))


@pytest.mark.parametrize(("ranks", "nodes"), [(4, 1), (8, 2)])
def test_other_ranks_or_nodes_are_another_machine(ranks: int, nodes: int) -> None:
    assert judged(bytes=16 * GIB, busbw_gbps=300.0, ranks=ranks, nodes=nodes) == []


def test_between_two_sizes_of_a_sweep_the_smaller_holds() -> None:
    assert (300 / 438.46, "") in judged(bytes=700 * 2**20, busbw_gbps=300.0)


def test_where_calls_decide_the_way_of_timing_must_be_the_same() -> None:
    assert judged(bytes=2**20, busbw_gbps=20.0, mode="synchronised") == []
    assert (20 / 43.7, "") in judged(bytes=2**20, busbw_gbps=20.0, mode="free-running")


def test_of_a_noisy_measurement_the_fastest_call_counts() -> None:
    fastest = 16 * GIB / (480 / 1.75) / 1e3
    noisy = judged(bytes=16 * GIB, busbw_gbps=100.0, noisy=True, latency_us=Latency(min=fastest, median=5 * fastest))
    assert min(ratio for ratio, _ in noisy) == pytest.approx(1.0, abs=0.05)
    assert judged(bytes=16 * GIB, busbw_gbps=100.0, noisy=True) == []


def test_a_latency_is_held_against_one_of_the_same_way_of_timing() -> None:
    told = {"op": "all_reduce", "bytes": 8, "ranks": 8, "device": "NVIDIA GeForce RTX 4090"}
    latency = Latency(mean=170.24)
    assert judged(**told, latency_us=latency) == [(0.25, "")]
    assert judged(**told, latency_us=latency, mode="synchronised") == []


def test_a_threshold_that_others_do_not_share_is_of_medium_confidence() -> None:
    strict = found(table("NVIDIA H100 80GB HBM3", 8, 16 * GIB, 450.0))["below-baseline"]
    every = found(table("NVIDIA H100 80GB HBM3", 8, 16 * GIB, 367.0))["below-baseline"]
    assert (strict.confidence, every.confidence) == ("medium", "high")
    assert strict.source.endswith("nd96isr_h100_v5.conf")


MATRIX = "        GPU0    GPU1    CPU Affinity\nGPU0     X      {kind}    0-31\nGPU1    {kind}     X      0-31\n"


@pytest.mark.parametrize(
    ("matrix", "answers"),
    [(MATRIX.format(kind="NV12"), {"below-baseline"}), (MATRIX.format(kind="SYS"), set()), ("", {"below-typical"})],
)
def test_a_row_of_bridged_cards_speaks_of_bridged_cards(matrix: str, answers: set[str]) -> None:
    slow = table("NVIDIA A100 80GB PCIe", 2, 16 * GIB, 20.0)
    assert found(matrix + slow).keys() == answers


def test_links_are_those_between_devices() -> None:
    links = [
        Link(origin=HERE, first="GPU0", second=end, kind=kind) for end, kind in (("GPU1", "NV12"), ("NIC0", "PIX"))
    ]
    told = Collective(
        origin=HERE,
        op="all_reduce",
        tool="nccl-tests",
        bytes=16 * GIB,
        device="NVIDIA A100 80GB PCIe",
        ranks=2,
        nodes=1,
        busbw_gbps=20.0,
    )
    assert [one.differs for one in compared_collectives(Facts((*ROWS, *LOADED.references, *links, told)))] == [""]


def test_a_device_of_which_nothing_is_known_gets_no_verdict() -> None:
    text = table("NVIDIA GeForce GTX 1080 Ti", 2, GIB, 0.1)
    results = {one.check: one.status for one in examined(text).results}
    assert results["collectives/below-baseline"] == results["collectives/below-typical"] == "skip"


DOCUMENT = {
    "schema": "diag/collectives/1",
    "device": "cuda",
    "backend": "nccl",
    "dtype": "bf16",
    "launcher": "diag",
    "size": 8,
    "seconds": 9.0,
    "ranks": [{"rank": rank, "host": "a", "device": "GPU", "address": f"cuda:{rank}"} for rank in range(8)],
    "results": [
        {
            "op": "all_reduce",
            "bytes": 2560 * 2**10,
            "mode": "synchronised",
            "in_place": True,
            "calls": 60,
            "correct": True,
            "error": "",
            "median": 0.0005,
            "interval90": 1e-6,
            "foreign_cpu": 0.0,
            "blocks": [[0.0005], [0.0005]],
            "ranks": [[0.0005]] * 8,
        }
    ],
}


def test_a_card_that_torch_calls_by_no_name_is_known_by_its_own_tool() -> None:
    cards = text_of("kunlun/xpu-smi-5.0.21.21-p800-8.txt")
    values = found(f"{cards}\n{json.dumps(DOCUMENT)}\n")["below-typical"].values
    assert (values["device"], values["value"], values["percent"]) == ("P800", "9.2 GB/s", 27)


def beside(text: str) -> CollectiveCompared:
    (one,) = examined(text).facts.all(CollectiveCompared)
    return one


def test_what_the_results_were_compared_with_is_told() -> None:
    one = beside(table("NVIDIA H100 80GB HBM3", 8, 16 * GIB, 471.0))
    assert (one.model, one.standing, one.results, one.compared, one.lacks) == ("H100 SXM", "measured", 1, 1, "")
    assert one.busbw_gbps
    assert one.ratio
    assert one.ratio == pytest.approx(471.0 / one.busbw_gbps, rel=1e-3)
    rows = [row for row in BASELINES if (row.op, row.device, row.ranks) == ("all_reduce", "H100 SXM", 8)]
    assert one.busbw_gbps in {row.busbw_gbps for row in rows if row.source == one.source}


@pytest.mark.parametrize(
    ("name", "lacks", "model"),
    [
        ("nccl-h100-mpirun", "device", ""),
        ("nccl-gb10-two-nodes", "row", "GB10 (DGX Spark)"),
        ("nccl-a100-2021-allreduce", "", "A100 SXM 40GB"),
    ],
)
def test_why_results_were_compared_with_nothing_is_told(name: str, lacks: str, model: str) -> None:
    one = beside(text_of(f"collectives/{name}.txt"))
    assert (one.lacks, one.model, bool(one.compared)) == (lacks, model, not lacks)


def test_devices_that_nobody_knows_are_compared_with_nothing() -> None:
    one = beside(table("NVIDIA X999", 8, 16 * GIB, 471.0))
    assert (one.lacks, one.device, one.compared, one.ratio) == ("model", "NVIDIA X999", 0, None)
