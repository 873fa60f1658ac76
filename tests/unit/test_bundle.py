"""A bundle is read member by member; what does not belong is named and not followed."""

import io
import tarfile
from pathlib import Path

import pytest

from diag import bundle
from diag.capture import Capture
from diag.errors import DiagError
from diag.redact import Redactor

WHEN = {"tool": "0", "source": "host", "taken_at": "2026-11-29T00:00:00Z"}
TAKEN = (
    Capture.of("nvidia-smi", "line one\nline two", kind="command", exit_code=0, seconds=0.5),
    Capture.of("lspci", "", kind="command", error="FileNotFoundError: lspci"),
)


def written(tmp_path: Path, captures=TAKEN, gate=None) -> Path:
    path = tmp_path / "b.tar.gz"
    bundle.write(path, captures, gate, **WHEN)
    return path


def archive(tmp_path: Path, *members: tuple[str, bytes], **fields) -> Path:
    path = tmp_path / "hostile.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for field, value in fields.items():
                setattr(member, field, value)
            made.addfile(member, io.BytesIO(content))
    return path


def test_captures_come_back_as_they_were(tmp_path):
    opened = bundle.read(written(tmp_path))
    assert not opened.broken
    assert [one.taking for one in opened.captures(())] == [one.taking for one in TAKEN]
    assert [one.content for one in opened.captures(())] == ["line one\nline two", ""]


def test_everything_in_it_passed_the_gate(tmp_path):
    secret = Capture.of("x", "at 10.1.2.3", kind="command", command="ssh 10.1.2.3", stderr="10.1.2.3", error="10.1.2.3")
    path = written(tmp_path, [secret], Redactor(b"k" * 32))
    with tarfile.open(path) as made:
        texts = [made.extractfile(one).read() for one in made]
    assert all(b"10.1.2.3" not in one for one in texts)


def test_an_existing_bundle_survives_a_failed_writing(tmp_path):
    path = written(tmp_path)
    before = path.read_bytes()

    def failing():
        yield TAKEN[0]
        raise RuntimeError("taken halfway")

    with pytest.raises(RuntimeError):
        bundle.write(path, failing(), None, **WHEN)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["b.tar.gz"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../captures/x", "captures/../../x", "other/x"])
def test_a_path_that_leads_elsewhere_is_refused(tmp_path, name):
    path = archive(tmp_path, ("captures/0001.txt", b"good"), (name, b"bad"))
    opened = bundle.read(path)
    assert [one.content for one in opened.captures(())] == ["good"]
    assert any(one.where == name for one in opened.broken)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path, kind):
    path = archive(tmp_path, ("captures/0001.txt", b""), type=kind, linkname="/etc/passwd")
    with pytest.raises(DiagError, match="not a regular file"):
        bundle.read(path)


def test_a_second_member_of_a_name_is_refused(tmp_path):
    path = archive(tmp_path, ("captures/1", b"first"), ("captures/1", b"second"))
    opened = bundle.read(path)
    assert [one.content for one in opened.captures(())] == ["first"]


def test_a_bomb_is_not_read(tmp_path):
    path = archive(tmp_path, ("captures/small", b"x"), ("captures/bomb", b"\0" * (bundle.MEMBER_CAP + 1)))
    opened = bundle.read(path)
    assert len(list(opened.captures(()))) == 1
    assert "too large" in opened.broken[0].error


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_archive_gives_what_it_holds_and_says_so(tmp_path, kept):
    path = written(tmp_path, [Capture.of(f"k{n}", str(n) * 5000) for n in range(200)])
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * kept)])
    opened = bundle.read(path)
    assert any("damaged" in one.error for one in opened.broken)
    assert next(one.content for one in opened.captures(())) == "0" * 5000


def test_a_changed_text_is_named_and_not_taken(tmp_path):
    path = written(tmp_path)
    with tarfile.open(path) as made:
        members = [(one.name, made.extractfile(one).read().replace(b"two", b"six")) for one in made]
    opened = bundle.read(archive(tmp_path, *members))
    assert [one.where for one in opened.broken] == ["captures/0001.txt"]
    assert [one.key for one in opened.captures(())] == ["lspci"]


def test_one_text_is_one_capture_however_often_it_is_claimed(tmp_path):
    path = written(tmp_path, [TAKEN[0]] * 3)
    with tarfile.open(path) as made:
        members = [(one.name, made.extractfile(one).read().replace(b"0002.txt", b"0001.txt")) for one in made]
    opened = bundle.read(archive(tmp_path, *members))
    assert len(list(opened.captures(()))) == 2
    assert len(opened.broken) == 1


def test_a_header_that_declares_too_much_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "STREAM_CAP", 2**20)
    path = tmp_path / "pax.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as made:
        member = tarfile.TarInfo("captures/1")
        member.pax_headers = {"comment": "x" * 2**22}
        made.addfile(member)
    with pytest.raises(DiagError, match="more than can be held"):
        bundle.read(path)


@pytest.mark.parametrize("content", [b"{}", b"not json", b'{"schema": "diag/bundle/9"}'])
def test_a_manifest_that_is_none_is_one_line(tmp_path, content):
    with pytest.raises(DiagError, match=r"manifest\.json"):
        bundle.read(archive(tmp_path, ("manifest.json", content)))


@pytest.mark.parametrize("pack", ["gz", "bz2", "xz"])
def test_damage_of_every_packing_is_one_line(tmp_path, pack):
    path = tmp_path / "b.tar"
    with tarfile.open(path, f"w:{pack}") as made:
        member = tarfile.TarInfo("captures/1")
        member.size = 4096
        made.addfile(member, io.BytesIO(bytes(range(256)) * 16))
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 :] = b"\xff" * (len(raw) - len(raw) // 2)
    path.write_bytes(raw)
    with pytest.raises(DiagError, match="damaged"):
        bundle.read(path)
