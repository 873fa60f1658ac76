"""`diag comm` between the accelerators of this machine."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="no torch in this environment")
COUNT = torch.accelerator.device_count() if torch.accelerator.is_available() else 0
COMM = (sys.executable, "-c", "from diag.cli import main; main()", "comm")


@pytest.mark.skipif(COUNT < 2, reason=f"{COUNT} accelerators that torch can use, fewer than two")
def test_devices_are_measured_in_every_mode_and_verified():
    done = subprocess.run((*COMM, "--format", "json", "--budget", "20"), capture_output=True, text=True, timeout=300)
    told = json.loads(done.stdout)["facts"]["Collective"]
    assert {one["mode"] for one in told} == {"synchronised", "free-running", "graph"}
    assert {(one["correct"], one["ranks"]) for one in told} == {(True, COUNT)}
    assert all(one["library_version"] for one in told)


@pytest.mark.skipif(COUNT != 1, reason=f"{COUNT} accelerators that torch can use, not one")
def test_one_device_alone_is_not_measured():
    done = subprocess.run((*COMM, "--format", "json"), capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert "nobody to exchange with" in report["incomplete"][0]
    assert done.returncode == 4
