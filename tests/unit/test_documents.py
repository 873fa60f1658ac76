"""The kept YAML: whatever happened to the cache, a document reads as if there were none."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import msgpack

from diag import cache as files
from diag import documents
from diag.documents import Documents
from diag.plugins import Shelf

TEXT = """\
fact: Reading
common: {checked: 2026-11-29, seen: 2026-11-29 12:30:00, source: "2026-11-29"}
rows:
  - {name: power, value: 1.5, ready: true, none: null, 7: seven}

  - {name: 温度, value: [1, 2]}
cases:
- id: one
"""
LINES = {"rows": [4, 6], "cases": [8]}
VALUE = {
    "fact": "Reading",
    "common": {"checked": "2026-11-29", "seen": "2026-11-29T12:30:00", "source": "2026-11-29"},
    "rows": [
        {"name": "power", "value": 1.5, "ready": True, "none": None, 7: "seven"},
        {"name": "温度", "value": [1, 2]},
    ],
    "cases": [{"id": "one"}],
}
ENTRY = """\
title: {en: It is lost, zh: 已丢失}
severity: error
text: [kernel-log]
symptoms: {any: [GPU is lost]}
cause: {en: The bus, zh: 总线}
remedies: [{title: {en: Reboot, zh: 重启}, safety: manual}]
sources: [{url: "https://example.org/1", seen: 2026-11-29}]
vectors:
  fires: [{text: GPU is lost, from: "https://example.org/1"}]
  silent: [{text: GPU is found, why: it is there}]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "home" / "diag" / "kb.msgpack"


@pytest.fixture
def unparsed(monkeypatch):
    """Whoever parses YAML from here on fails."""

    def parse(text):
        raise AssertionError("it was parsed")

    return lambda: monkeypatch.setattr(documents, "_parsed", parse)


def run(cache, *files):
    """What one run of diag reads, with what it keeps."""
    held = Documents(cache)
    contents = [held.read(one).content for one in files]
    held.keep()
    return contents


def sealed(pack):
    """A pack as it is written: behind what tells that it is whole."""
    return hashlib.blake2b(pack, digest_size=16).digest() + pack


def kept(cache):
    """What a cache holds, by the digests of the texts."""
    return msgpack.decode(cache.read_bytes()[16:])


def digest(file):
    held = Documents(None)
    held.read(file)
    return next(iter(held._held))


def whole(file, cache):
    """Whether a run reads the file as it is."""
    return [(one.value, one.lines) for one in run(cache, file)] == [(VALUE, LINES)]


def test_dates_are_text_kept_or_not(file, cache, unparsed):
    assert whole(file, None)
    assert whole(file, cache)
    unparsed()
    assert whole(file, cache)


def test_what_is_kept_is_not_parsed_again(file, cache, unparsed):
    run(cache, file)
    before = cache.stat().st_mtime_ns
    unparsed()
    assert whole(file, cache)
    assert cache.stat().st_mtime_ns == before
    assert [one.name for one in cache.parent.iterdir()] == [cache.name]


def test_a_home_that_is_not_there_is_not_made(file, tmp_path):
    cache = tmp_path / "home" / "me" / "diag" / "kb.msgpack"
    assert whole(file, cache)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("part", ["home", "home/diag"])
def test_a_file_stands_where_the_folder_should(file, cache, tmp_path, part):
    place = tmp_path / part
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("mine")
    assert whole(file, cache)
    assert place.read_text() == "mine"


def test_a_folder_stands_where_the_file_should(file, cache):
    cache.mkdir(parents=True)
    assert whole(file, cache)
    assert list(cache.parent.iterdir()) == [cache]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xc1" * 100,
        b"\x93\x01\x02\x03",
        b"\x81\xa2\xff\xfe\x01",
        b"\x81\xa1a\xdd\xff\xff\xff\xff",
        b"not at all",
        "\N{REPLACEMENT CHARACTER}".encode() * 1_000,
    ],
)
def test_a_corrupt_cache_only_costs_time(file, cache, damage, unparsed):
    cache.parent.mkdir(parents=True)
    cache.write_bytes(damage)
    assert whole(file, cache)
    unparsed()
    assert whole(file, cache)


@pytest.mark.parametrize(
    "kept", [b"\x05", b"\x91\x01", b"\x92\x01\x05", b"\x92\xa2\xff\xfe\x80", b"\x92\xdd\x0f\xff\xff\xff\x01", b"\xc0"]
)
def test_a_document_kept_in_another_form_is_parsed(file, cache, kept):
    cache.parent.mkdir(parents=True)
    cache.write_bytes(sealed(b"\x81" + msgpack.encode(digest(file)) + kept))
    assert whole(file, cache)


def test_a_truncated_cache_only_costs_time(file, cache):
    run(cache, file)
    pack = cache.read_bytes()
    for length in range(len(pack)):
        cache.write_bytes(pack[:length])
        assert whole(file, cache), length
        assert cache.read_bytes() == pack, length


def test_a_huge_cache_is_not_read(file, cache):
    cache.parent.mkdir(parents=True)
    with cache.open("wb") as opened:
        opened.truncate(files.CAP + 1)
    assert whole(file, cache)
    assert cache.stat().st_size < 10_000


def test_a_changed_file_is_parsed_anew(file, cache, tmp_path):
    other = tmp_path / "two.yaml"
    other.write_text("rows: [1]\n")
    run(cache, file, other)
    other.write_text("rows:\n  - 2\n")
    changed = run(cache, file, other)[1]
    assert (changed.value, changed.lines) == ({"rows": [2]}, {"rows": [2]})
    assert len(kept(cache)) == 2
    run(cache, file)
    assert list(kept(cache)) == [digest(file)]


def test_another_form_of_what_is_kept_is_not_read(file, cache, monkeypatch):
    run(cache, file)
    monkeypatch.setattr(documents, "FORM", b"next")
    assert whole(file, cache)
    assert list(kept(cache)) == [digest(file)]


def test_equal_files_are_kept_once(file, cache, tmp_path):
    twin = tmp_path / "twin.yaml"
    twin.write_text(TEXT)
    held = Documents(cache)
    assert held.read(file).content == held.read(twin).content
    held.keep()
    assert len(kept(cache)) == 1


def test_another_process_wrote_in_between(file, cache, tmp_path):
    other = tmp_path / "two.yaml"
    other.write_text("rows: [1]\n")
    first, second = Documents(cache), Documents(cache)
    assert (first.read(file).content.value, second.read(other).content.value) == (VALUE, {"rows": [1]})
    second.keep()
    first.keep()
    assert list(kept(cache)) == [digest(file)]
    assert whole(file, cache)


@pytest.mark.slow
def test_processes_that_write_at_once_leave_a_whole_cache(file, cache, tmp_path):
    program = (
        "import sys\nfrom pathlib import Path\nfrom diag.documents import Documents\n"
        "cache, file, own = map(Path, sys.argv[1:])\n"
        "for n in range(100):\n"
        "    own.write_text(f'rows: [{n}]\\n')\n"
        "    held = Documents(cache)\n"
        "    assert held.read(file).content.lines['rows'] == [4, 6]\n"
        "    assert held.read(own).content.value == {'rows': [n]}\n"
        "    held.keep()\n"
    )
    words = [(sys.executable, "-c", program, str(cache), str(file), str(tmp_path / f"{n}.yaml")) for n in range(3)]
    started = [subprocess.Popen(one, stderr=subprocess.PIPE) for one in words]
    assert [one.communicate()[1] for one in started] == [b"", b"", b""]
    assert digest(file) in kept(cache)
    assert [one.name for one in cache.parent.iterdir()] == [cache.name]


@pytest.mark.parametrize("text", ["", "# nothing\n", "[1, 2]\n", "just words\n", "rows: {a: [1]}\n"])
def test_documents_without_lists_at_the_top_have_no_lines(tmp_path, cache, text, unparsed):
    path = tmp_path / "one.yaml"
    path.write_text(text)
    fresh = run(None, path)
    assert fresh[0].lines == {}
    assert run(cache, path) == fresh
    unparsed()
    assert run(cache, path) == fresh


BROKEN = {
    "not closed": "rows: [1\n",
    "tab": "rows:\n\t- 1\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "unknown tag": "a: !python/object:os.system x\n",
    "recursive": "a: &a [*a]\n",
    "number too large": "a: 99999999999999999999999999\n",
    "key is a list": "? [a]\n: [1]\n",
    "no utf-8": b"a: \xff\xfe\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_none_is_told_each_time_and_never_kept(tmp_path, text):
    root, folder = tmp_path / "root", tmp_path / "home" / "diag"
    entries = root / "kb" / "entries" / "site"
    entries.mkdir(parents=True)
    (entries / "whole.yaml").write_text(ENTRY)
    (entries / "torn.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for _ in range(3):
        loaded = Shelf([root], folder).loaded()
        assert [Path(one.where).name for one in loaded.broken] == ["torn.yaml"]
        assert list(loaded.checks) == ["site/whole"]
        assert list(kept(files.place(folder, "kb", [root]))) == [digest(entries / "whole.yaml")]


# What is wrong today: each of these is to become a plain test when `diag.documents` is corrected.


@pytest.mark.parametrize("level", [b"\x91", b"\x81\xa1a"])
def test_a_deep_cache_only_costs_time(file, cache, level):
    cache.parent.mkdir(parents=True)
    cache.write_bytes(sealed(b"\x81" + msgpack.encode(digest(file)) + level * 200_000 + b"\x01"))
    assert whole(file, cache)


def test_a_damaged_document_is_kept_anew(file, cache, unparsed):
    cache.parent.mkdir(parents=True)
    cache.write_bytes(b"\x81" + msgpack.encode(digest(file)) + b"\x05")
    run(cache, file)
    unparsed()
    assert whole(file, cache)


def test_no_damage_changes_what_is_read(file, cache):
    run(cache, file)
    pack = cache.read_bytes()
    for place in range(len(pack)):
        cache.write_bytes(pack[:place] + bytes([pack[place] ^ 1]) + pack[place + 1 :])
        assert whole(file, cache), place
