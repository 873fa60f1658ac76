"""No secret leaves the child that prints variables of the environment, nor the probe that reads pasted ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from told import examined

from diag.facts import Setting

CHILD = Path(__file__).resolve().parents[2] / "checks/environment/_environment.py"
WORD = "hunter2hunter2"
HOSTILE = {
    "VLLM_API_KEY": WORD,
    "HF_TOKEN": WORD,
    "HUGGING_FACE_HUB_TOKEN": WORD,
    "NVIDIA_AUTH": WORD,
    "NVIDIA_KEY": WORD,
    "NVIDIA_CREDENTIAL": WORD,
    "RAY_REDIS_PASSWORD": WORD,
    "VLLM_DB_PWD": WORD,
    "TORCH_HUB_PAT": WORD,
    "CUDA_COOKIE": WORD,
    "AWS_SECRET_ACCESS_KEY": WORD,
    "OPENAI_API_KEY": WORD,
    "PATH_OF_NOTHING": WORD,
    "PASSWORD": WORD,
    "ZE_SESSION_TOKEN": WORD,
    "ccl_key": WORD,
    "RAY_ADDRESS": f"ray://user:{WORD}@10.0.0.1:10001",
    "HF_ENDPOINT": f"https://user:{WORD}@hub.example/x?token={WORD}#{WORD}",
    "RAY_SERVE": f"http://u:a/{WORD}@host/",
    "NCCL_CONF": f"https://a:b@c@{WORD}@d/?{WORD}",
    "VLLM_PLUGINS": f'{{"HF_TOKEN": "{WORD}"}}',
    "SGLANG_ARGS": f"--api-key {WORD}",
    "TRITON_HEADER": f"Authorization: Bearer {WORD}",
    "CUDA_NOTE": "hf_abcdefghijklmnopqrstuvwxyz",
    "NCCL_NOTE": "sk-proj-abcdefghijklmnopqrst",
    "OMP_NOTE": f"postgres://root:{WORD}@db/x",
    "UCX_NOTE": f"root:{WORD}@db",
    "https_proxy": f"http://user:{WORD}@proxy:3128",
    "HTTP_PROXY": f"http://{WORD}:3128",
    "NO_PROXY": f"{WORD}.internal",
}
PLAIN = {
    "CUDA_VISIBLE_DEVICES": "",
    "NCCL_IB_HCA": "mlx5_0,mlx5_1",
    "TOKENIZERS_PARALLELISM": "false",
    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:/opt/x@1.2/lib",
    "NVIDIA_REQUIRE_CUDA": "cuda>=12.4 brand=tesla,driver>=470",
    "HF_HOME": "/data/hf",
}


def printed(environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, CHILD], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def pasted(environment: dict[str, str]) -> list[Setting]:
    lines = [f"{name}={value}" for name, value in environment.items()]
    return [one for line in (*lines, *(f"export {one}" for one in lines)) for one in examined(line).facts.all(Setting)]


def test_nothing_secret_passes_the_child() -> None:
    text = printed(HOSTILE)
    assert WORD not in text
    assert "abcdefghijklmnop" not in text
    variables = json.loads(text)["variables"]
    assert {variables[name] for name in ("https_proxy", "HTTP_PROXY", "NO_PROXY")} == {"***"}
    assert variables["HF_ENDPOINT"] == "https://hub.example/x"
    assert variables["RAY_ADDRESS"] == "ray://10.0.0.1:10001"


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_nor_the_reader_of_pastes(name: str) -> None:
    for setting in pasted({name: HOSTILE[name]}):
        assert WORD not in setting.value + setting.origin.quote
        assert "abcdefghijklmnop" not in setting.value + setting.origin.quote


def test_what_is_no_secret_is_told() -> None:
    variables = json.loads(printed(PLAIN))["variables"]
    assert {name: variables[name] for name in PLAIN} == PLAIN
    assert {one.name: one.value for one in pasted(PLAIN)} == PLAIN


def test_a_document_of_somebody_else_is_judged_again() -> None:
    text = json.dumps({"schema": "diag/environment/1", "variables": {"VLLM_API_KEY": WORD, "NCCL_DEBUG": "INFO"}})
    assert [one.name for one in examined(text).facts.all(Setting)] == ["NCCL_DEBUG"]
