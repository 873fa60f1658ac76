"""Every rule proves itself, speaks both languages, fills its wording, and cites what it saw where it saw it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product

from held import ROOTS

from diag.check import Check
from diag.facts import Text, Unavailable
from diag.finding import Finding
from diag.report import Report
from diag.selftest import proved

from .loaded import LANGUAGES, LOADED, RULES, Vector, alone, pasted, report

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


def wrong(holds: Callable[[Check], bool]) -> list[str]:
    """The rules of which something does not hold: it is asked of their words alone, which takes no test for each."""
    return [rule.id for rule in RULES if not holds(rule)]


def test_id_is_the_path_of_its_file() -> None:
    form = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(/[a-z0-9]+(-[a-z0-9]+)*)+")
    assert wrong(lambda rule: any((root / place_of(rule)).is_file() for root in ROOTS)) == []
    assert wrong(lambda rule: bool(form.fullmatch(rule.id))) == []


def place_of(rule: Check) -> str:
    folder = f"kb/matrix/{rule.id.removeprefix('matrix/').rpartition('/')[0]}.yaml"
    places = {"check": f"checks/{rule.id.replace('-', '_')}.py", "entry": f"kb/entries/{rule.id}.yaml"}
    return places.get(rule.kind, folder)


def test_wording_is_whole_in_both_languages() -> None:
    assert wrong(lambda rule: all(map(whole, wordings(rule)))) == []


def whole(wording: dict[str, str]) -> bool:
    spoken = set(wording) == set(LANGUAGES) and wording["en"].strip()
    return bool(spoken and CHINESE.search(wording["zh"]) and not CHINESE.search(wording["en"]))


def test_both_languages_have_the_same_fields() -> None:
    assert wrong(lambda rule: all(alike(*one.values()) for one in wordings(rule))) == []


def alike(one: str, other: str) -> bool:
    return sorted(FIELD.findall(one)) == sorted(FIELD.findall(other))


def test_title_needs_no_finding() -> None:
    assert wrong(lambda rule: not any("{" in rule.words[language]["title"] for language in LANGUAGES)) == []


def test_every_finding_is_said_in_full(rule: Check) -> None:
    told = list(findings(rule))
    assert told
    for found in told:
        remedies = rule.remedies_for(found)
        texts = [rule.words[language][part] for language in LANGUAGES for part in PARTS]
        texts += [text for one in remedies for text in (*one.title.values(), *one.commands, one.verify)]
        assert {field for text in texts for field in FIELD.findall(text)} <= set(found.values)
    for language, text in product(LANGUAGES, rule.fires):
        no_brace_is_left(report(alone(rule, text), language))
    has_a_way_out(rule, told)


def no_brace_is_left(told: Report) -> None:
    for found in told.findings:
        assert "{" not in f"{found.title}{found.summary}{found.cause}{[one.title for one in found.remedies]}"
        assert not any(FIELD.search(command) for one in found.remedies for command in one.commands)


def has_a_way_out(rule: Check, told: list[Finding]) -> None:
    assert rule.remedies
    assert all(rule.remedies_for(found) for found in told)
    assert {key for found in told for key in found.remedies} <= {one.key for one in rule.remedies}
    assert all(one.safety in ("safe", "disruptive", "manual") for one in rule.remedies)


def test_sources_are_addresses() -> None:
    assert wrong(lambda rule: bool(rule.sources)) == []
    assert [one for rule in RULES for one in rule.sources if not URL.match(one)] == []
    remedies = [one for rule in RULES for one in rule.remedies]
    assert [one.source for one in remedies if one.source and not URL.match(one.source)] == []


def test_explains_only_what_exists() -> None:
    assert wrong(lambda rule: set(rule.explains) <= set(LOADED.checks) - {rule.id}) == []


def test_somebody_tells_what_it_needs() -> None:
    told = {kind for one in (*LOADED.probes.values(), *LOADED.deductions) for kind in one.tells}
    told |= {type(one) for one in LOADED.references} | {Text, Unavailable}
    assert wrong(lambda rule: set(rule.needs) <= told) == []


def test_it_is_explained() -> None:
    headings = ["## What it finds", "## Why it matters", "## What it cannot know"]
    assert wrong(lambda rule: len(rule.explanation) >= 40 or bool(CHINESE.search(rule.explanation))) == []
    assert wrong(lambda rule: rule.kind != "check" or all(one in rule.explanation for one in headings)) == []


def test_evidence_stands_where_it_is_cited(vector: Vector) -> None:
    lines = vector.text.split("\n")
    origins = [
        one.origin for result in pasted(vector.text).results for found in result.findings for one in found.evidence
    ]
    for origin in origins:
        assert 1 <= origin.line <= len(lines)
        shared = [sum(word in line for word in set(origin.quote.split())) for line in lines]
        assert shared[origin.line - 1] == max(shared) > 0, origin
