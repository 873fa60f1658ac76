"""Every format names every finding, in either language, and the document keeps its schema."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import jsonschema
import msgspec
import pytest

from diag.check import Check
from diag.render import MODULES, Look, formats, render
from diag.report import Report

from .loaded import LANGUAGES, LOADED, RULES, alone, pasted, report

FORMS = formats(LOADED.templates)
SCHEMA: dict[str, Any] = msgspec.json.schema(Report)


def reports(rule: Check, language: str) -> list[Report]:
    return [report(alone(rule, text), language) for text in rule.fires]


def test_all_formats_are_there() -> None:
    assert set(MODULES) <= set(FORMS)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_each_finding_is_named(rule: Check) -> None:
    for form, one in product(FORMS, [one for language in LANGUAGES for one in reports(rule, language)]):
        text = render(one, form, LOADED.templates, Look())
        assert rule.id in {found.id for found in one.findings}
        assert [found.id for found in one.findings if found.id not in text] == []


@pytest.mark.parametrize("form", FORMS)
def test_all_findings_at_once_are_named(form: str) -> None:
    whole = report(pasted("\n".join(text for rule in RULES for text in rule.fires)))
    text = render(whole, form, LOADED.templates, Look(width=80, colour=form == "terminal"))
    assert len({found.id for found in whole.findings}) >= 5
    assert [found.id for found in whole.findings if found.id not in text] == []


def test_document_keeps_its_schema(rule: Check) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for one in [each for language in LANGUAGES for each in reports(rule, language)]:
        document = json.loads(render(one, "json", LOADED.templates))
        assert [error.message for error in validator.iter_errors(document)] == []
        assert msgspec.convert(document, Report) == one


def test_names_may_be_added_to_a_document_and_none_may_go() -> None:
    document = json.loads(render(report(pasted("")), "json", LOADED.templates))
    newer = {**document, "more": 1}
    assert msgspec.convert(newer, Report) == msgspec.convert(document, Report)
    assert not list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(newer))
    older = {name: document[name] for name in document if name != "verdict"}
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(older))
