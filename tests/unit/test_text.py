import io

import pytest

from diag import text
from diag.reading import pieces

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


def streamed(raw: io.BytesIO) -> list[text.Line]:
    mark, encoding = text.encoding_of(raw.getvalue())
    if encoding != "utf-8":
        raw.seek(mark)
        raw = io.BytesIO(b"".join(text.utf8(pieces(raw), encoding)))
    return list(text.lines(text.read(raw), text.shown))


@pytest.mark.parametrize("raw", BODIES)
def test_a_stream_and_a_string_give_the_same_lines(raw: bytes):
    assert (
        [line.text for line in streamed(io.BytesIO(raw))]
        == [line.text for line in text.split(text.decode(raw))]
        == BODIES[raw]
    )


def test_a_line_without_end_comes_in_bounded_pieces_of_one_number():
    lines = streamed(io.BytesIO(b"x" * 200_000 + b"\nnext"))
    assert max(len(line.text) for line in lines) <= text.LINE_CAP
    assert {line.number for line in lines[:-1]} == {1}
    assert lines[-1] == text.Line(2, "next")


def test_a_stream_can_be_read_twice_when_it_is_utf_16():
    raw = io.BytesIO("\ufeffa\nb".encode("utf-16-le"))
    assert streamed(raw) == streamed(raw) == [text.Line(1, "a"), text.Line(2, "b")]


def test_what_word_processors_make_of_spaces_and_quotation_marks_is_undone():
    typeset = "CUDA\u00a0out\u202fof\u3000memory: \u2018a\u2019 \u201cb\u201d \u4e2d\uff1a\n"
    assert text.decode(typeset.encode()) == "CUDA out of memory: 'a' \"b\" \u4e2d\uff1a\n"
    [block] = text.read(io.BytesIO(typeset.encode()))
    assert block.text.decode() == text.decode(typeset.encode())
    assert (block.at, block.size) == (0, len(typeset.encode()))


@pytest.mark.parametrize(
    ("whole", "kept"),
    [
        ("ten  words", "ten  words"),
        ("password: hunter22", "password: …"),
        ("at the end X7y", "at the end …"),
        ("at the ends X7y", "at the …"),
        ('{"a":"b","c":"d"}', '{"a":"b", …'),
        ("abcdefghijklmnopq", "…"),
        ("从日志中读取的一行文字很长", "从日志中读取的一行文 …"),
    ],
)
def test_a_cut_halves_no_word(whole: str, kept: str):
    assert text.cut(whole, 10) == kept


@pytest.mark.parametrize("words", ["--api-key X7yX7yX7y ", "password: X7yX7yX7y ", "key=X7yX7yX7y "])
@pytest.mark.parametrize("shift", range(24))
def test_a_long_line_is_not_cut_within_a_word_or_behind_its_name(words: str, shift: int):
    line = b"." * shift + b" " + words.encode() * (2 * text.LINE_CAP // len(words))
    shown = list(text.pieces(1, line, text.shown))
    assert "".join(one.text for one in shown) == line.decode()
    assert len(shown) > 1
    assert all(one.text.startswith(words) for one in shown[1:-1])


@pytest.mark.parametrize(
    ("raw", "binary"),
    [
        (b"", False),
        (b"a\x01b", False),
        (b"\x01" * 60, True),
        (b"\x1b[31m" * 99, False),
        ("é".encode("latin-1") * 99, False),
    ],
)
def test_a_text_holds_few_control_characters(raw, binary):
    assert text.is_binary(raw) is binary
