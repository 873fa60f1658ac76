"""Several machines in one text, or in several, stay apart; the parts of one machine stay together."""

from __future__ import annotations

from itertools import chain

import pytest
from told import LOADED, examined, scopes, text_of

from diag.engine import Examination
from diag.scopes import scoped
from diag.sections import Section

LAPTOP, SERVER = text_of("neg-env-4070-wsl.txt"), text_of("wsl-cuda-init-error2-8gpu.txt")
NO_DEVICE, FROZEN = text_of("torch-collect-env-vllm-0.33.0-no-device.txt"), text_of("pip-freeze-vllm-0.33.0.txt")
SMI_510 = "\n".join(text_of("fabricmanager-not-needed-geforce.txt").splitlines()[5:8])
SMI_551 = SMI_510.replace("510.47.03", "551.88   ").replace("11.6", "12.4")
TOO_OLD = text_of("nv-driver-too-old-chatglm3.txt")
SM120, NO_TOOL = text_of("sm120-5090-legged.txt"), text_of("nvidia-smi-not-found.txt")


def at(host: str, command: str, output: str) -> str:
    return f"root@{host}:~# {command}\n{output}\n"


def drivers(found: dict[str, dict[str, list[str]]]) -> dict[str, list[str]]:
    return {scope: one.get("driver", []) for scope, one in found.items()}


def findings(found: Examination) -> dict[str, list[str]]:
    failed = [one for one in found.results if one.status == "fail"]
    return {scope: [one.check for one in failed if scope in (one.scopes or ("",))] for scope in found.facts.scopes()}


def test_two_reports() -> None:
    found = scopes(f"On my laptop:\n{LAPTOP}\nOn the server:\n{SERVER}")
    assert list(found) == ["#1", "#2"]
    assert [one["torch"][0]["available"] for one in found.values()] == [True, False]
    assert [sum(one["devices"].values()) for one in found.values()] == [1, 6]
    assert drivers(found) == {"#1": ["nvidia 551.88"], "#2": []}


def test_a_finding_names_its_machine() -> None:
    found = examined(f"{LAPTOP}\n{SERVER}")
    assert findings(found) == {"#1": [], "#2": ["torch/device-unavailable", "nvidia/wsl-devices-too-many"]}
    assert {one.scope for result in found.results for one in result.findings} == {"#2"}
    assert {one.origin.scope for result in found.results for f in result.findings for one in f.evidence} == {"#2"}


def test_two_hosts_by_prompt_and_back() -> None:
    text = at("node1", "nvidia-smi", SMI_510) + at("node2", "nvidia-smi", SMI_551) + at("node1", "python x.py", SM120)
    found = scopes(text)
    assert drivers(found) == {"node1": ["nvidia 510.47.03 offers 11.6"], "node2": ["nvidia 551.88 offers 12.4"]}
    assert "torch" in found["node1"]
    assert "torch" not in found["node2"]


def test_two_hosts_that_say_the_same() -> None:
    assert list(scopes(at("node1", "nvidia-smi", SMI_510) + at("node2", "nvidia-smi", SMI_510))) == ["node1", "node2"]


@pytest.mark.parametrize("again", [SMI_510, f"{SMI_510}\n{SMI_510}", LAPTOP.replace("551.88", "510.47.03")])
def test_one_machine_has_no_scope(again: str) -> None:
    assert list(scopes(f"{SMI_510}\n\n{again}")) == [""]


def test_table_report_and_packages_of_one_machine() -> None:
    found = scopes(f"{SMI_551}\n\n{NO_DEVICE}\n\n{FROZEN}")
    assert list(found) == [""]
    assert (found[""]["driver"], found[""]["packages"]["count"]) == (["nvidia 551.88 offers 12.4"], 224)


def test_packages_that_disagree_with_the_report_before_them() -> None:
    assert list(scopes(f"{NO_DEVICE}\n{FROZEN.replace('torch==2.14.0', 'torch==2.9.1')}")) == [
        "#1",
        "#2",
    ]


def test_one_host_before_and_after_a_new_driver() -> None:
    text = at("node1", "nvidia-smi", SMI_510) + at("node1", "nvidia-smi", SMI_551) + at("node1", "python x.py", SM120)
    assert drivers(scopes(text)) == {
        "node1": ["nvidia 510.47.03 offers 11.6"],
        "#2": ["nvidia 551.88 offers 12.4"],
    }


def test_two_virtual_environments_of_one_host() -> None:
    old, new = (at("node1", "pip freeze", f"numpy==1.26.4\ntorch=={version}") for version in ("2.4.0", "2.9.1"))
    found = scopes(f"{old}{'step' * 9}\n\n\n\n\n{new}")
    assert all("packages" in one for one in found.values())


def test_host_then_container() -> None:
    text = at("node1", "nvidia-smi", SMI_510) + at("0a1b2c3d4e5f", "python collect_env.py", NO_DEVICE)
    found = scopes(text)
    assert list(found) == ["node1", "0a1b2c3d4e5f"]
    assert [("driver" in one, "torch" in one) for one in found.values()] == [(True, False), (False, True)]


def test_tool_works_on_the_host_and_not_in_the_container() -> None:
    found = scopes(f"{SMI_510}\n\n{text_of('nvml-lib-missing-in-container.txt')}")
    assert ["unavailable" in one for one in found.values()] == [False, True]


def test_packages_of_two_hosts_without_a_line_between() -> None:
    text = at("node1", "pip freeze", "numpy==1.26.4\ntorch==2.4.0") + at("node2", "pip freeze", "a==1.0\ntorch==2.9.1")
    assert {scope: one["packages"]["count"] for scope, one in scopes(text).items()} == {"node1": 2, "node2": 2}


def test_report_that_is_cut_takes_nothing_of_the_next_host() -> None:
    cut = "\n".join(LAPTOP.split("\n")[:5])
    found = scopes(at("node1", "python collect_env.py", cut) + at("node2", "nvidia-smi", SMI_510) + "OS: Windows 11\n")
    assert list(found) == ["node1", "node2"]
    assert "os" not in found["node1"].get("host", {})


def test_headless_report_after_a_cut_one() -> None:
    cut = "\n".join(LAPTOP.split("\n")[1:5])
    found = scopes(f"{cut}\n\n{text_of('collect-env-vllm-0.10.2-sectioned.txt')}")
    assert list(found) == ["#1", "#2"]
    assert "host" not in found["#1"]


def test_missing_tool_of_another_host() -> None:
    text = at("node1", "nvidia-smi", SMI_510) + "root@node2:~# nvidia-smi\nbash: nvidia-smi: command not found\n"
    found = scopes(text)
    assert {scope: one.get("unavailable") for scope, one in found.items()} == {
        "node1": None,
        "node2": ["nvidia-smi missing"],
    }


def test_each_file_is_a_machine_named_after_it() -> None:
    assert list(scopes(SMI_551, LAPTOP)) == ["text1", "text2"]
    assert drivers(scopes(SMI_510, LAPTOP)) == {"text1": ["nvidia 510.47.03 offers 11.6"], "text2": ["nvidia 551.88"]}


def test_warnings_of_all_ranks_are_one_machine() -> None:
    other = SM120.replace("5090", "5080")
    assert list(scopes("\n".join([SM120, "loading", other, *["step"] * 50, SM120]))) == [""]


def test_the_same_driver_warning_twice() -> None:
    found = scopes(f"{TOO_OLD}\n" + "step\n" * 200 + TOO_OLD)
    assert list(found) == [""]


def test_every_order_of_three_machines_keeps_them_apart() -> None:
    parts = [at(f"node{number}", "nvidia-smi", smi) for number, smi in enumerate((SMI_510, SMI_551, SMI_510), 1)]
    for turn in range(3):
        found = scopes("".join(chain(parts[turn:], parts[:turn], parts)))
        assert sorted(found) == ["node1", "node2", "node3"]


def test_scope_of_a_lone_section_is_given_where_it_must_be() -> None:
    probe = LOADED.probes["nvidia-smi"]
    part = examined(SMI_510).captures[0]
    section = Section(probe, part, 1, "", once=True)
    (told,) = scoped([section], lambda probe, capture: list(probe.read(capture)), "log")
    assert told.scope == "log"
    assert {fact.origin.scope for fact in told.facts} == {"log"}


def test_a_symptom_outside_every_section_is_one_finding_about_none():
    symptom = "RM has detected an NVML/RM version mismatch."
    found = examined(f"{symptom}\n\n{LAPTOP}\n\n{SERVER}")
    said = [finding for result in found.results for finding in result.findings if "mismatch" in finding.check]
    assert {(finding.scope, finding.evidence[0].origin.line) for finding in said} == {("", 1)}
