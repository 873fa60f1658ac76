"""Every format is safe with hostile text and right with none."""

import json

import pytest

from diag.capture import Held
from diag.engine import examine
from diag.plugins import bundled, load
from diag.render import Look, formats, render
from diag.report import Judged, Source, assemble
from diag.sources import Paste
from diag.text import decode

LOADED = load([bundled()])
HOSTILE = """\
PyTorch version: 2.4.0+cu121
CUDA used to build PyTorch: 12.1
Is CUDA available: False
GPU models and configuration: GPU 0: """
NAMES = {
    "escape": "NVIDIA \x1b]0;owned\x07\x1b[2J \x9b31m A100",
    "markdown": "NVIDIA ``` </code> [x](http://y) **bold** | `tick` A100",
    "html": "NVIDIA <script>alert(1)</script> A100",
    "wide": "NVIDIA 加速器 " * 40,
}


def report(name: str, language="en"):
    raw = (HOSTILE + NAMES[name] + "\n").encode()
    done = examine(Paste("x", Held(decode(raw))).captures(()), LOADED)
    judged = Judged(done.facts, done.results, done.captures)
    source = Source(kind="paste", name="x")
    return assemble(judged, LOADED.checks, language=language, tool="0", command="c", source=source)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", formats(LOADED.templates))
def test_no_control_character_leaves_in_any_format(name, form):
    text = render(report(name), form, LOADED.templates)
    assert not [sign for sign in text if (ord(sign) < 32 and sign != "\n") or 127 <= ord(sign) < 160]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [20, 80, 200])
def test_no_line_is_wider_than_the_terminal_but_for_words_that_cannot_be_cut(name, width):
    text = render(report(name), "terminal", LOADED.templates, Look(width=width))
    assert "torch/device-unavailable" in text.replace("\n", "").replace(" ", "") or width < 40
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width + 1


def test_colours_only_where_asked_for():
    assert "\x1b[" in render(report("html"), "terminal", LOADED.templates, Look(80, colour=True))
    assert "\x1b[" not in render(report("html"), "terminal", LOADED.templates, Look(80, colour=False))


def test_markdown_takes_hostile_text_literally():
    text = render(report("html"), "markdown", LOADED.templates)
    assert "\\<script\\>" not in text
    assert "`" in text.split("<script>")[0].rpartition("\n")[2]


def test_json_is_the_document():
    document = json.loads(render(report("wide"), "json", LOADED.templates))
    assert document["schema"] == "diag/report/1"
