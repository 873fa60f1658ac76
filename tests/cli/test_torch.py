"""A torch that is sound, absent or broken, in an interpreter of its own: evidence in a complete report."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
DEATHS = {
    "raise ImportError('libcudart.so.12: cannot open shared object file')": "ImportError: libcudart.so.12",
    "raise RuntimeError('spoiled')": "RuntimeError: spoiled",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": "killed by SIGSEGV",
    "import sys; sys.exit(3)": "exit code 3",
    "import os; os._exit(0)": "it ended without its document",
    "print('chatter'); __version__ = '2.9.1'": "",
}


def examined(**environment: str) -> dict:
    done = subprocess.run(
        (*DIAG, "env-check", "--python", sys.executable, "--format", "json"),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def status(report: dict, id: str) -> str:
    return next(one["status"] for one in report["results"] if one["id"] == id)


def torch_of(folder: Path, body: str) -> Path:
    package, info = folder / "torch", folder / "torch-2.9.1.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text(body)
    (package / "version.py").write_text("__version__ = '2.9.1+cu128'\ncuda = '12.8'\nhip = None\ndebug = False\n")
    return folder


@pytest.mark.parametrize("body", DEATHS)
def test_a_torch_that_dies_is_named_with_how(tmp_path, body):
    report = examined(PYTHONPATH=str(torch_of(tmp_path, body)))
    reason = next((one["reason"] for one in report["facts"]["Unavailable"] if one["what"] == "torch"), "")
    assert DEATHS[body] in reason
    assert report["facts"]["TorchBuild"][0]["version"] == "2.9.1+cu128"
    if DEATHS[body]:
        assert status(report, "torch/import-fails") == "fail"
        assert report["verdict"] == "fail"


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="no torch in this interpreter")
def test_a_sound_torch_tells_its_build():
    report = examined()
    assert {one["backend"] for one in report["facts"]["TorchBuild"]} == {"cpu"}
    assert status(report, "torch/import-fails") == "pass"
    assert report["facts"]["MemoryBandwidth"][-1]["gbps"] > 0


@pytest.mark.skipif(bool(importlib.util.find_spec("torch")), reason="this interpreter has a torch")
def test_an_absent_torch_is_a_note():
    assert status(examined(), "torch/missing") == "fail"
