"""Measured devices beside their models and their sisters, and the child's steps."""

from __future__ import annotations

import json

import pytest
from told import LOADED, examined

from diag.facts import DeviceBaseline, DeviceMemory, DeviceModel, HostLink, MatrixProduct, Unavailable
from diag.probe import program
from diag.sources import MEASURE

ROWS = [row for one in LOADED.later for row in one.rows()]
MODELS = {(one.vendor, one.name) for one in ROWS if isinstance(one, DeviceModel)}
H100 = ("NVIDIA H100 80GB HBM3", 85_520_809_984)
GIB = 2**30


def memory(gbps: float, how: str = "copy") -> dict:
    seconds = 2 * GIB / gbps / 1e9
    taken = {"seconds": seconds, "fastest": seconds, "samples": 9, "correct": True}
    return {"step": f"memory by {how}", "read": GIB, "written": GIB, **taken}


def document(*devices: tuple[str, int, list[dict]]) -> str:
    told = [
        {"device": f"cuda:{index}", "name": name, "memory_bytes": size, "steps": steps, "phase": "done", "error": ""}
        for index, (name, size, steps) in enumerate(devices)
    ]
    return json.dumps({"schema": "diag/device/1", "devices": told, "unseen": ""})


def judged(text: str, check: str) -> tuple[str, list[str]]:
    (result,) = [one for one in examined(text).results if one.check == f"device/{check}"]
    return result.status, [one.subject for one in result.findings]


def test_each_baseline_is_of_a_model():
    rows = [row for row in ROWS if isinstance(row, DeviceBaseline)]
    assert [row.device for row in rows if (row.vendor, row.device) not in MODELS] == []
    assert len({(row.device, row.measure) for row in rows}) == len(rows) > 20


@pytest.mark.parametrize(("gbps", "status"), [(2900, "pass"), (2180, "pass"), (2170, "fail")])
def test_memory_is_judged_by_three_quarters_of_what_was_measured(gbps, status):
    assert judged(document((*H100, [memory(gbps)])), "memory-bandwidth-low")[0] == status


@pytest.mark.parametrize(("gbps", "status"), [(540, "fail"), (580, "pass")])
def test_a_model_that_nobody_measured_is_judged_by_its_makers_figure(gbps, status):
    device = ("NVIDIA GeForce RTX 4090", 25_757_220_864, [memory(gbps)])
    assert judged(document(device), "memory-bandwidth-low")[0] == status


@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3 MIG 3g.40gb", "NVIDIA H100 80GB HBM3"])
def test_a_part_of_a_device_is_not_judged_as_the_whole(name):
    assert judged(document((name, 42_000_000_000, [memory(1000)])), "memory-bandwidth-low") == ("skip", [])


@pytest.mark.parametrize(
    ("values", "slow"),
    [
        ((900, 900), None),
        ((900, 600), None),
        ((900, 890, 600), ["cuda:2"]),
        ((900, 890, 700), []),
        ((900, 905, 910, 895, 900, 902, 898, 700), ["cuda:7"]),
        ((900, 900, 900, 900, 900, 900, 900, 850), []),
        ((900, 860, 910, 830, 900, 870, 845, 815), []),
        ((900, 905, 500, 895, 510, 902, 505, 507), []),
    ],
)
def test_a_device_is_slow_beyond_the_spread_of_its_sisters(values, slow):
    text = document(*(("Ascend910_9391", 64 * GIB, [memory(one)]) for one in values))
    assert judged(text, "slower-than-sisters") == (("skip", []) if slow is None else ("fail" if slow else "pass", slow))


def test_devices_of_other_names_are_no_sisters():
    others = [(f"device {name}", GIB, [memory(1000 - 100 * name)]) for name in range(8)]
    assert judged(document(*others), "slower-than-sisters") == ("skip", [])


def test_what_a_step_moves_is_told_in_its_units():
    link = {"step": "link to the device, pinned", "way": "to the device", "pinned": True, "bytes": 26 * 10**9}
    product = {"step": "matrix product in bf16", "type": "bf16", "size": 8192, "operations": 2 * 8192**3, "wrong": 0}
    taken = {"seconds": 1.0, "fastest": 0.5, "samples": 5, "correct": True}
    facts = examined(document((*H100, [memory(2900), {**link, **taken}, {**product, **taken}]))).facts
    told = [facts.all(kind)[0] for kind in (DeviceMemory, HostLink, MatrixProduct)]
    assert [(one.value, one.best) for one in told] == [(2900.0, 2900.0), (26.0, 52.0), (1.0995, 2.199)]


@pytest.mark.parametrize(
    "spoilt",
    [
        {"seconds": float("nan")},
        {"fastest": float("inf")},
        {"fastest": -0.0009},
        {"seconds": 0},
        {"fastest": 1e-320},
        {"read": "much"},
    ],
)
def test_a_document_with_impossible_numbers_is_malformed_and_judged_by_nothing(spoilt):
    found = examined(document((*H100, [memory(2900) | spoilt])))
    assert found.broken == ()
    assert [one.reason.partition(":")[0] for one in found.facts.all(Unavailable)] == ["its document is malformed"]
    assert found.facts.all(DeviceMemory) == ()
    assert [one.check for one in found.results if one.findings] == []


def test_every_way_over_a_link_comes_back_as_it_was():
    torch = pytest.importorskip("torch", reason="no torch in this environment")
    link = program(str(MEASURE / "device.py"))["link"]
    for way in ("to the device", "from the device"):
        told = link(torch, "cpu", lambda: None, way, False, 0.01)
        assert (told["correct"], told["way"], told["samples"]) == (True, way, 5)
