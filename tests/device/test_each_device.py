"""`diag device` on the accelerators of this machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="no torch in this environment")
COUNT = torch.accelerator.device_count() if torch.accelerator.is_available() else 0
DEVICE = (sys.executable, "-c", "from diag.cli import main; main()", "device")


@pytest.fixture(scope="module")
def facts() -> dict:
    done = subprocess.run((*DEVICE, "--format", "json"), capture_output=True, text=True, timeout=900)
    return json.loads(done.stdout)["facts"]


@pytest.mark.skipif(COUNT < 1, reason="no accelerator that torch can use")
def test_each_device_comes_through_with_nothing_wrong(facts):
    assert [(one["phase"], one.get("error", "")) for one in facts["DeviceTest"]] == [("done", "")] * COUNT
    steps = [one for kind in ("DeviceMemory", "HostLink", "MatrixProduct", "DeviceNumerics") for one in facts[kind]]
    assert {one["correct"] for one in steps} == {True}


@pytest.mark.skipif(COUNT < 1, reason="no accelerator that torch can use")
def test_each_way_of_each_link_is_measured(facts):
    told = {(one["device"], one["direction"], one["pinned"]) for one in facts["HostLink"]}
    assert len(told) == 4 * COUNT


@pytest.mark.skipif(COUNT < 1, reason="no accelerator that torch can use")
def test_its_memory_is_free_again(facts):
    for one in facts["DeviceTest"]:
        free, _ = getattr(torch, one["device"].partition(":")[0]).mem_get_info(int(one["device"].partition(":")[2]))
        assert free > 0.9 * one["free_bytes"]
