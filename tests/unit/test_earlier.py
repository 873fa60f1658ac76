"""An earlier run to compare with: how much of it is compared, what noise hides, what is said where nothing is alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from held import LOADED
from told import examined

from diag.cli.unanswered import unmeasured
from diag.facts import Collective
from diag.render import render
from diag.render.words import WORDS
from diag.report import Judged, Source, assemble

SIZES = (1024, 65536, 1048576)


def now(*seconds: float, interval: float) -> str:
    """A run of ours; `interval` is a share of the median."""
    timed = [
        {
            "op": "all_reduce",
            "bytes": size,
            "mode": "free-running",
            "in_place": True,
            "correct": True,
            "error": "",
            "calls": 60,
            "median": taken,
            "interval90": interval * taken,
            "foreign_cpu": 0.0,
            "blocks": [[taken]],
            "ranks": [[taken], [taken]],
        }
        for size, taken in zip(SIZES, seconds, strict=True)
    ]
    world = {"schema": "diag/collectives/1", "device": "cpu", "backend": "gloo", "dtype": "bf16", "launcher": "diag"}
    members = [{"rank": rank, "host": "a", "device": "cpu"} for rank in range(2)]
    return json.dumps({**world, "size": 2, "ranks": members, "results": timed})


def then(*us: float, **changed: Any) -> str:
    """What the earlier run told, of which something may be other."""
    told = [
        {
            "op": "all_reduce",
            "bytes": size,
            "tool": "diag",
            "mode": "free-running",
            "in_place": True,
            "dtype": "bf16",
            "ranks": 2,
            "latency_us": {"median": taken},
            "interval90_us": 0.0,
            **changed,
        }
        for size, taken in zip(SIZES, us, strict=False)
    ]
    return json.dumps({"schema": "diag/collectives-earlier/1", "file": "r.json", "results": told})


def judged(text: str, form: str = "terminal", language: str = "en") -> tuple[str, list[str]]:
    """The report of `diag comm`, and why it is incomplete."""
    done = examined(text)
    open_ = unmeasured(done, LOADED.checks, "collectives/", WORDS["en"])
    report = assemble(
        Judged(done.facts, done.results, incomplete=open_),
        LOADED.checks,
        language=language,
        tool="0",
        command="comm",
        source=Source(kind="paste", name="x"),
    )
    return render(report, form, LOADED.templates), open_


@pytest.mark.parametrize("form", ["terminal", "markdown", "nccl-tests"])
def test_what_was_compared_is_told(form: str) -> None:
    shown, reasons = judged(now(1e-4, 1e-3, 1e-2, interval=0.01) + "\n" + then(100, 950), form)
    line = "Compared with r.json: 2 of 3 results; the slowest takes 1.05 times as long as then"
    assert f"{line} (all_reduce, free-running, 64 KiB)" in shown
    assert reasons == []


def test_what_noise_hides_is_not_compared() -> None:
    shown, reasons = judged(now(1e-4, 1e-3, 1e-2, interval=30.0) + "\n" + then(5, 50, 500), language="zh")
    assert "与 r.json 比较：3 项结果中的 0 项；另有 3 项" in shown
    assert reasons == ["noisy: cannot be compared with r.json"]


def test_what_is_noisy_and_slower_all_the_same_is_compared() -> None:
    shown, reasons = judged(now(1e-4, 1e-3, 1e-2, interval=0.5) + "\n" + then(20, 1000, 10000))
    assert "1 of 3 results; the slowest takes 5.00 times as long as then (all_reduce, free-running, 1 KiB); 2 " in shown
    assert (reasons, "collectives/slower-than-earlier" in shown) == ([], True)


def test_without_an_earlier_run_nothing_is_said_of_it() -> None:
    assert "r.json" not in judged(now(1e-4, 1e-3, 1e-2, interval=0.01))[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"mode": "graph"}, "mode free-running now, graph then"),
        ({"mode": "", "ranks": None}, "mode free-running now, untold then; ranks 2 now, untold then"),
        ({"in_place": False, "tool": "nccl-tests"}, "tool diag now, nccl-tests then; in_place True now, False then"),
        ({"bytes": 512}, "bytes 1024, 65536, 1048576 now, 512 then"),
    ],
)
def test_it_is_said_what_is_not_alike(changed: dict[str, Any], says: str) -> None:
    shown, reasons = judged(now(1e-4, 1e-3, 1e-2, interval=0.01) + "\n" + then(100, 950, **changed))
    assert reasons == [f"the earlier run (r.json) measured nothing alike: {says}"]
    assert "Compared with r.json: 0 of 3 results\n" in shown


@pytest.mark.parametrize("mode", ["free-running", "synchronised", "graph"])
@pytest.mark.parametrize(("device", "library"), [("cpu", ""), ("NVIDIA H200", "/lib/libnccl.so.2")])
def test_a_table_of_diag_is_read_back_whole(mode: str, device: str, library: str) -> None:
    run = now(1e-4, 1e-3, 1e-2, interval=0.01).replace("free-running", mode).replace('"cpu"', f'"{device}"')
    document = json.loads(run)
    document["ranks"][0]["libraries"] = [[library, "2.27.5"]] if library else []
    table, _ = judged(json.dumps(document), "nccl-tests")
    first, then_ = (examined(text).facts.all(Collective) for text in (json.dumps(document), table + table))
    alike = ("tool", "op", "bytes", "dtype", "mode", "ranks", "in_place", "nodes", "backend", "device")
    alike += ("library", "library_version")
    assert [[getattr(one, name) for name in alike] for one in then_] == 2 * [
        [getattr(one, name) for name in alike] for one in first
    ]
