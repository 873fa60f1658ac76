import bz2
import contextlib
import gzip
import io
import tarfile
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
