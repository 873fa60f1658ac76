"""The device of `hostdev` does what it says, in children: a process has one plug-in and cannot drop it."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hostbuild import compiler

HERE = Path(__file__).parent
CASES = [one.name for one in ast.parse((HERE / "cases.py").read_text()).body if getattr(one, "name", "")[:5] == "case_"]
DRAW = """\
import json, torch, hostdev
drawn = torch.ones(8, device=hostdev.NAME)
{}
hostdev.synchronize()
print(json.dumps([drawn.tolist(), hostdev.truth()]))
"""
MEMORY = 2 << 30


def environment(variables: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore", **variables}


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The device, built or found; a compiler that refuses the sources is a failure and not a reason to skip."""
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, timeout=60).returncode:
        pytest.skip("no torch")
    try:
        compiler()
    except LookupError as error:
        pytest.skip(str(error))
    subprocess.run([sys.executable, HERE / "hostbuild.py"], env=environment({}), check=True, timeout=300)


def child(code: str, limit: int | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """A child with the device; `limit` is what more of memory it may take, in bytes."""
    if limit:
        pages = "open('/proc/self/statm').read().split()[0]) * resource.getpagesize()"
        bound = f"resource.setrlimit(resource.RLIMIT_AS, (int({pages} + {limit},) * 2)\n"
        code = f"import resource, torch, hostdev\ndrawn = torch.ones(1, device=hostdev.NAME).mul_(2)\n{bound}{code}"
    run = [sys.executable, "-c", code]
    return subprocess.run(run, env=environment(variables), capture_output=True, text=True, timeout=120)


def drawn(line: str = "drawn.exponential_()", **variables: str) -> tuple[list[float], dict[str, dict[str, int]]]:
    done = child(DRAW.format(line), **variables)
    assert done.returncode == 0, done.stderr
    values, truth = json.loads(done.stdout)
    return values, truth


@pytest.fixture(scope="module")
def outcomes(built: None) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, HERE / "cases.py"], env=environment({}), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_keeps_its_promise(case: str, outcomes: dict[str, str]) -> None:
    assert outcomes[case] == ""


def test_switches_and_truth_go_through_the_environment(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    _, counted = drawn(HOSTDEV_SWITCHES='{"aten::exponential_": "hidden_raw"}', HOSTDEV_TRUTH=str(truth))
    assert counted["aten::exponential_"] == {"launched": 1, "native": 0, "cpu": 1}
    assert json.loads(truth.read_text())["aten::exponential_"] == counted["aten::exponential_"]
    switches = {"HOSTDEV_SWITCHES": '{"aten::exponential_": "missing"}', "HOSTDEV_EVERYWHERE": "1"}
    assert drawn(**switches)[1]["aten::exponential_"]["cpu"] == 1


def test_the_name_and_the_number_of_devices_are_chosen() -> None:
    code = (
        "import torch, hostdev\n"
        "there = torch.arange(3.0, device='npu:1')\n"
        "print(torch.npu.device_count(), there.device, (there + 1).to('npu:0').tolist(), there.sort()[0].device)\n"
        "torch.npu.set_device(1)\n"
        "print(torch.npu.current_device(), torch.zeros(1, device='npu').device, torch.npu.mem_get_info(1)[1])"
    )
    done = child(code, HOSTDEV_NAME="npu", HOSTDEV_DEVICES="2", HOSTDEV_MEMORY="4096")
    assert done.stdout.splitlines() == ["2 npu:1 [1.0, 2.0, 3.0] npu:1", "1 npu:1 4096"], done.stderr


def test_without_a_name_of_its_own_it_is_privateuseone() -> None:
    done = child("import torch, hostdev\nprint(torch.ones(1, device='privateuseone'))", HOSTDEV_NAME="privateuseone")
    assert done.stdout == "tensor([1.], device='privateuseone:0')\n", done.stderr


def test_a_kernel_dies() -> None:
    died = child(DRAW.format("print(drawn.mul_(2).sum()); drawn.exponential_()"), HOSTDEV_SEGFAULT="aten::exponential_")
    assert (died.stdout, died.returncode) == ("tensor(16., device='hostdev:0')\n", -signal.SIGSEGV)


def test_a_kernel_never_finishes() -> None:
    code = DRAW.format("drawn.exponential_(); print('launched', flush=True)")
    variables = environment({"HOSTDEV_HANG": "aten::exponential_"})
    with subprocess.Popen([sys.executable, "-c", code], env=variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "launched\n"
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)
        finally:
            process.send_signal(signal.SIGKILL)


def test_a_kernel_takes_memory_without_end() -> None:
    code = "print(drawn.item(), flush=True); drawn.exponential_()"
    died = child(code, limit=MEMORY, HOSTDEV_ALLOCATE="aten::exponential_")
    assert (died.stdout, died.returncode) == ("2.0\n", 1)
    assert "bad_alloc" in died.stderr or "MemoryError" in died.stderr
