import time

import pytest
from held import LOADED
from hypothesis import given
from hypothesis import strategies as st

from diag.symptoms import LINE_CAP, Ratio, Symptoms, compiled, literal, search

EXPRESSIONS = sorted({one for check in LOADED.checks.values() if check.symptoms for one in check.symptoms.any})
UNWANTED = sorted({one for check in LOADED.checks.values() if check.symptoms for one in check.symptoms.none})
BOUND = 10.0
"""Seconds for all expressions on one hostile line: many times what it takes, far less than what would be quadratic."""


@pytest.mark.parametrize(
    ("expression", "held"),
    [
        ("out of memory", "out of memory"),
        (r"allocate (?P<size>\d+) MiB, which is", " MiB, which is"),
        (r"NCCL WARN \w+ failed", "NCCL WARN "),
        (r"libfoo\.so\.\d+: cannot", "libfoo.so."),
        ("colou?r of things", "r of things"),
        (r"[^\]x]{1,9}] tail", "] tail"),
        ('say "hello world" and go', "hello world"),
        (r"a{2,3}bcdefg", "bcdefg"),
        (r"(?:one|two) \(three\) four", " (three) four"),
        (r"[]x]12345", "12345"),
    ],
)
def test_the_literal_is_the_longest_that_must_be_there(expression, held):
    assert literal(expression) == held


@pytest.mark.parametrize(
    "expression", ["abcdef|ghijkl", r"\d+ \w+", "(?:all of it in a group)", "abc", "", "ab*cd*ef*"]
)
def test_an_expression_without_a_literal_is_refused(expression):
    with pytest.raises(ValueError, match="expression"):
        literal(expression)


PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_every_match_of_an_expression_holds_its_literal(part):
    texts = [text for check in LOADED.checks.values() for text in check.fires]
    for expression in EXPRESSIONS[part::PARTS]:
        held, search = literal(expression), compiled(expression).search
        lines = (line for text in [one for one in texts if held not in one][::40] for line in text.splitlines())
        assert [(expression, line) for line in lines if search(line)] == []


@given(st.text(alphabet='abc()[]{}|?*+.\\^$"<>&,0189-', max_size=30))
def test_no_expression_breaks_the_search_for_its_literal(expression):
    try:
        held = literal(expression)
    except ValueError:
        return
    assert len(held) >= 5


def test_no_line_is_hostile_to_any_expression():
    start = time.perf_counter()
    for expression in EXPRESSIONS:
        held = literal(expression)
        near = held[:-1] * (40_000 // len(held))
        for line in ((held * 20_000)[:100_000], f"{near}{' ' * 30_000}{held}{'a' * 30_000}", held + "/a" * 50_000):
            search(expression, line)
    for expression in UNWANTED:
        compiled(expression).search("/a. (" * 20_000)
    assert time.perf_counter() - start < BOUND


def test_a_match_is_found_far_out_in_a_long_line():
    line = "x" * 10 * LINE_CAP + "needle in 42 stacks" + "y" * 10 * LINE_CAP
    found = search(r"needle in (?P<count>\d+) stacks", line)
    assert found is not None
    assert found.groupdict() == {"count": "42"}


NEAR = ["before", "the line", "after"]


@pytest.mark.parametrize(
    ("symptoms", "stands"),
    [
        (Symptoms(any=("the line",)), True),
        (Symptoms(any=("the line",), contains=("before", "after")), True),
        (Symptoms(any=("the line",), contains=("before", "elsewhere")), False),
        (Symptoms(any=("the line",), contains_any=("elsewhere", "after")), True),
        (Symptoms(any=("the line",), contains_any=("elsewhere", "nowhere")), False),
        (Symptoms(any=("the line",), none=("^aft",)), False),
        (Symptoms(any=("the line",), ratio=Ratio(of="free", to="total", below=0.5)), True),
        (Symptoms(any=("the line",), ratio=Ratio(of="free", to="total", above=0.5)), False),
        (Symptoms(any=("the line",), ratio=Ratio(of="free", to="nothing", below=0.5)), False),
        (Symptoms(any=("the line",), ratio=Ratio(of="free", to="zero", below=0.5)), False),
        (Symptoms(any=("the line",), ratio=Ratio(of="free", to="word", below=0.5)), False),
    ],
)
def test_what_stands_near_and_the_numbers_decide(symptoms, stands):
    assert symptoms.stand(NEAR, {"free": "4.2", "total": "79.1", "zero": "0", "word": "many"}) is stands


@pytest.mark.parametrize(
    "expression", ["(unclosed parenthesis", r"look(?=ahead) here", r"(same) \1 again", "a{2000} more"]
)
def test_an_expression_that_takes_more_than_linear_time_is_refused(expression):
    with pytest.raises(Exception, match=r"."):
        Symptoms(any=(expression,)).check()


@pytest.mark.parametrize(
    "line", ["got &quot;a&quot; &lt; 3 &amp; ended", '{"msg": "got \\"a\\" < 3 & ended"}', 'got "a" < 3 & ended']
)
def test_the_escapes_of_pages_and_of_json_are_seen_through(line):
    assert search('got "(?P<what>\\w)" < \\d & ended', line).groupdict() == {"what": "a"}


def test_what_only_looks_like_an_escape_is_text():
    assert search("at&t; ended", "at&t; ended")
    assert search("got &quot; ended", "got &quot; ended")
