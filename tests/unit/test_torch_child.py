"""The child that asks torch: a question that kills its process takes nothing else with it, and the document is read."""

import json
import subprocess
import sys

import pytest
from told import facts_of

from diag.capture import Capture
from diag.facts import Accelerator, DeviceTrial, Driver, Library, Runtime, TorchBuild, Unavailable

ASKED = """\
import json, os, signal, time
from diag.measure import torch_env
torch_env.PATIENCE = 3.0
asks = [
    lambda: "x" * 300_000,
    lambda: os.kill(os.getpid(), signal.SIGSEGV),
    lambda: 1 / 0,
    lambda: os._exit(3),
    lambda: time.sleep(60),
    lambda: {"a": [1, None]},
]
print(json.dumps(torch_env.apart(asks)))
"""
DEVICE = {"index": 0, "name": "NVIDIA H200", "architecture": "sm_90", "memory_bytes": 150_754_820_096}
DOCUMENT = {
    "schema": "diag/torch-env/1",
    "extensions": {},
    "build": {
        "version": "2.9.1+cu128",
        "cuda": "12.8",
        "debug": False,
        "cxx11_abi": True,
        "collectives": ["gloo", "nccl"],
        "nccl": "2.27.5",
    },
    "available": True,
    "backend": "cuda",
    "devices": [DEVICE, {**DEVICE, "index": 1}],
    "architectures": ["sm_90"],
    "warnings": [],
    "libraries": ["/x/nvidia/nccl/lib/libnccl.so.2", "/lib/libm.so.6"],
    "versions": {"ncclGetVersion": 22705, "cudaRuntimeGetVersion": 12080, "cuDriverGetVersion": 13000},
    "trials": [{"index": 0, "answer": 0.8}, {"index": 1, "error": "killed by SIGSEGV"}],
}
TOO_OLD = "CUDA initialization: The NVIDIA driver on your system is too old (found version 11060)."


def told(**changed):
    document = json.dumps(DOCUMENT | changed)
    return facts_of([Capture.of("torch", document, kind="measure", exit_code=0)])


def test_each_question_dies_alone():
    done = subprocess.run((sys.executable, "-c", ASKED), capture_output=True, text=True, timeout=60)
    long, *others = json.loads(done.stdout)
    assert (done.stderr, len(long["answer"])) == ("", 300_000)
    assert others == [
        {"error": "killed by SIGSEGV"},
        {"error": "ZeroDivisionError: division by zero"},
        {"error": "it ended without an answer"},
        {"error": "no answer within 3 s"},
        {"answer": {"a": [1, None]}},
    ]


def test_a_device_on_which_no_kernel_runs_is_told():
    trials = told().all(DeviceTrial)
    assert [(one.index, one.ok, one.error, one.seconds) for one in trials] == [
        (0, True, "", 0.8),
        (1, False, "killed by SIGSEGV", None),
    ]


def test_the_collective_library_is_told_as_compiled_and_as_loaded():
    facts = told()
    assert [(one.name, one.kind, one.version) for one in facts.all(Runtime)] == [
        ("nccl", "compiled", "2.27.5"),
        ("nccl", "loaded", "2.27.5"),
        ("cuda", "loaded", "12.8"),
    ]
    assert [(one.name, one.version) for one in facts.all(Library)] == [("libnccl", "2")]
    assert facts.first(TorchBuild).collectives == ("gloo", "nccl")
    assert facts.first(Driver).offers == "13.0"


def test_what_torch_warned_of_is_quoted():
    facts = told(available=False, devices=[], trials=[], versions={}, warnings=[TOO_OLD])
    driver = facts.first(Driver)
    assert (driver.offers, driver.refused, driver.origin.quote) == ("11.6", True, TOO_OLD)


def test_a_death_while_devices_are_asked_is_no_failed_import():
    facts = told(available=None, devices=[], trials=[], unseen="killed by SIGBUS")
    (death,) = facts.all(Unavailable)
    assert (death.what, death.how, death.reason) == ("torch/devices", "failed", "killed by SIGBUS")
    assert facts.first(Accelerator) is None
    assert facts.first(TorchBuild).available is None


def test_a_library_that_may_not_be_used_in_a_fork_tells_nothing():
    error = "RuntimeError: Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing"
    assert told(trials=[{"index": 0, "error": error}]).first(DeviceTrial) is None


@pytest.mark.parametrize(("code", "version"), [(22705, "2.27.5"), (2804, "2.8.4"), (21602, "2.16.2")])
def test_versions_of_the_collective_library(code, version):
    assert told(versions={"ncclGetVersion": code}).all(Runtime)[-1].version == version
