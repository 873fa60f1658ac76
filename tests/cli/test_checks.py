"""`checks why` and `checks new`, and what `--expect` makes of a machine."""

from __future__ import annotations

import json

import pytest
from contract.shell import diag, examine

FOUR = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 525.105.17   Driver Version: 525.105.17   CUDA Version: 12.0     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA A100-SXM...  Off  | 00000000:AF:00.0 Off |                    0 |
| N/A   32C    P0    42W / 400W |  48770MiB / 81920MiB |      0%      Default |
"""
ENV = "PyTorch version: 2.4.0+cu121\nCUDA used to build PyTorch: 12.1\nIs CUDA available: True\n"


@pytest.mark.parametrize(
    ("text", "ends", "says"),
    [
        (FOUR, "skip", "needs TorchBuild: none told"),
        (FOUR + ENV, "pass", "TorchBuild version=2.4.0+cu121"),
        (ENV.replace("12.1", "13.0"), "skip", "may use"),
    ],
)
def test_why_tells_the_end_and_the_facts(tmp_path, text, ends, says):
    done = diag(tmp_path, "checks", "why", "torch/cpu-build-beside-accelerator", "-", text=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"torch/cpu-build-beside-accelerator: {ends}\n")
    assert says in done.stdout


def test_why_quotes_what_made_it_fire(tmp_path):
    text = FOUR + ENV.replace("2.4.0+cu121", "2.4.0+cpu").replace("12.1", "Could not collect").replace("True", "False")
    told = diag(tmp_path, "checks", "why", "torch/cpu-build-beside-accelerator", "-", text=text).stdout
    assert "torch 2.4.0+cpu was built for the CPU alone" in told
    assert "PyTorch version: 2.4.0+cpu" in told


def test_why_of_a_rule_that_is_not_names_the_nearest(tmp_path):
    done = diag(tmp_path, "checks", "why", "nvidia/driver-silence", "-")
    assert (done.returncode, "did you mean 'nvidia/driver-silent'" in done.stderr) == (2, True)


def test_why_passes_the_exit_gate(tmp_path):
    text = "[root@node-17 ~]# nvidia-smi\nbash: nvidia-smi: command not found\n"
    done = diag(tmp_path, "checks", "why", "nvidia/driver-silent", "-", text=text)
    assert "node-17" not in done.stdout


def test_a_new_check_loads_and_asks_for_its_vectors(tmp_path):
    root = tmp_path / "root"
    done = diag(tmp_path, "checks", "new", "site/fan-stopped", "--root", str(root))
    assert (done.returncode, (root / "checks/site/fan_stopped.py").is_file()) == (0, True)
    proved = diag(tmp_path, "selftest", "--root", str(root))
    assert (proved.returncode, "site/fan-stopped: needs a vector" in proved.stdout) == (1, True)
    again = diag(tmp_path, "checks", "new", "site/fan-stopped", "--root", str(root))
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    "id", ["fan", "Site/Fan", "../x/y", "site/fan_stopped", "site/class", "site/1a", "/etc/x", "site/"]
)
def test_what_is_no_id_is_refused(tmp_path, id):
    done = diag(tmp_path, "checks", "new", id, "--root", str(tmp_path / "root"))
    assert (done.returncode, done.stderr.count("\n"), (tmp_path / "root").exists()) == (2, 1, False)


@pytest.mark.parametrize("asked", ["", "x", "8xx", "0xH200", "-1xH200", "8 x ", "H200x8", "8xH200\n9xH100"])
def test_what_is_no_expectation_is_refused(tmp_path, asked):
    done = diag(tmp_path, "env-check", "-", "--expect", asked, text=FOUR)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("asked", ["1xA100", "1 x NVIDIA A100", "1", "1xnvidia", "1×A100-SXM"])
def test_a_machine_as_expected_passes(tmp_path, asked):
    assert examine(tmp_path, FOUR, "--expect", asked)["verdict"] in ("pass", "warn")


@pytest.mark.parametrize("asked", ["2xA100", "1xH100", "1xKunlun P800"])
def test_a_machine_that_has_less_or_others_fails(tmp_path, asked):
    done = diag(tmp_path, "env-check", "-", "--format", "json", "--expect", asked, text=FOUR)
    found = [one["id"] for one in json.loads(done.stdout)["findings"]]
    assert (done.returncode, "device/count-below-expected" in found) == (1, True)


def test_an_expectation_that_nothing_can_answer_is_incomplete(tmp_path):
    report = examine(tmp_path, ENV, "--expect", "8xH200")
    assert report["verdict"] == "incomplete"
    assert any("expected" in reason for reason in report["incomplete"])


BUS = "af:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 80GB] (rev a1)\n"


def test_a_device_on_the_bus_alone_is_no_pass(tmp_path):
    report = examine(tmp_path, BUS)
    assert (report["verdict"], any("bus" in reason for reason in report["incomplete"])) == ("incomplete", True)


@pytest.mark.parametrize("host", ["error", "observed", "runtime", "skip", "safe", "check"])
def test_a_host_may_be_called_like_a_word_of_the_report(tmp_path, host):
    shown = (f"[root@{name} ~]# nvidia-smi\nbash: nvidia-smi: command not found\n" for name in (host, "other77"))
    report = examine(tmp_path, "".join(shown) + FOUR + ENV.replace("12.1", "13.0").replace("True", "False"))
    assert {one["id"] for one in report["results"]} >= {"nvidia/driver-behind-runtime", "torch/missing"}
    assert all(host not in one["scopes"] for one in (report, *report["results"]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000000)\n", "only names were told"),
        (FOUR + "RuntimeError: the pump is out of order\n", "an error that no rule knows"),
        (FOUR + "Traceback (most recent call last):\n", "an error that no rule knows"),
    ],
)
def test_what_is_not_known_to_be_well_is_no_pass(tmp_path, text, reason):
    report = examine(tmp_path, text)
    assert report["verdict"] == "incomplete"
    assert any(reason in one for one in report["incomplete"])


def test_a_root_that_is_none_is_a_mistake(tmp_path):
    (tmp_path / "bare").mkdir()
    done = diag(tmp_path, "env-check", "-", "--root", str(tmp_path / "bare"), text=FOUR)
    assert (done.returncode, "holds none of checks, kb, reports" in done.stderr) == (2, True)
