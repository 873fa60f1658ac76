"""`diag matrix check`, `suggest` and `show`, as a user calls them."""

from __future__ import annotations

import json

import pytest
from contract.loaded import REPO
from contract.shell import diag

SITE = """\
releases:
  - {package: vllm, version: "0.20.0", pins: {torch: "==2.11.1"}, source: site build, checked: "2026-11-30"}
cases:
  - id: site-set
    level: verified
    vendor: nvidia
    gpu: ["H100*"]
    versions: {vllm: "0.20.0", torch: "2.11.1"}
    source: our lab
    checked: "2026-11-30"
"""
FREEZE = "vllm==0.15.1\ntorch==2.9.0\ntransformers==4.57.6\n"


def document(home, *arguments, code=0, text=""):
    done = diag(home, "matrix", *arguments, "--format", "json", text=text)
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def test_a_verdict_has_components_reasons_and_their_sources(tmp_path):
    told = document(tmp_path, "check", "gpu=8xH200", "vllm==0.24.0", "driver=580.95.05")
    assert (told["schema"], told["verdict"]) == ("diag/matrix/1", "verified")
    assert told["components"] == {"gpu": "8xH200", "vllm": "0.24.0", "driver": "580.95.05"}
    assert all(one["rule"] and one["source"] and one["checked"] for one in told["reasons"])
    assert {"rule", "verdict", "severity", "says", "source", "checked"} == set(told["reasons"][0])


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        (["gpu=H100", "driver=535.161.08", "vllm==0.20.0"], 1, "known-bad"),
        (["vllm==0.15.1", "torch==2.9.0"], 0, "metadata-conflict"),
        (["vllm==9.9.9"], 0, "unknown"),
        (["gpu=P800", "driver=5.0.21.26", "vllm==0.15.1", "torch==2.5.1", "transformers==5.2.0"], 0, "verified"),
    ],
)
def test_the_exit_code_follows_what_stands_behind_the_verdict(tmp_path, words, code, verdict):
    told = document(tmp_path, "check", *words, code=code)
    assert told["verdict"] == verdict
    assert told["components"].get("driver", "") in ("", "535.161.08", "5.0.21.26")


def test_a_text_is_judged_and_words_are_added_to_it(tmp_path):
    told = document(tmp_path, "check", "--from", "-", text=FREEZE)
    assert (told["verdict"], told["components"]["torch"]) == ("metadata-conflict", "2.9.0")
    told = document(tmp_path, "check", "gpu=V100", "--from", "-", text=FREEZE.replace("0.15.1", "0.20.0"), code=1)
    assert told["verdict"] == "known-bad"


def test_the_nearest_ways_have_commands(tmp_path):
    told = document(tmp_path, "suggest", "--want", "vllm>=0.20", "gpu=H100", "driver=535.161.08")
    first, *others = told["suggestions"]
    assert first["changes"][0].startswith("vllm 0.")
    assert first["commands"][-2:] == ["pip install uv", first["commands"][-1]]
    assert first["commands"][-1].startswith("uv pip install")
    assert any("driver 535.161.08 -> 580.65.06 or newer" in one["changes"] for one in others)
    assert {one["level"] for one in told["suggestions"]} == {"allowed-by-metadata"}


@pytest.mark.parametrize("words", ["gpu=910B", "gpu=910B driver=25.2.0", "gpu=C500", "gpu=P800 driver=5.0.21.26"])
def test_ways_of_other_makers_ask_for_no_driver_of_nvidia(tmp_path, words):
    told = document(tmp_path, "suggest", "--want", "vllm", *words.split())
    assert told["suggestions"]
    assert [one for way in told["suggestions"] for one in way["changes"] if "driver" in one] == []


@pytest.mark.parametrize(
    ("words", "change", "command"),
    [
        # what a release gives a range for is named as it was judged, and bounded where the newest is known to fail
        ("--want lmdeploy gpu=H100 driver=550.54.15 torch==2.8.0", "lmdeploy 0.18.0", '"torch==2.8.0"'),
        ("--want lmdeploy gpu=H100 driver=550.54.15", "torch 2.10.0", '"torch==2.10.0"'),
        ("--want vllm==0.11.0 gpu=H100 driver=570.124.06", "vllm 0.11.0", '"transformers<5"'),
        ("--want vllm==0.8.5.post1 gpu=A100 driver=570.124.06", "vllm 0.8.5.post1", '"transformers<4.54"'),
        # another build of torch that stays comes from its own index
        ("--want lmdeploy gpu=H100 driver=550.54.15 torch==2.8.0+cu126", "lmdeploy 0.18.0", "whl/cu126"),
        # one set grants all wishes
        ("--want vllm --want torch==2.8.0 gpu=H100", "torch 2.8.0", '"vllm==0.11.0"'),
        ("--want torch==2.8.0 gpu=H100 vllm==0.19.1", "vllm 0.19.1 -> 0.11.0", '"vllm==0.11.0"'),
        ("--want transformers>=5 gpu=H100 vllm==0.11.0", "vllm 0.11.0 -> 0.33.0", '"transformers=='),
        # interpreters for which there is a wheel, of torch as well
        ("--want torch gpu=H100 driver=580.95.05 python=3.9", "torch 2.8.0", '"torch==2.8.0"'),
        ("--want sglang gpu=H100 driver=580.95.05 python=3.14", "sglang 0.5.10.post1", '"sglang==0.5.10.post1"'),
        ("--want lmdeploy gpu=H100 driver=580.95.05 python=3.11", "lmdeploy 0.18.0", '"lmdeploy==0.18.0"'),
        # the image for the device, and variables where they reach what runs
        ("--want vllm==0.18.0 gpu=910C", "镜像", "quay.io/ascend/vllm-ascend:v0.18.0rc1-a3"),
        ("--want vllm gpu=MI300X", "amd-aiter 0.1.12.post2", "-e VLLM_ROCM_USE_AITER=1 vllm/vllm-openai-rocm:v0.19.1"),
        # a range that a pin names can be gone to
        (
            "--want vllm==0.18.0 gpu=910B3 torch==2.5.1 torch-npu==2.5.1 cann=8.5.1 python=3.11 transformers==5.0.0",
            "torch-npu 2.5.1 -> 2.9.0",
            '"torch-npu==2.9.0"',
        ),
        ("--want vllm gpu=C500 maca=3.8.0", "vllm-metax 0.22.0", ""),
        ("--want vllm gpu=C500", "需要 maca 3.8.0", ""),
        ("--want vllm gpu=C500 maca=3.8", "需要 maca 3.8.0", ""),
        # what the engine of a plug-in leaves open is bounded as well
        ("--want vllm-ascend==0.11.0rc2 gpu=910B", "vllm 0.11.0", '"transformers<5"'),
    ],
)
def test_the_first_way_says_and_builds_what_was_judged(tmp_path, words, change, command):
    first, *_ = document(tmp_path, "suggest", *words.split(), "--lang", "zh")["suggestions"]
    assert any(one.startswith(change) for one in first["changes"])
    assert command in "\n".join(first["commands"])
    assert not any(word in one for one in first["changes"] for word in ("image", "needs", "newer"))


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            "--want vllm gpu=H100 driver=550.54.15 torch==2.8.0+cu128",
            ["vllm 0.19.1", "vllm 0.32.0+cu129", "vllm 0.33.0"],
        ),
        ("--want vllm gpu=K100_AI", ["vllm 0.18.1", "vllm 0.21.0"]),
        ("--want sglang gpu=BW1000", ["sglang 0.5.11", "sglang 0.5.18"]),
        ("--want model=GLM-5.2-FP8 gpu=8xH200", ["vllm 0.24.0", "sglang 0.5.14"]),
    ],
)
def test_every_way_has_something_that_none_before_it_has(tmp_path, words, shown):
    told = document(tmp_path, "suggest", *words.split())
    assert [one["changes"][0] for one in told["suggestions"]] == shown


def test_what_a_text_tells_is_changed_or_stays(tmp_path):
    text = "vllm==0.8.5\ntransformers==5.1.0\nnumpy==2.2.6\n"
    ways = document(tmp_path, "suggest", "gpu=A100", "--from", "-", text=text)["suggestions"]
    assert ways[0]["changes"][0] == "transformers 5.1.0 -> 4.57.6"
    assert ways[0]["commands"] == ['pip install "vllm==0.8.5" "transformers==4.57.6"']
    assert all("transformers 5.1.0 -> " in "; ".join(one["changes"]) for one in ways)


def test_what_an_engine_that_stays_has_brought_is_no_change(tmp_path):
    told = document(tmp_path, "suggest", "gpu=H100", "driver=535.161.08", "vllm==0.33.0")
    assert told["suggestions"][-1]["changes"] == ["driver 535.161.08 -> 580.65.06 or newer"]
    assert told["suggestions"][-1]["commands"] == []


def test_a_search_that_was_cut_short_says_so(tmp_path):
    capture = REPO / "tests/captures/torch/collect-env-torch-1.7.0-rocm-3.7.txt"
    told = document(tmp_path, "suggest", "--from", str(capture), "--want", "sglang", code=1)
    assert "the search was cut short: not every set that might grant this was judged" in told["notes"]


def test_uv_stands_in_an_environment_before_it_is_used(tmp_path):
    for words in ("--want vllm==0.32.0 gpu=H100 driver=550.54.15", "--want vllm gpu=H100 python=3.9 driver=550.54.15"):
        for way in document(tmp_path, "suggest", *words.split())["suggestions"]:
            lines = way["commands"]
            used = [number for number, one in enumerate(lines) if one.startswith("uv ")]
            assert all("pip install uv" in lines[:number] for number in used)
            assert all(lines[0] == "python3 -m venv .venv-new" or "python" in str(way["changes"]) for _ in used)


def test_a_pre_release_is_a_way_where_no_final_one_grants_the_wish(tmp_path):
    finals, *_ = document(tmp_path, "suggest", "--want", "vllm-ascend", "gpu=910B")["suggestions"]
    assert not any("rc" in one for one in finals["changes"][:2])
    early, *_ = document(tmp_path, "suggest", "--want", "vllm-ascend>0.23", "gpu=910B")["suggestions"]
    assert early["changes"][0] == "vllm-ascend 0.26.0rc1"


def test_where_no_way_is_known_the_rules_that_refuse_are_named(tmp_path):
    told = document(tmp_path, "suggest", "--want", "vllm>=0.20", "gpu=GTX1080Ti", code=1)
    assert told["suggestions"] == []
    assert any("refuses vllm 0.33.0" in note for note in told["notes"])


def test_an_overlay_replaces_rows_and_is_named(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "vllm.yaml").write_text(SITE)
    words = ("gpu=H100", "vllm==0.20.0", "torch==2.11.1")
    assert document(tmp_path, "check", *words)["verdict"] == "metadata-conflict"
    told = document(tmp_path, "check", *words, "--overlay", str(folder))
    assert told["verdict"] == "verified"
    assert told["reasons"][0]["rule"] == "overlay/vllm/site-set"
    assert told["notes"] == ["rows of the overlay hold: set site-set, vllm==0.20.0"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "foo"], "'foo' is neither NAME==VERSION nor NAME=VALUE"),
        (["check", "gp=H100"], "gp=H100: no part is called 'gp'; did you mean gpu=?"),
        (["check", "vllm>=0.20"], "'vllm>=0.20' is neither"),
        (["check", ""], "it is empty"),
        (["check", "--from", "nowhere.txt"], "cannot read nowhere.txt"),
        (["check", "vllm==0.20.0", "--overlay", "nowhere"], "overlay nowhere: no .yaml in it"),
        (["suggest", "--want", "vllm=>1"], "--want vllm=>1: it is neither NAME with a range nor model=NAME"),
        (["show", "vlm"], "nothing is known of 'vlm'; did you mean 'vllm'?"),
    ],
)
def test_what_the_user_can_put_right_is_one_line(tmp_path, arguments, says):
    done = diag(tmp_path, "matrix", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_overlay_that_is_none_is_one_line(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    for text in ("cases: [{id: x}]", "releases: {", "releases: [3]", "rows: []", ": :"):
        (folder / "x.yaml").write_text(text)
        done = diag(tmp_path, "matrix", "check", "vllm==0.20.0", "--overlay", str(folder))
        assert (done.returncode, done.stdout) == (2, ""), text
        assert done.stderr.startswith("diag: overlay ")
        assert done.stderr.count("\n") == 1


def test_the_terminal_says_rule_source_and_day(tmp_path):
    done = diag(tmp_path, "matrix", "check", "gpu=V100", "vllm==0.20.0")
    assert done.returncode == 1
    assert done.stdout.startswith("KNOWN BAD  gpu V100, vllm 0.20.0\n")
    assert "torch/architecture-missing (" in done.stdout
    chinese = diag(tmp_path, "matrix", "suggest", "--want", "vllm", "gpu=V100", "--lang", "zh").stdout
    assert "方案 1: vllm 0.19.1" in chinese


@pytest.mark.parametrize(
    ("component", "says"),
    [
        ("", "vllm "),
        ("vllm", "0.33.0"),
        ("vllm==0.20.0", "asks for torch"),
        ("gpu=H100", "H100 PCIe"),
        ("kunlun", "kunlun-p800-vllm-0.15.1"),
        ("ascend", "vllm-ascend"),
    ],
)
def test_show_prints_tables(tmp_path, component, says):
    done = diag(tmp_path, "matrix", "show", *filter(None, [component]))
    assert (done.returncode, done.stderr) == (0, "")
    assert says in done.stdout
