"""The verdict on sets of versions: every release with its own pins, every set that ran, and the order of the levels."""

from __future__ import annotations

import datetime as dt
import shlex

import pytest
import yaml
from contract.loaded import LOADED, REPO

from diag import engine
from diag.capture import Held
from diag.facts import KnownSet, MatrixVerdict, Release
from diag.matrix.known import alike
from diag.matrix.verdict import verdicts
from diag.sources import Asked, Paste
from diag.versions import numbers
from diag.ways.nearest import rows

TODAY = dt.date(2026, 11, 30)
TABLES = rows(LOADED)
CHECKS = {one.id: one for one in LOADED.checks.values() if one.verdict}
PINNED = [
    one
    for package in ("vllm", "sglang", "lmdeploy")
    for one in TABLES.releases[package]
    if one.pins.get("torch", "").startswith("==")
]
SETS = TABLES.of(KnownSet)
COMPANIONS = ("torchvision", "torchaudio", "xformers")


def verdict_of(captures, today=TODAY) -> MatrixVerdict:
    found = engine.examine(captures, LOADED, CHECKS.values())
    return next(verdicts(found.facts, found.results, CHECKS, language="en", today=today))


def judged(*words: str, today: dt.date = TODAY) -> MatrixVerdict:
    return verdict_of(Asked({"matrix": f"diag matrix check {shlex.join(words)}"}).captures(()), today)


def pasted(text: str) -> MatrixVerdict:
    return verdict_of(Paste("paste", Held(text)).captures(()))


def name(release: Release) -> str:
    return f"{release.package}-{release.version}"


def exact(release: Release) -> dict[str, str]:
    """What a release pins exactly, each with its version."""
    pins = {one: pin.removeprefix("==") for one, pin in release.pins.items() if pin.startswith("==")}
    return {one: version for one, version in pins.items() if "," not in version and "*" not in version}


def test_every_engine_has_its_releases():
    ends = {one: (TABLES.releases[one][-1].version, TABLES.releases[one][0].version) for one in ("vllm", "sglang")}
    assert ends == {"vllm": ("0.6.0", "0.33.0"), "sglang": ("0.4.0", "0.5.23")}
    assert len(PINNED) > 140


@pytest.mark.parametrize("release", PINNED, ids=name)
def test_the_exact_pins_of_a_release_are_allowed(release):
    pins = [f"{one}=={version}" for one, version in exact(release).items()]
    verdict = judged(f"{release.package}=={release.version}", *pins)
    assert verdict.verdict in ("allowed-by-metadata", "reported", "verified"), verdict.deciding
    assert any(one.source == release.source and one.checked for one in verdict.reasons)


@pytest.mark.parametrize("release", PINNED, ids=name)
def test_another_torch_is_a_conflict(release):
    pins = exact(release)
    major, minor, *_ = numbers(pins["torch"])
    others = [f"{one}=={version}" for one, version in pins.items() if one not in ("torch", *COMPANIONS)]
    for other in (f"{major}.{minor - 1}.0", f"{major}.{minor + 1}.0"):
        verdict = judged(f"{release.package}=={release.version}", f"torch=={other}", *others)
        conflicts = [one for one in verdict.reasons if one.verdict == "metadata-conflict"]
        assert conflicts, verdict
        assert f"torch=={pins['torch']}" in conflicts[0].says
        assert verdict.verdict in ("metadata-conflict", "known-bad")


@pytest.mark.parametrize("known", SETS, ids=lambda one: one.id)
def test_a_set_that_ran_is_found(known):
    devices = [f"gpu={known.gpu[0].rstrip('*') if known.gpu else 'H100'}"]
    parts = [
        f"{one}={version}" if one in TABLES.parts else f"{one}=={version}" for one, version in known.versions.items()
    ]
    verdict = judged(*devices, *parts)
    own = [one for one in verdict.reasons if one.rule.endswith(f"/{known.id}")]
    assert own, verdict
    assert own[0].verdict == known.level
    assert verdict.verdict in ("verified", known.level), verdict.deciding


@pytest.mark.parametrize(
    ("words", "level"),
    [
        ("gpu=P800 vllm==0.15.1 torch==2.5.1 transformers==5.2.0 kunlun-ops==0.1.58", "verified"),
        ("gpu=8xP800 vllm==0.15.1 torch==2.5.1+cu118 transformers==5.2.0 python=3.10", "verified"),
        ("gpu=2xBW100 vllm==0.21.0 dtk=26.04 python=3.10", "verified"),
        ("gpu=2xBW100 sglang==0.5.12 dtk=26.04 python=3.10", "verified"),
        ("gpu=BW100 vllm==0.18.1 dtk=26.04 python=3.10", "reported"),
        ("gpu=BW100 sglang==0.5.12 dtk=26.04 model=Qwen3.8-27B-Channel-INT8-w8a8", "reported"),
        ("gpu=K100_AI sglang==0.5.12 dtk=26.04 python=3.10", "verified"),
        ("gpu=K100_AI vllm==0.18.1 dtk=26.04 python=3.10 model=Qwen3.8-27B-Channel-INT8-w8a8", "reported"),
        ("gpu=K100_AI vllm==0.18.1 dtk=26.04 python=3.10", "reported"),
        ("gpu=K100_AI sglang==0.5.12 dtk=26.04 model=Qwen3.8-27B-Channel-INT8-w8a8", "reported"),
        ("gpu=8xH200 vllm==0.24.0", "verified"),
        ("gpu=8xH200 sglang==0.5.14", "verified"),
        ("gpu=8xH200 vllm==0.24.0 torch==2.11.0 cuda=13.0 driver=580.95.05", "verified"),
    ],
)
def test_the_combinations_of_the_field_reports(words, level):
    verdict = judged(*words.split())
    assert verdict.verdict == level, verdict.deciding
    assert not [one for one in verdict.reasons if one.verdict in ("metadata-conflict", "known-bad")]


@pytest.mark.parametrize(
    ("words", "level", "rule"),
    [
        ("gpu=H100 driver=535.161.08 vllm==0.20.0", "known-bad", "nvidia/driver-behind-runtime"),
        ("gpu=8xH200 driver=535.161.08 vllm==0.24.0", "known-bad", "nvidia/driver-behind-runtime"),
        ("gpu=H100 driver=535 vllm==0.20.0 cuda-compat=13.0", "allowed-by-metadata", "nvidia/driver-behind-runtime"),
        ("gpu=H100 driver=535.161.08 vllm==0.19.1", "allowed-by-metadata", "nvidia/driver-behind-runtime"),
        ("gpu=RTX5090 torch==2.6.0+cu124", "known-bad", "torch/architecture-missing"),
        ("gpu=V100 vllm==0.20.0", "known-bad", "torch/architecture-missing"),
        ("torch==2.10.0+cu130 torchvision==0.25.0", "known-bad", "torch/companion-default-differs"),
        ("gpu=GB10 torch==2.10.0+cu130 torchvision==0.25.0", "allowed-by-metadata", "torch/architecture-missing"),
        ("torch==2.13.0 cuda=12.9 torchvision==0.28.0", "unknown", ""),
        ("vllm==0.15.1 torch==2.9.1 transformers==5.2.0", "metadata-conflict", "python/engine-pin-violated"),
        ("vllm==0.15.1 python=3.9", "metadata-conflict", "python/unsupported-by-engine"),
        ("vllm-ascend==0.18.0 vllm==0.18.0 torch==2.10.0", "metadata-conflict", "python/engine-pin-violated"),
        ("vllm-ascend==0.22.1rc1 vllm==0.22.1 torch==2.10.0 torch-npu==2.10.0", "allowed-by-metadata", ""),
        ("vllm==0.34.0 torch==2.14.0", "unknown", "python/engine-pin-violated"),
        ("gpu=Voodoo2 vllm==0.20.0", "unknown", "matrix/unknown-device"),
        ("'gpu=GA100 [A100 PCIe 40GB]' vllm==0.20.0", "allowed-by-metadata", "engine/no-code-for-device"),
        ("gpu=Orin driver=540.4.0 torch==2.9.0+cu126", "unknown", "matrix/not-compared"),
        ("some-package==1.0", "unknown", ""),
    ],
)
def test_the_first_level_that_applies_holds(words, level, rule):
    verdict = judged(*shlex.split(words))
    assert verdict.verdict == level, verdict
    assert not rule or rule in [one.rule for one in verdict.deciding]


SMI = """\
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  {name:<28}Off |   00000000:01:00.0 Off |                  Off |
| 30%   38C    P8              18W / 450W |       4MiB /  24564MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""
RUN = "$ docker run {options} vllm/vllm-openai:{tag} --model Qwen/Qwen2.5-7B-Instruct\n"


@pytest.mark.parametrize(
    ("name", "options", "tag", "refused"),
    [
        ("NVIDIA GeForce RTX 4090", "--gpus all", "v0.9.0", True),
        ("NVIDIA GeForce RTX 4090", "--gpus all", "nightly-cu129", True),
        ("NVIDIA GeForce RTX 4090", "--gpus all", "v0.8.5", False),
        ("NVIDIA GeForce RTX 4090", "--gpus all -e NVIDIA_DISABLE_REQUIRE=true", "v0.9.0", False),
        ("NVIDIA GeForce RTX 4090", "--device nvidia.com/gpu=all", "v0.9.0", False),
        ("NVIDIA RTX A6000", "--gpus all", "v0.9.0", False),
        ("NVIDIA H100 80GB HBM3", "--gpus all", "v0.20.0", False),
        ("NVIDIA Nobody 1", "--gpus all", "v0.9.0", False),
    ],
)
def test_an_image_asks_for_a_driver_unless_the_brand_is_exempt(name, options, tag, refused):
    verdict = pasted(SMI.format(name=name) + RUN.format(options=options, tag=tag))
    assert ("nvidia/driver-below-image" in [one.rule for one in verdict.reasons]) is refused


@pytest.mark.parametrize(
    ("name", "version", "lacking", "fits"),
    [
        ("NVIDIA GeForce RTX 5090", "2.6.0", True, False),
        ("NVIDIA GeForce RTX 5090", "2.7.0", False, False),
        ("NVIDIA L40S", "2.6.0", False, True),
        ("NVIDIA GB10", "2.6.0", False, False),
    ],
)
def test_of_a_release_whose_runtime_is_not_told_all_builds_count(name, version, lacking, fits):
    reasons = pasted(SMI.format(name=name) + f"torch=={version}\nnumpy==2.2.6\n").reasons
    found = [one for one in reasons if one.rule == "torch/architecture-missing"]
    assert [one.verdict for one in found] == ["known-bad"] * lacking + ["allowed-by-metadata"] * fits
    assert not fits or found[0].says.startswith(f"each build of torch {version} (CUDA 12.4, 12.6) has code")


@pytest.mark.parametrize("file", ["pip-freeze-vllm-0.33.0.txt", "pip-freeze-sglang-0.5.23.txt"])
def test_real_installations_are_allowed(file):
    text = (REPO / "tests/captures" / file).read_text()
    words = "$ diag matrix check gpu=H200 driver=580.95.05\n"
    verdict = pasted(text + words)
    assert verdict.verdict == "allowed-by-metadata", verdict.deciding
    assert {one.verdict for one in verdict.reasons} == {"allowed-by-metadata"}


@pytest.mark.parametrize(
    ("tag", "gpu", "level"),
    [
        ("v0.9.2", "RTX 5090", "allowed-by-metadata"),
        ("v0.9.0", "TITAN V", "known-bad"),
        ("v0.10.0", "RTX 5090", "known-bad"),
    ],
)
def test_the_torch_of_an_image_is_the_one_that_the_image_has(tag, gpu, level):
    text = f"docker run vllm/vllm-openai:{tag} --model m\n$ diag matrix check 'gpu={gpu}' driver=570.124.06\n"
    assert pasted(text).verdict == level


@pytest.mark.parametrize(
    ("asked", "known", "is_it"),
    [
        ("Qwen3.8", "Qwen3.8-27B-Channel-INT8-w8a8", True),
        ("zai-org/GLM-5.2-FP8", "zai-org/GLM-5.2-FP8", True),
        ("DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528", True),
        ("DeepSeek-R1", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", False),
        ("Qwen3.8-27B-AWQ", "Qwen3.8-27B", False),
        ("", "Qwen3.8-27B", True),
    ],
)
def test_a_model_is_the_one_of_a_set_but_for_size_format_and_date(asked, known, is_it):
    assert alike(asked, known) is is_it


OF_CONDA = """\
PyTorch version: 2.2.2
CUDA used to build PyTorch: 11.8
OS: Ubuntu 22.04.4 LTS (x86_64)
[pip3] torch==2.2.2
[pip3] torchvision==0.17.2
[conda] pytorch 2.2.2 py3.10_cuda11.8_cudnn8.7.0_0 pytorch
[conda] torchvision 0.17.2 py310_cu118 pytorch
"""
OF_SGLANG = """\
docker run --gpus all --ipc=host lmsysorg/sglang:v0.5.1 python3 -m sglang.launch_server --model-path m
$ diag matrix check gpu=A100 driver=535.183.06
"""
RAN_ON_ARM = """\
$ diag matrix check gpu=GH200
$ diag matrix check torch==2.8.0 vllm==0.11.0 driver=570.124.06
INFO 05-26 21:34:12 [kv_cache_utils.py:1710] GPU KV cache size: 396,928 tokens
"""


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (OF_CONDA, "torch/companion-default-differs"),
        (OF_SGLANG, "matrix/engines/sgl-kernel-02-driver-before-550"),
        (RAN_ON_ARM, "torch/plain-wheel-without-cuda"),
    ],
    ids=["conda", "compat", "ran"],
)
def test_what_may_well_work_is_no_fault(text, rule):
    assert rule not in [one.rule for one in pasted(text).reasons if one.verdict == "known-bad"]


def test_limits_are_told():
    old = judged("vllm==0.33.0", today=TODAY + dt.timedelta(days=200))
    assert [note for note in old.notes if "200 days ago" in note]
    newer = judged("vllm==0.40.0", "flux==1.0")
    assert [note for note in newer.notes if "0.40.0 is newer than the newest that is known here (0.33.0)" in note]
    assert "nothing is known here of flux" in newer.notes
    assert judged("vllm==0.33.0").notes == ()
    apart = judged("vllm==0.11.0", "flashinfer-python==0.2.0", "transformers==4.56.0")
    assert [note for note in apart.notes if "was compared with nothing" in note] == [
        "flashinfer-python was compared with nothing: no rule ties it to the rest of what is asked about"
    ]


GATHERED = yaml.safe_load((REPO / "tests/unit/known_bad.yaml").read_text(encoding="utf-8"))


def test_every_gathered_report_is_a_rule_or_says_why_not():
    assert len(GATHERED) == 107
    assert [one["row"] for one in GATHERED if ("rule" in one) == ("left" in one)] == []


@pytest.mark.parametrize("told", [one for one in GATHERED if "rule" in one], ids=lambda one: one["row"])
def test_a_gathered_report_is_found_by_a_rule_that_is_proved(told):
    for rule in told["rule"]:
        assert LOADED.checks[rule].fires
        assert LOADED.checks[rule].silent
