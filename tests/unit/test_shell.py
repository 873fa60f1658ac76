"""A word of a text stays one word in a command, whatever it holds; a piece that diag wrote is read as it is."""

import subprocess

import pytest

from diag.capture import Held
from diag.check import filled
from diag.engine import examine
from diag.plugins import bundled, load
from diag.report import Judged, Source, assemble
from diag.shell import Shell, spelled
from diag.sources import Paste

WORDS = [
    "x; rm -rf ~",
    "$(id)",
    "`id`",
    "a'b",
    'a"b',
    "a\\",
    "$HOME",
    "a  b",
    "*",
    "!x",
    "&& id",
    "# no",
    "~",
    "'$(id)'",
]
PLACES = [
    "printf %s {word}",
    "printf %s pre{word}",
    'printf %s "{word}"',
    "printf %s '{word}'",
    "printf %s 'it'\\''s {word}'",
    'printf %s "$(printf %s {word})"',
    "printf %s \"$(printf %s '{word}')\"",
    'printf %s "it\'s (\\"{word}"',
    "(printf %s {word})",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("word", WORDS)
def test_a_shell_reads_a_word_as_it_was_told(place, word):
    said = [
        subprocess.run(("bash", "-c", command), capture_output=True, text=True, check=True).stdout
        for command in (spelled(place, {"word": word}), spelled(place, {"word": "WORD"}))
    ]
    assert said[0] == said[1].replace("WORD", word)


@pytest.mark.parametrize("place", ["pip install {it}", 'pip install "{it}"', "'{it}'"])
def test_what_needs_no_quotes_gets_none(place):
    assert spelled(place, {"it": "torch==2.9.1+cu128"}) == place.replace("{it}", "torch==2.9.1+cu128")
    assert spelled('pip install "{it}"', {"it": "a>=1,<2"}) == 'pip install "a>=1,<2"'


def test_a_piece_that_diag_wrote_is_read_as_it_is():
    assert spelled("for i in {ids}; do", {"ids": Shell("0 1"), "other": "2"}) == "for i in 0 1; do"
    assert spelled("{a} {b} {c}", {"a": "{b}", "b": 1}) == "'{b}' 1 {c}"


def test_a_program_in_quotes_takes_names_alone():
    program = 'python3 -c "import {module}" {module}'
    assert spelled(program, {"module": "torch"}) == 'python3 -c "import torch" torch'
    assert spelled(program, {"module": "os;x()"}) == "python3 -c \"import {module}\" 'os;x()'"


@pytest.mark.parametrize("fill", [spelled, filled])
def test_no_word_ends_a_line_or_hides_one(fill):
    said = fill("it is {word}.", {"word": "a\x1b[2Jb\nc\u202ed\u2066e\x9b"})
    assert said.replace("'", "") == "it is ab cde."


def test_the_name_of_a_model_starts_nothing():
    loaded = load([bundled()])
    text = "The model `x;$(touch${IFS}y)` does not exist."
    done = examine(Paste("x", Held(text)).captures(()), loaded, [loaded.checks["engine/model-name-not-served"]])
    source = Source(kind="paste", name="x")
    found = assemble(
        Judged(done.facts, done.results), loaded.checks, language="en", tool="0", command="c", source=source
    )
    commands = [one for remedy in found.findings[0].remedies for one in remedy.commands if "served" in one]
    assert commands
    assert all(one.endswith(" --served-model-name 'x;$(touch${IFS}y)'") for one in commands)
