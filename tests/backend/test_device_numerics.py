"""`diag device` on the device of `hostdev`: sound it passes, and each operator that errs in one element is named."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostbuild import compiler

HERE = Path(__file__).parent
DEVICE = (sys.executable, "-c", "from diag.cli import main; main()", "device", "--python", sys.executable)
ASKED = ("--device", "hostdev", "--import", "hostdev", "--budget", "0.2", "--patience", "400", "--format", "json")
WRONG = "aten::_softmax,aten::sort,aten::topk,aten::cumsum,aten::mm,aten::_int_mm,aten::uniform_"
NAMED = {
    "softmax": {"fp32", "bf16", "fp16"},
    "softmax of logits": {"fp32"},
    "sort": {"fp32", "bf16", "fp16"},
    "topk": {"fp32", "bf16", "fp16"},
    "cumsum": {"fp32", "bf16", "fp16"},
    "matmul": {"fp32", "bf16", "fp16", "int8"},
    "uniform draws": {"fp32", "bf16", "fp16"},
}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The device, built or found."""
    if not importlib.util.find_spec("torch"):
        pytest.skip("no torch")
    try:
        compiler()
    except LookupError as error:
        pytest.skip(str(error))
    subprocess.run([sys.executable, HERE / "hostbuild.py"], check=True, timeout=300)


def answers_of(**variables: str) -> dict:
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", "HOSTDEV_LINK": "0", **variables}
    done = subprocess.run((*DEVICE, *ASKED), env=environment, capture_output=True, text=True, timeout=500)
    return json.loads(done.stdout)


def found(report: dict) -> list[dict]:
    return [one for one in report["findings"] if one["id"].startswith("device/numerics")]


@pytest.mark.slow
def test_a_sound_device_passes() -> None:
    report = answers_of()
    assert (report["facts"]["DeviceTest"][0]["phase"], found(report)) == ("done", [])
    assert {one["correct"] for one in report["facts"]["DeviceNumerics"]} == {True}


@pytest.mark.slow
def test_each_operator_with_one_wrong_element_is_named_with_its_type() -> None:
    report = answers_of(HOSTDEV_WRONG=WRONG)
    named: dict[str, set[str]] = {}
    for one in report["facts"]["DeviceNumerics"]:
        if not one["correct"]:
            named.setdefault(one["operator"], set()).add(one["dtype"])
    assert named == NAMED
    (finding,) = found(report)
    assert (finding["id"], finding["subject"]) == ("device/numerics-wrong", "hostdev:0")
    assert "elements of a product in bf16 are wrong" in finding["summary"]
    told = " ".join(one["quote"] for one in finding["evidence"])
    assert all(f"{operator} in {dtype}:" in told for operator, types in NAMED.items() for dtype in types)
