"""The knowledge base as a document."""

import json
import subprocess
import sys

import pytest

DIAG = (sys.executable, "-m", "diag")
ENTRY = """\
title: {en: A fan stopped, zh: 风扇停转}
severity: warning
confidence: low
about: host
text: [kernel-log, tool-output]
symptoms: {any: ['fan \\d stopped'], contains: [chassis]}
applies: {component: acme-fans, version: '<2'}
cause: {en: It has no power., zh: 没有供电。}
remedies: [{title: {en: Plug it in, zh: 插上电源}, safety: manual}]
sources: [{url: 'https://example.com/fans', seen: 2026-11-30}]
vectors: {fires: [{text: 'chassis: fan 3 stopped'}], silent: [{text: 'chassis: fan 3 turns'}]}
"""


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run((*DIAG, *map(str, arguments)), capture_output=True, text=True, timeout=120)


def test_entries_are_exported_whole_in_both_languages(tmp_path):
    path = tmp_path / "kb/entries/site/fan-stops.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(ENTRY, encoding="utf-8")
    exported = json.loads(run("kb", "export", "site", "--root", tmp_path).stdout)
    assert (exported["schema"], len(exported["entries"])) == ("diag/kb/1", 1)
    (entry,) = exported["entries"]
    assert entry["id"] == "site/fan-stops"
    assert (entry["title"]["zh"], entry["cause"]["en"]) == ("风扇停转", "It has no power.")
    assert (entry["confidence"], entry["text"]) == ("low", ["kernel-log", "tool-output"])
    assert (entry["symptoms"]["any"], entry["versions"]) == (["fan \\d stopped"], {"acme-fans": ["<2"]})
    assert (entry["fires"], entry["silent"]) == (["chassis: fan 3 stopped"], ["chassis: fan 3 turns"])
    assert (entry["sources"], entry["checked"]) == (["https://example.com/fans"], "2026-11-30")


def test_all_entries_are_in_the_export_and_in_its_schema():
    listed = run("kb", "list").stdout.splitlines()
    exported = json.loads(run("kb", "export").stdout)["entries"]
    assert [one["id"] for one in exported] == [line.split()[0] for line in listed]
    assert {one["confidence"] for one in exported} == {"high", "medium", "low"}
    schema = json.loads(run("schema", "kb").stdout)["$defs"]["ExportedEntry"]
    assert all(one.keys() == schema["properties"].keys() for one in exported)


@pytest.mark.parametrize("arguments", [("export", "no-such"), ("export", "a", "b")])
def test_what_is_not_there_is_not_exported(arguments):
    done = run("kb", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
