from diag import scan
from diag.scan import Span
from diag.text import Line, split

LINES = list(split("a\nNVIDIA-SMI 1\nb\nc NVIDIA\nd"))


def test_every_literal_gets_all_lines_that_hold_it():
    found = scan.find(LINES, ["NVIDIA", "NVIDIA-SMI", "absent"])
    assert found == {"NVIDIA": [LINES[1], LINES[3]], "NVIDIA-SMI": [LINES[1]]}


def test_literals_are_not_patterns():
    assert scan.find([Line(1, "a.b"), Line(2, "axb")], ["a.b"]) == {"a.b": [Line(1, "a.b")]}


def test_hits_are_capped():
    lines = (Line(number, "x") for number in range(1, scan.HITS_CAP + 100))
    assert len(scan.find(lines, ["x"])["x"]) == scan.HITS_CAP


def test_spans_may_overlap_and_end_behind_the_text():
    cuts = dict(scan.cut(LINES, [Span(1, 3), Span(2, 2), Span(4, 99), Span(50, 60)]))
    assert [line.number for line in cuts[Span(1, 3)]] == [1, 2, 3]
    assert [line.number for line in cuts[Span(2, 2)]] == [2]
    assert [line.number for line in cuts[Span(4, 99)]] == [4, 5]
    assert Span(50, 60) not in cuts


def test_spans_that_touch_are_merged():
    assert scan.merged([Span(5, 6), Span(1, 2), Span(3, 4), Span(9, 9)]) == [Span(1, 6), Span(9, 9)]
