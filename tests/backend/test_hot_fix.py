"""The kernel that takes the place of `exponential_` on the CPU: what it draws, that it is loaded, that diag sees it.

`test_the_story` is the whole of it as a user goes through it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostbuild import compiler

HERE = Path(__file__).parent
DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
FALLS = {"HOSTDEV_SWITCHES": json.dumps({"aten::exponential_": "fallback"})}
NAME = "exponential_on_device"
SMALL = ("--batch", "4", "--vocabulary", "2048")


@pytest.fixture(scope="module")
def fix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the user is told to write."""
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, timeout=60).returncode:
        pytest.skip("no torch")
    try:
        compiler()
    except LookupError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("fix") / "exponential"
    wrote = ran(*DIAG, "ops", "--hot-fix", str(folder))
    assert wrote.returncode == 0, wrote.stderr
    return folder


def ran(*command: str, more: tuple[Path, ...] = (), **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (*map(str, more), str(HERE), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore", **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)


def python(code: str, *more: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return ran(sys.executable, "-c", code, more=more, **variables)


@pytest.mark.slow
def test_the_story(fix: Path, said: list[str]) -> None:
    """Named with its cost; loaded; gone; what is drawn is right; and how long a step takes before and after."""
    asked = (
        *DIAG,
        "ops",
        "--import",
        "hostdev",
        "--set",
        "sampler",
        "--batch",
        "8",
        "--budget",
        "6",
        "--format",
        "json",
    )
    before = json.loads(ran(*asked, **FALLS).stdout)
    slow = next(one for one in before["findings"] if one["id"] == "operators/step-on-cpu")
    assert slow["values"]["operators"] == "exponential_"
    fixed = next(one for one in slow["remedies"] if "--hot-fix" in " ".join(one["commands"]))
    assert fixed["safety"] == "manual"
    after = json.loads(ran(*asked, "--import", NAME, more=(fix,), **FALLS).stdout)
    assert [one["id"] for one in after["findings"]] == []
    tested = ran(sys.executable, str(fix / f"{NAME}.py"), "--device", "hostdev", "--import", "hostdev", *SMALL, **FALLS)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "FAILS" not in tested.stdout
    assert len(re.findall("^holds: ", tested.stdout, re.MULTILINE)) == 10
    steps = [
        next(s for s in one["facts"]["OperatorStep"] if s["step"] == "exponential-draw") for one in (before, after)
    ]
    said.append(f"hot fix: the random draw, 8 x 152064: {steps[0]['ms']:.1f} ms before, {steps[1]['ms']:.1f} ms after")


COUNTED = """
import hostdev, torch
{fix}
ones = torch.ones(4, 512, device="hostdev")
hostdev.forget()
ones.exponential_(generator=torch.Generator("hostdev").manual_seed(1))
hostdev.synchronize()
print({{name: row for name, row in hostdev.truth().items() if row["cpu"]}}, float(ones.min().cpu()) > 0)
"""


@pytest.mark.slow
def test_with_it_nothing_of_a_seeded_draw_runs_on_the_cpu(fix: Path) -> None:
    without = python(COUNTED.format(fix=""), **FALLS)
    assert "Expected a 'cpu' device type for generator" in without.stderr
    loaded = python(COUNTED.format(fix=f"import {NAME}"), fix, **FALLS)
    assert loaded.stdout.strip() == "{} True", loaded.stderr


@pytest.mark.slow
def test_a_server_finds_it_by_its_entry_point(fix: Path) -> None:
    """As vLLM's and SGLang's processes do: by the name of a group, after the maker's plug-in."""
    load = """
from importlib.metadata import entry_points
for group in ("vllm.general_plugins", "sglang.srt.plugins"):
    [found] = entry_points(group=group)
    found.load()()
"""
    assert python(COUNTED.format(fix=load), fix, **FALLS).stdout.strip() == "{} True"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoilt", "fails"),
    [
        (".log_()", "the distribution"),
        (".neg_()", "the distribution"),
        (", generator=generator", "the same seed"),
    ],
)
def test_a_kernel_that_draws_wrongly_fails_its_own_test(fix: Path, tmp_path: Path, spoilt: str, fails: str) -> None:
    source = (fix / f"{NAME}.py").read_text()
    assert source.count(spoilt) == 1
    (tmp_path / f"{NAME}.py").write_text(source.replace(spoilt, ""))
    asked = (str(tmp_path / f"{NAME}.py"), "--device", "hostdev", "--import", "hostdev", *SMALL)
    told = ran(sys.executable, *asked, **FALLS)
    assert told.returncode == 1
    assert f"FAILS: {fails}" in told.stdout


@pytest.mark.slow
def test_it_is_as_exact_about_its_arguments_as_the_operator(fix: Path) -> None:
    code = f"""
import hostdev, torch, {NAME}
ones = torch.ones(4, device="hostdev")
calls = (lambda: ones.exponential_(0.0), lambda: ones.exponential_(float("nan")), lambda: ones.long().exponential_())
for call in calls:
    try:
        call()
        print("taken")
    except RuntimeError as error:
        print("refused")
whole = torch.zeros(4, 6, device="hostdev")
whole[:, ::2].exponential_()
print(int((whole.cpu() > 0).sum()), torch.empty(0, device="hostdev").exponential_().shape)
"""
    assert python(code, fix).stdout.split("\n")[:4] == ["refused"] * 3 + ["12 torch.Size([0])"]


@pytest.mark.slow
def test_without_an_accelerator_it_says_so(fix: Path) -> None:
    told = python(f"import {NAME}", fix)
    assert "this torch has no accelerator" in told.stderr


def test_what_is_there_already_is_left_alone(fix: Path) -> None:
    again = ran(*DIAG, "ops", "--hot-fix", str(fix))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert "is there already" in again.stderr
