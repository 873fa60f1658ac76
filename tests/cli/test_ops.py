"""`diag ops` on a backend of torch made for this: what runs on the CPU or has no kernel, and what accuses nobody."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
SMALL = ("--batch", "4", "--vocabulary", "4096", "--budget", "4")
BACKEND = Path(__file__).parents[1] / "backend"
HERE = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch in this environment")
BUILT = pytest.mark.skipif(not shutil.which("g++"), reason="no compiler for the backend")


def ran(*words: str, more: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (*more, str(BACKEND), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run((*DIAG, *words), capture_output=True, text=True, env=environment)


def asked(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return ran("ops", *SMALL, *options, "--format", "json", **environment)


def found(told: subprocess.CompletedProcess[str]) -> dict[str, set[str]]:
    """Operators that do not run on the device, with their placements."""
    places: dict[str, set[str]] = {}
    for one in json.loads(told.stdout)["facts"].get("Operator", ()):
        places.setdefault(one["name"], set()).add(one["placement"])
    return places


def findings(told: subprocess.CompletedProcess[str]) -> list[str]:
    return [one["id"] for one in json.loads(told.stdout)["findings"]]


@HERE
@BUILT
def test_each_shape_is_named_by_who_can_see_it():
    switches = {"aten::exponential_": "fallback", "aten::topk.values": "hidden_copy", "aten::argmax.out": "hidden_raw"}
    told = asked("--import", "hostdev", HOSTDEV_SWITCHES=json.dumps(switches))
    assert told.returncode == 1, told.stderr
    assert found(told) == {
        "aten::exponential_": {"fallback", "copies"},
        "aten::topk.values": {"copies"},
        "aten::argmax.out": {"grows"},
    }
    assert findings(told) == ["operators/step-on-cpu", "operators/step-raises"]
    report = json.loads(told.stdout)
    draw = next(one for one in report["facts"]["Operator"] if one["placement"] == "copies")
    assert draw["host_us"] > 0
    assert draw["bytes"] > 4 * 4096
    steps = {one["step"]: one for one in report["facts"]["OperatorStep"]}
    assert steps["exponential-draw"]["host_us"]["aten::exponential_"] / 1000 > 0
    assert "generator" in steps["seeded-exponential-draw"]["error"]


@HERE
@BUILT
def test_a_missing_kernel_is_named_with_the_steps_that_need_it():
    switches = {"aten::cumsum.out": "missing", "aten::linalg_qr.out": "missing"}
    told = asked("--import", "hostdev", HOSTDEV_SWITCHES=json.dumps(switches))
    assert found(told) == {"aten::cumsum.out": {"missing"}}
    assert findings(told) == ["operators/missing-kernel"]
    (cumsum,) = json.loads(told.stdout)["facts"]["Operator"]
    assert "top-k-top-p" in cumsum["steps"]


@HERE
@BUILT
def test_one_fallback_for_all_that_have_no_kernel():
    told = asked("--import", "hostdev", HOSTDEV_SWITCHES='{"aten::topk.values": "missing"}', HOSTDEV_EVERYWHERE="1")
    assert {"backend-fallback", "copies"} <= found(told)["aten::topk.values"]


@HERE
@BUILT
def test_a_backend_that_has_all_kernels_is_accused_of_nothing():
    told = asked("--import", "hostdev", "--device", "hostdev")
    assert (told.returncode, found(told)) == (0, {}), told.stdout


@HERE
@BUILT
def test_operators_are_looked_at_by_name():
    only = ("--import", "hostdev", "--only", "linalg_qr, aten::exponential_", "--only", "nonsense")
    told = asked(*only, HOSTDEV_SWITCHES='{"aten::linalg_qr.out": "fallback"}')
    assert {"fallback", "copies"} <= found(told)["aten::linalg_qr.out"]
    assert "aten::exponential_" not in found(told)
    assert "no operator aten::nonsense" in " ".join(json.loads(told.stdout)["incomplete"])


@HERE
@BUILT
def test_what_kills_a_detector_is_named_and_the_rest_is_answered():
    told = asked(
        *("--import", "hostdev", "--set", "sampler"),
        HOSTDEV_SEGFAULT="aten::cumsum.out",
        HOSTDEV_SWITCHES='{"aten::topk.values": "hidden_copy"}',
    )
    report = json.loads(told.stdout)
    assert {one["at"] for one in report["facts"]["OperatorDeath"]} >= {"top-k-top-p", "sorted-draw"}
    assert "operators/detector-died" in findings(told)
    assert found(told)["aten::topk.values"] == {"copies"}
    assert {one["detector"] for one in report["facts"]["OperatorScan"]} == {"static", "dynamic", "timing"}


@HERE
@BUILT
def test_env_check_looks_for_a_moment(tmp_path):
    """A plug-in that torch loads by itself, as those of makers do."""
    about = tmp_path / "hostdev-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: hostdev\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[torch.backends]\nhostdev = hostdev:is_initialized\n")
    switches = '{"aten::exponential_": "fallback"}'
    told = ran("env-check", "--format", "json", more=(str(tmp_path),), HOSTDEV_SWITCHES=switches)
    report = json.loads(told.stdout)
    assert "operators/step-on-cpu" in findings(told)
    assert {one["detector"] for one in report["facts"]["OperatorScan"]} == {"static", "dynamic"}


@HERE
def test_env_check_has_nothing_to_look_at_without_an_accelerator():
    results = {one["id"]: one for one in json.loads(ran("env-check", "--format", "json").stdout)["results"]}
    assert results["operators/step-on-cpu"]["status"] == "not-applicable", results["operators/step-on-cpu"]


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
