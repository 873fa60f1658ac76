import io
import tracemalloc
from contextlib import nullcontext

import pytest

from diag import cache, scan, text
from diag.capture import Bare, Held, InFile
from diag.scan import Signatures, Span
from diag.text import Line

TEXT = "a\nNVIDIA-SMI 1\nb\nc NVIDIA\nd"
LINES = list(text.split(TEXT))


class Long(InFile):
    """A text in a file, so that a line may be longer than a block of it."""

    def __init__(self, content: str) -> None:
        super().__init__(lambda: nullcontext(io.BytesIO(content.encode())))


def found(content: str, *literals: str) -> dict[str, list[Line]]:
    return Signatures(literals).find(Held(content)).hits


def test_every_literal_gets_all_lines_that_hold_it():
    hits = found(TEXT, "NVIDIA", "NVIDIA-SMI", "absent")
    assert hits == {"NVIDIA": [LINES[1], LINES[3]], "NVIDIA-SMI": [LINES[1]]}


def test_literals_are_not_patterns():
    assert found("a.b\naxb", "a.b") == {"a.b": [Line(1, "a.b")]}


def test_a_line_that_holds_a_literal_twice_is_one_hit():
    assert found("xx x\nx", "x") == {"x": [Line(1, "xx x"), Line(2, "x")]}


def test_hits_are_capped_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(scan, "WASTED_CAP", 10)
    monkeypatch.setattr(text, "BLOCK", 1_000)
    content = "x\n" * (scan.HITS_CAP + 10_000) + "last x"
    hits = found(content, "x", "last")
    assert len(hits["x"]) == scan.HITS_CAP
    assert hits["last"] == [Line(scan.HITS_CAP + 10_001, "last x")]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_numbers_are_those_of_the_whole_text_however_it_is_cut(monkeypatch, size):
    monkeypatch.setattr(text, "BLOCK", size)
    scanned = Signatures(["NVIDIA"]).find(Held(TEXT, first=5))
    assert [line.number for line in scanned.hits["NVIDIA"]] == [6, 8]
    cuts = scanned.cut([Span(5, 6), Span(8, 9)])
    assert [line.text for line in cuts[Span(5, 6)]] == ["a", "NVIDIA-SMI 1"]
    assert [line.text for line in cuts[Span(8, 9)]] == ["c NVIDIA", "d"]


def test_a_very_long_line_is_shown_around_its_hit():
    hits = found("x" * 10**6 + "needle" + "y" * 10**6, "needle")
    assert "needle" in hits["needle"][0].text
    assert len(hits["needle"][0].text) <= text.LINE_CAP


@pytest.mark.parametrize("before", range(4))
def test_a_long_line_is_cut_between_characters(before):
    content = "x" * before + "\u4e2d\U0001f600" * 10**5 + "needle" + "\ufffd" * 10**5
    scanned = Signatures(["needle"]).find(Held(content))
    shown = [scanned.hits["needle"][0].text, *(line.text for line in scanned.cut([Span(1, 1)])[Span(1, 1)])]
    assert all(one in content for one in shown)
    assert "".join(shown[1:]) == content


def test_of_many_lines_a_literal_gets_but_a_few_and_they_are_cut(monkeypatch):
    monkeypatch.setattr(scan, "KEPT_CAP", 10_000)
    monkeypatch.setattr(text, "BLOCK", 10_000)
    hits = found(f"needle {'x' * 100}\n" * 1_000 + f"other {'y' * 10_000}\n" * 100, "needle", "other")
    assert scan.FEW < len(hits["needle"]) < 200
    assert len(hits["other"]) == scan.FEW
    assert max(len(line.text) for line in hits["other"]) <= scan.CUT


def test_a_line_over_many_blocks_is_cut_to_as_many_pieces_as_it_has_when_it_is_read(monkeypatch):
    monkeypatch.setattr(scan, "LINE_PIECES", 5)
    monkeypatch.setattr(text, "BLOCK", 100_000)
    content = "first\n" + "needle " * 200_000 + "\nlast"
    cut = Signatures(["needle"]).find(Long(content)).cut([Span(1, 3)])[Span(1, 3)]
    assert [line.number for line in cut] == [1, *[2] * 5, 3]


def test_lines_come_without_the_marks_of_whoever_passed_them_on():
    quoted = Bare(Held("> needle\n> {}\nweb-1  | needle 2\n" + '{"log":"say \\"needle\\"\\n","stream":"stderr"}'))
    hits = Signatures(["needle"]).find(quoted).hits["needle"]
    assert [line.text for line in hits] == ["needle", "needle 2", 'say "needle"']


def test_spans_may_overlap_and_end_behind_the_text():
    scanned = Signatures(["NVIDIA"]).find(Held(TEXT))
    cuts = scanned.cut([Span(1, 3), Span(2, 2), Span(4, 99), Span(50, 60)])
    assert [line.number for line in cuts[Span(1, 3)]] == [1, 2, 3]
    assert [line.number for line in cuts[Span(2, 2)]] == [2]
    assert [line.number for line in cuts[Span(4, 99)]] == [4, 5]
    assert Span(50, 60) not in cuts


@pytest.fixture(autouse=True)
def _forgotten():
    scan._kept.cache_clear()


def test_what_is_kept_is_not_compiled_again(tmp_path, monkeypatch):
    kept = tmp_path / "diag" / "scan"
    Signatures(["one", "longer"], kept)
    scan._kept.cache_clear()
    monkeypatch.setattr(scan, "_compiled", None)
    assert set(Signatures(["one", "longer"], kept).find(Held("one is longer")).hits) == {"one", "longer"}


def test_what_is_searched_for_is_kept_and_a_damaged_file_is_made_anew(tmp_path):
    kept = tmp_path / "diag" / "scan"
    Signatures(["one", "two"], kept)
    whole = kept.read_bytes()
    for spoiled in (b"", whole[:40], whole[:-1] + b"?", whole[: cache.DIGEST] + b"\0" * 200):
        kept.write_bytes(spoiled)
        scan._kept.cache_clear()
        assert Signatures(["one", "two"], kept).find(Held("a two")).hits == {"two": [Line(1, "a two")]}
        assert kept.read_bytes() == whole
    # Whole by its digest, and no search that this processor or version knows.
    cache.write(kept, whole[cache.DIGEST : cache.DIGEST + scan.KEY] + b"\0" * 500)
    scan._kept.cache_clear()
    assert Signatures(["one", "two"], kept).find(Held("two")).hits
    assert Signatures(["three"], kept).find(Held("two three")).hits == {"three": [Line(1, "two three")]}


def test_memory_does_not_grow_with_the_text():
    class Log:
        first = 1

        def blocks(self):
            return (text.Block(0, 10**6, b"INFO all is well with it\n" * 40_000) for _ in range(50))

        def shown(self, line):
            return text.shown(line)

    tracemalloc.start()
    assert len(Signatures(["well"]).find(Log()).hits["well"]) == scan.HITS_CAP
    assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    tracemalloc.stop()
