import io

import pytest

from diag import text

BODIES = {
    b"": [""],
    b"a\nb\r\nc": ["a", "b", "c"],
    b"a\n": ["a", ""],
    b"\xff\xfe": [""],
    b"\xef\xbb\xbfx": ["x"],
    "ä\nü".encode("utf-16-le").join([b"\xff\xfe", b""]): ["ä", "ü"],
    b"caf\xe9\n": ["caf\\xe9", ""],
    b"\x1b[31mred\x1b[0m \x1b]0;title\x07x": ["red x"],
}


@pytest.mark.parametrize("raw", BODIES)
def test_a_stream_and_a_string_give_the_same_lines(raw: bytes):
    streamed = [line.text for line in text.stream(io.BufferedReader(io.BytesIO(raw)))]
    assert streamed == [line.text for line in text.split(text.decode(raw))] == BODIES[raw]


def test_a_line_without_end_comes_in_bounded_pieces_of_one_number():
    raw = io.BufferedReader(io.BytesIO(b"x" * 200_000 + b"\nnext"))
    lines = list(text.stream(raw))
    assert max(len(line.text) for line in lines) <= text.LINE_CAP
    assert {line.number for line in lines[:-1]} == {1}
    assert lines[-1] == text.Line(2, "next")


def test_a_stream_can_be_read_twice_when_it_is_utf_16():
    raw = io.BufferedReader(io.BytesIO("\ufeffa\nb".encode("utf-16-le")))
    first = list(text.stream(raw))
    raw.seek(0)
    assert list(text.stream(raw)) == first
