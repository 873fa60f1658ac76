"""`diag mem plan`: verdict, table, calibration, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()")
CONFIGS = Path(__file__).parents[1] / "unit" / "memory" / "configs"
SEVEN = (
    "--config",
    str(CONFIGS / "Qwen--Qwen2.5-7B-Instruct.json"),
    "--device",
    "H100 SXM",
    "--engine",
    "vllm==0.19.0",
)
LAUNCH = "vllm serve Qwen/Qwen2.5-7B-Instruct \\\n  --gpu-memory-utilization 0.95 \\\n  --max-model-len 8192"
LOG = """\
INFO 12-01 10:00:00 [core.py:101] Initializing a V1 LLM engine (v0.19.0) with config: model='Qwen/Qwen2.5-7B-Instruct'
INFO 12-01 10:00:30 [gpu_model_runner.py:4566] Model loading took 15.25 GiB memory and 3.9 seconds
INFO 12-01 10:01:00 [gpu_worker.py:436] Available KV cache memory: 57.00 GiB
"""


def ran(*words: str, launch: str = LAUNCH) -> subprocess.CompletedProcess[str]:
    return subprocess.run((*DIAG, "mem", "plan", "--launch", launch, *words), capture_output=True, text=True)


def plan(told: subprocess.CompletedProcess[str]) -> dict[str, object]:
    (one,) = json.loads(told.stdout)["facts"]["MemoryPlan"]
    found: dict[str, object] = one
    return found


def test_a_launch_as_people_paste_it() -> None:
    told = ran(*SEVEN, "--requests", "256x(512+512)")
    assert (told.returncode, told.stderr) == (0, "")
    for said in (
        "it starts, high confidence",
        "[config]",
        "[fit]",
        "KV cache: 1,096,",
        "Demand 256 x 1024: 23.",
        "left over",
    ):
        assert said in told.stdout
    assert "it is" not in told.stdout


def test_what_does_not_fit_ends_with_one_and_a_change() -> None:
    two = ("--config", str(CONFIGS / "Qwen--Qwen2.5-72B-Instruct.json"), "--device", "79.19GiB", "--devices", "4")
    told = ran(*two, "--engine", "vllm==0.19.0", launch="vllm serve Qwen/Qwen2.5-72B-Instruct --max-model-len 8192")
    assert told.returncode == 1
    assert "memory/planned-room" in told.stdout
    assert "--tensor-parallel-size 4" in told.stdout


def test_chinese_speaks_chinese() -> None:
    told = ran(*SEVEN, "--lang", "zh")
    assert told.returncode == 0
    assert "可以启动" in told.stdout
    assert "it starts" not in told.stdout


def test_what_the_engine_printed_takes_the_place_of_estimates(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    bare, told = (plan(ran(*SEVEN, "--format", "json", *more)) for more in ((), ("--log", str(tmp_path / "log"))))
    terms = {one["name"]: one for one in told["terms"]}  # type: ignore[attr-defined]
    assert terms["weights"]["bytes"] == pytest.approx(15.25 * 2**30)
    assert {one for one, term in terms.items() if term["origin"] == "printed"} == {"weights", "unexplained"}
    assert told["room"] == pytest.approx(57.0 * 2**30)
    assert (bare["calibrated"], sorted(told["calibrated"])) == ([], ["unexplained", "weights"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--config", "nowhere.json", "--device", "H200"), "--config nowhere.json"),
        (("--config", str(CONFIGS), "--device", "H200"), "No such file"),
        ((*SEVEN[:2], "--device", ""), "it is empty"),
        ((*SEVEN, "--requests", "many"), "--requests many"),
        ((*SEVEN, "--log", "nowhere.log"), "nowhere.log"),
        ((*SEVEN, "--devices", "0"), "0 is not in the range"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], said: str) -> None:
    told = ran(*words)
    assert (told.returncode, told.stdout) == (2, "")
    assert said in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("words", "launch", "said"),
    [
        ((*SEVEN[:2], "--device", "Abacus 9"), LAUNCH, "how much memory a device has is not known"),
        (SEVEN[:4], "vllm bench serve --model M", "the command starts no engine"),
    ],
)
def test_without_a_plan_it_says_why_and_ends_with_four(words: tuple[str, ...], launch: str, said: str) -> None:
    told = ran(*words, launch=launch)
    assert told.returncode == 4
    assert said in told.stdout
