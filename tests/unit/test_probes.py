"""Expected facts: what each saved text tells, all of it and nothing else, however it was pasted."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from told import CAPTURES, LOADED, SOURCES, examined, facts_of, reading, text_of, told

from diag import sources
from diag.facts import Facts

NAMES = [saved["file"] for saved in SOURCES]
GREEN, RESET = "\x1b[32m", "\x1b[0m"

each = pytest.mark.parametrize("saved", SOURCES, ids=NAMES, scope="module")


def by_line(change: Callable[[str], str]) -> Callable[[str], bytes]:
    return lambda whole: "\n".join(map(change, whole.split("\n"))).encode()


WAYS: dict[str, Callable[[str], bytes]] = {
    "indented": by_line(lambda line: f"  {line}"),
    "padded": by_line(lambda line: line.ljust(150)),
    "CRLF": by_line(lambda line: f"{line}\r"),
    "coloured": by_line(lambda line: f"{GREEN}{line}{RESET}"),
    "byte-order mark": lambda whole: whole.encode("utf-8-sig"),
    "UTF-16": lambda whole: whole.encode("utf-16"),
    "fenced": lambda whole: f"It fails:\n```text\n{whole}\n```\nThanks\n".encode(),
    "details": lambda whole: f"<details>\n<summary>env</summary>\n\n```\n{whole}\n```\n</details>\n".encode(),
    "quoted": by_line(lambda line: f"> {line}"),
    "quoted twice": by_line(lambda line: f"> > {line}"),
    "compose": by_line(lambda line: f"vllm-1  | {line}"),
    "compose, named": by_line(lambda line: f"scalellm          | {line}"),
}


def expected(saved: dict[str, Any]) -> dict[str, Any]:
    tells: dict[str, Any] = saved["tells"]
    return tells


def names(saved: dict[str, Any]) -> list[str]:
    return [name for name in saved["tells"].get("packages", ()) if name != "count"]


def piped(raw: bytes) -> Facts:
    return facts_of(sources.piped(io.BytesIO(raw)).captures(()))


def test_each_text_is_described() -> None:
    assert sorted(path.relative_to(CAPTURES).as_posix() for path in CAPTURES.rglob("*.txt")) == sorted(NAMES)
    assert [saved["file"] for saved in SOURCES if "url" not in saved and "run by us" not in saved["what"]] == []


@each
def test_text_tells_these_facts_and_no_others(saved: dict[str, Any]) -> None:
    found = examined(text_of(saved["file"]))
    assert told(found.facts, names(saved)) == expected(saved)
    assert found.facts.scopes() == ("",)
    assert found.broken == ()


@each
def test_rules_find_these_faults_and_no_others(saved: dict[str, Any]) -> None:
    found = examined(text_of(saved["file"]))
    faults = [one.check for one in found.results if one.status in ("fail", "crash")]
    # What entries say of a text is proved by their own vectors, and by the reports with accepted answers.
    assert sorted(id for id in faults if not is_entry(id) or id in saved["finds"]) == sorted(saved["finds"])


def is_entry(id: str) -> bool:
    return LOADED.checks[id].kind == "entry"


def test_healthy_texts_are_told_to_be_healthy() -> None:
    healthy = [one for one in SOURCES if one["what"].startswith("healthy") or "installation of" in one["what"]]
    assert len(healthy) >= 12
    assert [one["file"] for one in healthy if one["finds"]] == []


SHOWN = [(saved, key) for saved in SOURCES for key in saved.get("shows", ())]


@pytest.mark.parametrize(("saved", "key"), SHOWN, ids=[f"{saved['file']}-{key}" for saved, key in SHOWN])
def test_each_probe_reads_the_outputs_it_is_shown_with(saved: dict[str, Any], key: str) -> None:
    assert key in reading(text_of(saved["file"]))


def turn(saved: dict[str, Any], ways: Sequence[str]) -> Sequence[str]:
    """One way in four, another one for each next text; all of them where more examples are asked for."""
    return ways if "DIAG_EXAMPLES" in os.environ else ways[NAMES.index(saved["file"]) % 4 :: 4]


@each
def test_the_way_of_pasting_changes_no_fact(saved: dict[str, Any]) -> None:
    text = text_of(saved["file"])
    for way in turn(saved, list(WAYS)):
        assert (way, told(piped(WAYS[way](text)), names(saved))) == (way, expected(saved))


@each
def test_nor_does_the_way_of_saving(saved: dict[str, Any], tmp_path: Path) -> None:
    text = text_of(saved["file"])
    for way in turn(saved, ("CRLF", "byte-order mark", "UTF-16", "coloured")):
        (tmp_path / "saved").write_bytes(WAYS[way](text))
        found = facts_of(sources.paste(tmp_path / "saved").captures(()))
        assert (way, told(found, names(saved))) == (way, expected(saved))


@each
def test_facts_stand_where_they_are_said_to(saved: dict[str, Any]) -> None:
    lines = text_of(saved["file"]).split("\n")
    kinds = {kind for probe in LOADED.probes.values() for kind in probe.tells}
    for fact in examined(text_of(saved["file"])).facts:
        if type(fact) in kinds and fact.origin.line and fact.origin.quote:
            assert fact.origin.quote[:40] in lines[fact.origin.line - 1]
