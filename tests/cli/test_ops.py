"""`diag ops` on a backend of torch made for this: what is sent to the CPU or has no kernel, and what accuses nobody."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OPS = (sys.executable, "-c", "from diag.cli import main; main()", "ops")
BACKEND = Path(__file__).parents[1] / "backend"
HERE = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch in this environment")
BUILT = pytest.mark.skipif(not shutil.which("g++"), reason="no compiler for the backend")


def asked(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(BACKEND), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run((*OPS, *options, "--format", "json"), capture_output=True, text=True, env=environment)


def found(ran: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Operators that do not run on the device, with their placement."""
    return {one["name"]: one["placement"] for one in json.loads(ran.stdout)["facts"].get("Operator", ())}


@HERE
@BUILT
def test_a_fallback_and_a_missing_kernel_are_named_with_the_steps_that_need_them():
    switches = {"aten::exponential_": "fallback", "aten::cumsum.out": "missing", "aten::linalg_qr.out": "missing"}
    ran = asked("--import", "hostdev", HOSTDEV_SWITCHES=json.dumps(switches))
    report = json.loads(ran.stdout)
    assert found(ran) == {"aten::exponential_": "fallback", "aten::cumsum.out": "missing"}
    assert [one["id"] for one in report["findings"]] == ["operators/falls-back", "operators/missing-kernel"]
    (draw,) = (one for one in report["facts"]["Operator"] if one["name"] == "aten::exponential_")
    assert "exponential-draw" in draw["steps"]
    assert "hostdev" in draw["owner"]
    assert draw["shape"] == "[B, V] float32"


@HERE
@BUILT
def test_one_fallback_for_all_that_have_no_kernel():
    ran = asked("--import", "hostdev", HOSTDEV_SWITCHES='{"aten::topk.values": "missing"}', HOSTDEV_EVERYWHERE="1")
    assert found(ran)["aten::topk.values"] == "backend-fallback"


@HERE
@BUILT
def test_a_backend_that_has_all_kernels_is_accused_of_nothing():
    ran = asked("--import", "hostdev", "--device", "hostdev")
    assert (ran.returncode, found(ran)) == (0, {})


@HERE
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_devices_of_torch_itself_are_accused_of_nothing(device):
    assert found(asked("--device", device)) == {}


@HERE
def test_where_there_is_no_accelerator_nothing_was_looked_at():
    ran = asked()
    assert ran.returncode == 4
    assert "torch sees no accelerator" in " ".join(json.loads(ran.stdout)["incomplete"])


@HERE
@pytest.mark.parametrize(
    ("options", "reason"),
    [(("--import", "no_such_module"), "no_such_module"), (("--device", "nonesuch"), "knows no device nonesuch")],
)
def test_what_torch_cannot_do_is_said(options, reason):
    ran = asked(*options)
    assert ran.returncode == 4
    assert reason in " ".join(json.loads(ran.stdout)["incomplete"])


def test_what_is_no_name_of_a_device_is_a_mistake():
    ran = asked("--device", "CUDA:0")
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
