"""Every rule proves itself, speaks both languages, fills its wording, and cites what it saw where it saw it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from held import ROOTS

from diag.check import Check
from diag.facts import Text, Unavailable
from diag.finding import Finding
from diag.selftest import proved

from .loaded import LANGUAGES, LOADED, Vector, alone, pasted, report

FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
URL = re.compile(r"https?://[\w.-]+\.\w+(/\S*)?$")
PARTS = ("title", "summary", "cause")


def findings(rule: Check) -> Iterator[Finding]:
    for text in rule.fires:
        yield from (found for one in alone(rule, text).results for found in one.findings)


def wordings(rule: Check) -> Iterator[dict[str, str]]:
    yield from ({language: rule.words[language][part] for language in LANGUAGES} for part in PARTS)
    yield from (remedy.title for remedy in rule.remedies)


def test_there_is_something_to_test() -> None:
    assert len(LOADED.checks) >= 10
    assert LOADED.broken == ()


def test_vectors_prove_it(rule: Check) -> None:
    assert list(proved(rule, LOADED)) == []


def test_id_is_the_path_of_its_file(rule: Check) -> None:
    folder = f"kb/matrix/{rule.id.removeprefix('matrix/').rpartition('/')[0]}.yaml"
    places = {"check": f"checks/{rule.id.replace('-', '_')}.py", "entry": f"kb/entries/{rule.id}.yaml"}
    assert any((root / places.get(rule.kind, folder)).is_file() for root in ROOTS)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)+", rule.id)


def test_wording_is_whole_in_both_languages(rule: Check) -> None:
    for wording in wordings(rule):
        assert set(wording) == set(LANGUAGES)
        assert wording["en"].strip()
        assert CHINESE.search(wording["zh"])
        assert not CHINESE.search(wording["en"])


def test_both_languages_have_the_same_fields(rule: Check) -> None:
    for wording in wordings(rule):
        assert sorted(FIELD.findall(wording["en"])) == sorted(FIELD.findall(wording["zh"]))


def test_title_needs_no_finding(rule: Check) -> None:
    assert [rule.words[language]["title"] for language in LANGUAGES if "{" in rule.words[language]["title"]] == []


def test_every_field_is_filled_by_every_finding(rule: Check) -> None:
    told = list(findings(rule))
    assert told
    for found in told:
        remedies = rule.remedies_for(found)
        texts = [rule.words[language][part] for language in LANGUAGES for part in PARTS]
        texts += [text for one in remedies for text in (*one.title.values(), *one.commands, one.verify)]
        assert {field for text in texts for field in FIELD.findall(text)} <= set(found.values)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_brace_is_left_in_what_is_read(rule: Check, language: str) -> None:
    for text in rule.fires:
        for found in report(alone(rule, text), language).findings:
            assert "{" not in f"{found.title}{found.summary}{found.cause}{[one.title for one in found.remedies]}"
            assert not any(FIELD.search(command) for one in found.remedies for command in one.commands)


def test_every_finding_has_a_way_out(rule: Check) -> None:
    assert rule.remedies
    assert all(rule.remedies_for(found) for found in findings(rule))
    assert {key for found in findings(rule) for key in found.remedies} <= {one.key for one in rule.remedies}
    assert all(one.safety in ("safe", "disruptive", "manual") for one in rule.remedies)


def test_sources_are_addresses(rule: Check) -> None:
    assert rule.sources
    assert [one for one in rule.sources if not URL.match(one)] == []
    assert [one.source for one in rule.remedies if one.source and not URL.match(one.source)] == []


def test_explains_only_what_exists(rule: Check) -> None:
    assert set(rule.explains) <= set(LOADED.checks) - {rule.id}


def test_somebody_tells_what_it_needs(rule: Check) -> None:
    told = {kind for one in (*LOADED.probes.values(), *LOADED.deductions) for kind in one.tells}
    told |= {type(one) for one in LOADED.references} | {Text, Unavailable}
    assert set(rule.needs) <= told


def test_it_is_explained(rule: Check) -> None:
    assert len(rule.explanation) >= 40 or CHINESE.search(rule.explanation)
    headings = ["## What it finds", "## Why it matters", "## What it cannot know"]
    assert rule.kind != "check" or [one for one in headings if one not in rule.explanation] == []


def test_evidence_stands_where_it_is_cited(vector: Vector) -> None:
    lines = vector.text.split("\n")
    origins = [
        one.origin for result in pasted(vector.text).results for found in result.findings for one in found.evidence
    ]
    for origin in origins:
        assert 1 <= origin.line <= len(lines)
        shared = [sum(word in line for word in set(origin.quote.split())) for line in lines]
        assert shared[origin.line - 1] == max(shared) > 0, origin
