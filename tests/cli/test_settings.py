"""What `diag.toml` decides: rules left out, findings waived until a day, and mistakes told in one line."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from contract.shell import diag

from diag.facts import Origin
from diag.finding import Evidence, Finding, Waiver

FAULTY = """\
Collecting environment information...
PyTorch version: 2.4.0+cu121
CUDA used to build PyTorch: 12.1
Is CUDA available: False
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
"""
ID = "torch/device-unavailable"


def judged(home: Path, settings: str, folder: str = "config/diag", *options: str) -> tuple[int, dict[str, Any]]:
    (home / folder).mkdir(parents=True, exist_ok=True)
    (home / folder / "diag.toml").write_text(settings)
    done = diag(home, "env-check", "-", "--format", "json", *options, text=FAULTY)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def waiver(until: str, id: str = ID, more: str = "") -> str:
    return f'[[waive]]\nid = "{id}"\nuntil = {until}\nreason = "ticket 4711"\n{more}\n'


@pytest.mark.parametrize("folder", ["config/diag", "elsewhere"])
def test_a_waived_finding_stays_in_the_report_and_counts_for_nothing(tmp_path, folder):
    code, report = judged(tmp_path, waiver("9999-12-31"), folder)
    finding = next(one for one in report["findings"] if one["id"] == ID)
    assert finding["waiver"] == {"until": "9999-12-31", "reason": "ticket 4711", "ended": False}
    assert (code, report["verdict"]) == (0, "pass")


def test_a_waiver_ends_with_its_day(tmp_path):
    code, report = judged(tmp_path, waiver("2026-01-31"))
    assert (code, report["verdict"], report["findings"][0]["waiver"]["ended"]) == (1, "fail", True)


def test_of_two_waivers_the_longer_holds(tmp_path):
    assert judged(tmp_path, waiver("2026-01-31") + waiver("9999-12-31"))[0] == 0


def test_a_waiver_of_a_subject_is_about_no_other(tmp_path):
    assert judged(tmp_path, waiver("9999-12-31", more='subject = "gpu7"'))[0] == 1


@pytest.mark.parametrize(("subject", "covered"), [("gpu1 (0000:1a:00.0)", True), ("gpu10", False), ("gpu1", True)])
def test_a_subject_is_a_word(subject, covered):
    evidence = Evidence(says="", origin=Origin(capture="x"))
    one = Waiver(id="x/y", until=date(2026, 1, 1), reason="r", subject="gpu1")
    assert one.covers(Finding(check="x/y", subject=subject, evidence=(evidence,))) == covered


def test_rules_are_left_out_and_the_command_line_has_the_last_word(tmp_path):
    report = judged(tmp_path, 'ignore = ["torch/device"]')[1]
    assert ID not in {one["id"] for one in report["results"]}
    assert report["ignored"] == ["torch/device"]
    report = judged(tmp_path, 'select = ["host/"]', "config/diag", "--select", "torch/")[1]
    assert {one["id"].partition("/")[0] for one in report["results"]} == {"torch"}


def test_it_is_told_to_a_reader(tmp_path):
    judged(tmp_path, waiver("9999-12-31"))
    told = diag(tmp_path, "env-check", "-", text=FAULTY).stdout
    assert "1 finding (1 waived)" in told
    assert "waived until 9999-12-31: ticket 4711" in told
    assert "已豁免至 9999-12-31：ticket 4711" in diag(tmp_path, "env-check", "-", "--lang", "zh", text=FAULTY).stdout


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (waiver("9999-12-31", id="torch/device-unavailible"), "did you mean 'torch/device-unavailable'"),
        ('[[waive]]\nid = "x/y"\nuntil = 2026-12-31\n', "reason"),
        (waiver('"soon"'), "date"),
        ("wave = 1", "wave"),
        ("= broken", "diag.toml"),
        ('ignore = ["nvdia/"]', "no check begins with 'nvdia/'"),
        ("ignore = 1", "ignore"),
        ('ignore = [""]', "a prefix is empty"),
        (waiver("9999-12-31").replace("ticket 4711", " "), "states no reason"),
        ("select = " + "[" * 9000 + "]" * 9000, "diag.toml"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(tmp_path, settings, says):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "diag.toml").write_text(settings)
    done = diag(tmp_path, "env-check", "-", text=FAULTY)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr


@pytest.mark.parametrize("made", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_one_line(tmp_path, made):
    (tmp_path / "elsewhere").mkdir()
    made(tmp_path / "elsewhere" / "diag.toml")
    done = diag(tmp_path, "env-check", "-", text=FAULTY)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
