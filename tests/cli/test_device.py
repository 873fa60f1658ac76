"""`diag device`: the host measured as a device, and devices that hang, crash or do not exist, each named."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from diag.cli.opening import live_host
from diag.cli.options import Live

DEVICE = (sys.executable, "-c", "from diag.cli import main; main()", "device")
PLUGINS = Path(__file__).with_name("plugins")
HERE = pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch in this environment")
FAKE = """\
import os, signal, time
from types import SimpleNamespace as Some
__version__ = "2.9.1+fake"
_C = Some(_get_privateuse1_backend_name=lambda: "")
def zeros(size, device):
    if device == "cuda:1":
        time.sleep(600)
    if device == "cuda:2":
        os.kill(os.getpid(), signal.SIGSEGV)
    if device == "cuda:3":
        os._exit(7)
    return Some(add=lambda one: Some(item=lambda: 1.0))
cuda = Some(
    is_available=lambda: True,
    device_count=lambda: 4,
    get_device_properties=lambda index: Some(name="NVIDIA H100 80GB HBM3", total_memory=85520809984),
    mem_get_info=lambda index: (80 * 10**9, 85 * 10**9),
    synchronize=lambda device: None,
    set_device=lambda index: None,
)
"""


def judged(*options: str, **environment: str) -> tuple[dict, int]:
    done = subprocess.run(
        (*DEVICE, "--python", sys.executable, "--format", "json", *options),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout), done.returncode


def failed(report: dict) -> dict[str, str]:
    return {one["subject"]: one["summary"] for one in report["findings"] if one["id"] == "device/self-test-fails"}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory) -> dict:
    """Four devices of a torch that is not one: the second hangs, the third crashes, the fourth ends its process."""
    package = tmp_path_factory.mktemp("fake") / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(FAKE)
    report, code = judged("--patience", "1.5", PYTHONPATH=str(package.parent))
    assert code == 1
    return report


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("cuda:0", "has no attribute 'arange'"),
        ("cuda:1", "nothing moved for 2 s at: first use"),
        ("cuda:2", "killed by SIGSEGV at: first use"),
        ("cuda:3", "it ended with exit code 7 at: first use"),
    ],
)
def test_a_device_that_does_not_come_through_is_named_and_the_others_are_asked(faulty, device, said):
    assert said in failed(faulty)[device]


def test_memory_that_is_free_after_a_kill_is_told(faulty):
    told = {one["device"]: one for one in faulty["facts"]["DeviceTest"]}
    assert "after_bytes" in told["cuda:2"]
    assert told["cuda:0"].get("after_bytes") is None


@pytest.mark.parametrize("name", ["cuda:x", "CUDA", "-1", "cuda:0,1"])
def test_what_is_no_device_is_a_mistake(name):
    done = subprocess.run((*DEVICE, f"--device={name}"), capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(("level", "taken"), [("quick", False), ("", False), ("deep", True)])
def test_no_device_is_used_for_long_unless_asked(level, taken):
    live = Live(**{level: True}) if level else Live()
    assert ("deep" in live_host(live, None).costs) is taken


@HERE
def test_the_host_is_measured_and_verified():
    report, code = judged("--device", "cpu", "--budget", "1", "--patience", "200")
    facts = report["facts"]
    assert {one["how"] for one in facts["DeviceMemory"] if one["value"] > 0 and one["correct"]} == {"copy", "kernel"}
    assert [(one["dtype"], one["wrong"]) for one in facts["MatrixProduct"]] == [("bf16", 0), ("fp16", 0), ("fp32", 0)]
    told = facts["DeviceNumerics"]
    assert {one["correct"] for one in told} == {True}
    assert {one["dtype"] for one in told} == {"fp32", "bf16", "fp16", "int8", "fp8"}
    assert (facts["DeviceTest"][0]["phase"], code) == ("done", 0)


@HERE
def test_one_wrong_element_is_an_error():
    report, code = judged("--device", "cpu", "--budget", "0.2", "--import", "one_wrong", PYTHONPATH=str(PLUGINS))
    (finding,) = [one for one in report["findings"] if one["id"] == "device/numerics-wrong"]
    assert "1 elements of a product in bf16 are wrong" in finding["summary"]
    assert code == 1


@HERE
def test_a_device_that_torch_does_not_have_is_not_answered():
    report, code = judged("--device", "xpu")
    assert report["incomplete"] == ["no device was tested: RuntimeError: this torch has no xpu that it can use"]
    assert code == 4


@HERE
def test_the_table_stands_in_the_terminal_and_in_markdown(tmp_path):
    options = ("--device", "cpu", "--budget", "0.2", "--report", str(tmp_path / "r.md"))
    done = subprocess.run((*DEVICE, *options), capture_output=True, text=True, timeout=240)
    (line,) = [one for one in done.stdout.splitlines() if one.split()[:2] == ["cpu", "host"]]
    assert len(line.split()) == 7
    assert line in (tmp_path / "r.md").read_text().splitlines()
