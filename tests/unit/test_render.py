"""Every format is safe with hostile text and right with none."""

import json
import re
from pathlib import Path
from statistics import median
from typing import get_args

import pytest
from held import LOADED
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace
from told import text_of

from diag.capture import Held
from diag.cli.emit import write
from diag.engine import examine
from diag.facts import CollectiveCompared, CollectiveVerdict, RankTiming
from diag.facts.collective import Lack, Standing
from diag.render import Look, formats, render
from diag.render.collectives import figure
from diag.render.words import WORDS
from diag.report import Judged, Source, assemble
from diag.sources import Paste
from diag.text import decode
from diag.unexplained import Excerpt, Unexplained

SHOWN = {*("inline", "text", "code_inline", "code_block", "fence", "softbreak", "text_special", "html_block")} | {
    f"{name}_{end}"
    for name in ("heading", "paragraph", "bullet_list", "list_item", "strong")
    for end in ("open", "close")
}
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
    "calling": "NVIDIA A100 @octocat #123 o/r#4 !56 GH-7 a@b.cd $x$ :tada: https://evil.test/?a_b www.evil.test",
    "image": "NVIDIA A100 ![x](http://evil.test/y.png) <img src=//evil.test> [y](javascript:z) &lt;b&gt; <!-- --> ]]>",
    "runner": "::error::owned ##[error]owned ##vso[task.setvariable variable=x]y",
}
CALLING = re.compile(r"@\w|#\d|://|www\.|GH-\d|:tada:|\$x")


def report(name: str, language="en"):
    return report_of(HOSTILE + NAMES[name] + "\n", language)


def report_of(text: str, language="en"):
    raw = text.encode()
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


def markdown(text: str) -> list[Token]:
    """The pieces that a reader of Markdown sees, code left out."""
    blocks = MarkdownIt("commonmark").enable("table").parse(text)
    return [*blocks, *(piece for block in blocks for piece in block.children or ())]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["markdown", "issue"])
def test_markdown_loads_nothing_and_calls_nobody(name, form):
    made = report(name)
    rest = Unexplained(errors=(Excerpt(capture=NAMES[name], line=1, quote=NAMES[name]),), templates=())
    said = tuple(replace(one, summary=f"{one.summary} {NAMES[name]}") for one in made.findings)
    made = replace(
        made, unexplained=rest, findings=said, incomplete=(NAMES[name],), source=Source(kind="paste", name=NAMES[name])
    )
    pieces = markdown(render(made, form, LOADED.templates))
    assert said
    assert {one.type for one in pieces} <= SHOWN
    assert not [one.content for one in pieces if one.type == "text" and CALLING.search(one.content)]
    notes = [one.content for one in pieces if one.type == "html_block"]
    assert all(one.startswith(("<!-- One sentence: what", "<!-- The twenty lines before")) for one in notes)


def test_a_command_in_markdown_stays_code():
    made = report("html")
    remedy = replace(made.findings[0].remedies[0], commands=("a\r@x", "b\n# c\n\n<img>"))
    made = replace(made, findings=(replace(made.findings[0], remedies=(remedy,)),))
    pieces = markdown(render(made, "markdown", LOADED.templates))
    assert "a\n@x\nb\n# c\n\n<img>\n" in [one.content for one in pieces if one.type == "code_block"]


RING = LOADED.checks["collectives/below-baseline"].fires[0]
SWEEP = text_of("collectives/nccl-h100-mpirun.txt")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("text", "finds", "tables"), [(RING, True, 1), (SWEEP, False, 2)])
def test_markdown_keeps_what_was_measured_in_a_block_of_its_own(text, finds, tables, language):
    made = report_of(text, language)
    assert bool(made.findings) is finds
    blocks = [
        one for one in markdown(render(made, "markdown", LOADED.templates)) if one.block and "busbw" in one.content
    ]
    assert [(one.type, one.level) for one in blocks] == [("fence", 0)]
    assert blocks[0].content.count("busbw") == tables
    assert "16 GiB" in blocks[0].content


def test_nothing_that_was_measured_ends_its_block_in_markdown():
    made = report_of(RING)
    rows = [{**one, "device": "``` x ````"} for one in made.facts["Collective"]]
    text = render(replace(made, facts={**made.facts, "Collective": rows}), "markdown", LOADED.templates)
    assert len([one for one in markdown(text) if one.type == "fence"]) == 1
    assert not [one for one in markdown(text) if one.type == "inline" and "busbw" in one.content]


@pytest.mark.parametrize("command", ["env-check", "comm", "device"])
@pytest.mark.parametrize("undecided", [(), ("a line",)])
def test_markdown_has_a_part_on_versions_where_it_says_something_of_them(command, undecided):
    verdict = {"origin": {"capture": "x"}, "verdict": "unknown", "undecided": undecided}
    made = replace(report("html"), command=command, facts={"MatrixVerdict": [verdict]})
    text = render(made, "markdown", LOADED.templates)
    assert {"## Versions" in text, "a line" in text} == {command == "env-check" and bool(undecided)}


ISOLATED = Path(__file__).with_name("isolation")


@pytest.mark.parametrize("form", ["terminal", "markdown"])
@pytest.mark.parametrize(("language", "nobody"), [("en", "nobody is to blame"), ("zh", "未发现责任方")])
def test_an_isolation_that_blames_nobody_says_so_with_its_threshold(form, language, nobody):
    made = report_of((ISOLATED / "none.json").read_text("utf-8"), language)
    (verdict,) = made.told(CollectiveVerdict)
    text = render(made, form, LOADED.templates)
    said = [line for line in text.splitlines() if line.startswith(nobody)]
    assert len(said) == 1
    assert f" {verdict.threshold:.1f} " in said[0]
    assert "12%" in said[0]
    assert not re.search(r"\d!", text)
    assert text.index(said[0]) > text.rindex("1 MiB")


@pytest.mark.parametrize("name", ["none", "late", "link"])
def test_what_each_rank_took_by_itself_is_shown(name):
    made = report_of((ISOLATED / f"{name}.json").read_text("utf-8"))
    text = render(made, "terminal", LOADED.templates)
    for one in made.told(RankTiming):
        alone, stay = figure(min(one.alone_us)), figure(median(one.in_call_us))
        assert re.search(rf"^ +{one.rank} +{re.escape(alone)} +{re.escape(stay)}$", text, re.MULTILINE)
    assert ("nobody is to blame" in text) is (name == "none")


def test_of_many_ranks_those_that_stand_out_are_shown():
    made = report_of((ISOLATED / "none.json").read_text("utf-8"))
    origin = {"capture": "x"}
    many = [
        {"origin": origin, "rank": rank, "alone_us": [100.0 + (rank == 70)], "in_call_us": [500.0 - (rank == 90)]}
        for rank in range(100)
    ]
    text = render(replace(made, facts={"RankTiming": many}), "terminal", LOADED.templates)
    assert re.search(r"^ +70 +101 +500$", text, re.MULTILINE)
    assert re.search(r"^ +90 +100 +499$", text, re.MULTILINE)
    assert "… 87 others are left out" in text
    assert "nobody is to blame" not in text


def rows_of(text: str, size: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(rf" +all_reduce +{size} ", line)]


@pytest.mark.parametrize(
    ("language", "wrong", "finding"), [("en", "WRONG (7)", "finding 1"), ("zh", "结果错误 (7)", "见第 1 项")]
)
def test_a_row_with_wrong_data_is_shown_and_marked_however_small(language, wrong, finding):
    first = "12.90    0.00    0.00      0"
    spoilt = "12.90    0.00    0.00      7"
    made = report_of(SWEEP.replace(first, spoilt), language)
    assert made.findings[0].id == "collectives/wrong-result"
    rows = rows_of(render(made, "terminal", LOADED.templates), "8 B")
    assert [(wrong in row, finding in row) for row in rows] == [(True, True), *[(False, False)] * (len(rows) - 1)]
    assert not rows_of(render(made, "terminal", LOADED.templates), "16 B")


def test_a_row_on_which_a_finding_rests_is_shown_and_marked_however_small():
    made = report_of(RING)
    (named,) = {one.says for one in made.findings[0].evidence}
    last = made.facts["Collective"][-1]
    many = [{**last, "bytes": 2**20 + size, "origin": {**last["origin"], "quote": "x"}} for size in range(100)]
    text = render(replace(made, facts={"Collective": [*made.facts["Collective"], *many]}), "terminal", LOADED.templates)
    shown = [line for line in text.splitlines() if line.startswith("  all_reduce") and "finding 1" in line]
    assert len(shown) == sum(one.says() == named for one in made.collectives) == 1


NOTHING = {"en": "compared with nothing: the devices are not told", "zh": "未与任何结果对比：未说明是什么设备"}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_what_results_were_compared_with_is_said_or_that_it_was_nothing(form, language):
    text = render(report_of(SWEEP, language), form, LOADED.templates)
    assert NOTHING[language] in text
    assert text.index(NOTHING[language]) > text.index("16 GiB")
    made = report_of(RING, language)
    (one,) = made.told(CollectiveCompared)
    said = f"{figure(one.value)} GB/s"
    line = next(line for line in render(made, form, LOADED.templates).splitlines() if said in line)
    assert f"H100 SXM {figure(one.busbw_gbps)} GB/s" in line
    assert f"= {one.ratio:.0%}" in line


def test_every_standing_and_difference_of_a_row_has_words():
    known = [f"standing {one}" for one in get_args(Standing)] + [f"lacks {one}" for one in get_args(Lack) if one]
    known += [f"differs {one}" for one in ("size", "link", "nodes", "dtype")]
    assert all(name in words for words in WORDS.values() for name in known)


@pytest.mark.parametrize("form", formats(LOADED.templates))
def test_no_line_is_an_order_to_a_runner(form, capsys):
    hostile = replace(
        report("runner"), source=Source(kind="paste", name=NAMES["runner"]), incomplete=(NAMES["runner"],)
    )
    write(f"{NAMES['runner']}\n  {NAMES['runner']}\n{render(hostile, form, LOADED.templates)}")
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert not re.search(r"^\s*::|##\[|##vso\[", shown, re.MULTILINE)


def test_json_is_the_document():
    document = json.loads(render(report("wide"), "json", LOADED.templates))
    assert document["schema"] == "diag/report/1"
    hostile = replace(report("wide"), incomplete=(NAMES["runner"],))
    assert json.loads(render(hostile, "json", LOADED.templates))["incomplete"] == [NAMES["runner"]]
