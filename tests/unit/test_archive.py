import bz2
import contextlib
import gzip
import io
import lzma
import random
import subprocess
import sys
import tarfile
import time
import zipfile

import pytest

from diag import archive
from diag.errors import DiagError

LOG = "RuntimeError: it failed\nsecond line\n"


def tar(path, members: dict[str, bytes], mode: str = "w:gz"):
    with tarfile.open(path, mode) as file:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


def packed(path, members: dict[str, bytes]):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def texts(path) -> dict[str, str]:
    return {one.key: one.content for one in archive.read(path).captures(())}


MEMBERS = {"logs/a.log": LOG.encode(), "b.log": "\ufeffgrün\n".encode("utf-16-le"), "bin": b"\0" * 100, "empty": b""}


@pytest.mark.parametrize("make", [tar, packed, lambda path, members: tar(path, members, "w")])
def test_every_text_is_one_capture_and_the_rest_is_named(tmp_path, make):
    logs = archive.read(make(tmp_path / "logs", MEMBERS))
    assert [(one.key, one.content) for one in logs.captures(())] == [("logs/a.log", LOG), ("b.log", "grün\n")]
    assert [(one.where, one.error) for one in logs.broken] == [("bin", "it is no text")]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_packed_log_is_one_text(tmp_path, pack):
    path = tmp_path / "server.log.gz"
    path.write_bytes(pack(LOG.encode()))
    assert texts(path) == {"server.log": LOG}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_of_a_packed_log_that_is_cut_the_beginning_is_a_text(tmp_path, pack):
    path = tmp_path / "server.log.gz"
    whole = pack(LOG.encode() + random.Random(0).randbytes(3 * 10**6).hex().encode())
    path.write_bytes(whole[: len(whole) * 2 // 3])
    logs = archive.read(path)
    assert next(logs.captures(())).content.startswith(LOG)
    assert [(one.where, one.error.startswith("damaged: ")) for one in logs.broken] == [("server.log.gz", True)]


def test_of_a_member_that_is_cut_the_beginning_is_a_text(tmp_path):
    path = tar(tmp_path / "x.tar.gz", {"a.log": random.Random(0).randbytes(10**6).hex().encode()})
    path.write_bytes(path.read_bytes()[:500_000])
    logs = archive.read(path)
    assert len(next(logs.captures(())).content) > 500_000
    assert ("a.log", "it is cut off") in [(one.where, one.error) for one in logs.broken]


def test_a_zip_that_is_cut_is_said_to_be(tmp_path):
    path = packed(tmp_path / "x.zip", {"a.log": LOG.encode() * 500})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DiagError, match=r"x\.zip holds no text: it is cut off"):
        archive.read(path)


def test_an_encrypted_member_is_named_and_the_others_are_read(tmp_path):
    path = packed(tmp_path / "x.zip", {"a.log": LOG.encode(), "b.log": LOG.encode()})
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)
    logs = archive.read(path)
    assert [one.key for one in logs.captures(())] == ["b.log"]
    assert [(one.where, one.error) for one in logs.broken] == [("a.log", "it is encrypted")]


def test_members_of_one_name_are_told_apart(tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name in ("a.log", "a.log", "a\x1b[31m.log", "\x07"):
            member = tarfile.TarInfo(name)
            member.size = len(LOG)
            file.addfile(member, io.BytesIO(LOG.encode()))
    assert list(texts(path)) == ["a.log", "a.log (2)", "a.log (3)", "(no name)"]


def test_members_bear_the_name_of_their_archive_where_there_are_several(tmp_path):
    logs = archive.read(tar(tmp_path / "x.tar.gz", {"a.log": LOG.encode()}), several=True)
    assert [one.key for one in logs.captures(())] == ["x.tar.gz/a.log"]


def test_unpacking_ends_in_time_and_leaves_some(tmp_path):
    path = tar(tmp_path / "x.tar.gz", {"a.log": LOG.encode()})
    logs = archive.read(path, deadline=time.monotonic() - 1)
    assert (logs.stopped, logs.broken) == (True, ())


def test_texts_can_be_read_in_any_order(tmp_path):
    many = {f"{number}.log": f"number {number}\n".encode() * 1000 for number in range(20)}
    captures = list(archive.read(tar(tmp_path / "x.tar.gz", many)).captures(()))
    for one in reversed(captures):
        assert next(iter(one.lines())).text == f"number {one.key.removesuffix('.log')}"
        assert len(one.sha256()) == 64


def test_an_archive_within_is_named_and_not_followed(tmp_path):
    logs = archive.read(tar(tmp_path / "x.tar.gz", {"a.log": LOG.encode(), "b.gz": gzip.compress(b"x")}))
    assert [one.error for one in logs.broken] == ["it is an archive itself"]


def test_an_archive_without_texts_is_refused(tmp_path):
    with pytest.raises(DiagError, match="holds no text: bin: it is no text"):
        archive.read(tar(tmp_path / "x.tar.gz", {"bin": b"\0" * 100}))


def test_what_unpacks_to_too_much_is_read_as_far_as_it_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "UNPACKED_CAP", 1000)
    logs = archive.read(tar(tmp_path / "x.tar.gz", {"a.log": LOG.encode(), "bomb": b"x" * 10**6}))
    assert [one.key for one in logs.captures(())] == ["a.log"]
    assert "more than can be held" in logs.broken[0].error


@pytest.mark.parametrize("make", [tar, packed])
def test_a_damaged_archive_gives_what_is_whole_or_one_line(tmp_path, make):
    path = make(tmp_path / "x", {f"{number}.log": LOG.encode() * 500 for number in range(9)})
    whole = path.read_bytes()
    for cut in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:cut])
        with contextlib.suppress(DiagError):
            assert archive.read(path).broken


def test_names_lead_nowhere(tmp_path):
    assert list(texts(tar(tmp_path / "x.tar.gz", {"../../etc/passwd": LOG.encode()}))) == ["../../etc/passwd"]
    assert not list(tmp_path.parent.rglob("passwd"))


def tar_of(header: tarfile.TarInfo, form: int = tarfile.GNU_FORMAT) -> bytes:
    return header.tobuf(form) + b"x" * 10_240


@pytest.mark.parametrize(
    ("size", "pax"),
    [
        (2**50, {}),
        (1, {"GNU.sparse.map": "a,b", "GNU.sparse.size": "9"}),
        (1, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "abc"}),
    ],
)
def test_a_header_that_lies_is_damage(tmp_path, size, pax):
    header = tarfile.TarInfo("x")
    header.size, header.pax_headers = size, pax
    path = tmp_path / "lies.tar"
    path.write_bytes(tar_of(header, tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT))
    done = subprocess.run([sys.executable, "-m", "diag", "explain", path], capture_output=True, text=True, timeout=30)
    assert done.returncode in (2, 4)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1
