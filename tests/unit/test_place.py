"""The key of the exit gate: the user's alone, the same next time, and never written through what lies in its place."""

import os
import stat
from pathlib import Path

import pytest

from diag.cli.place import KEY_BYTES, redact_key


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "diag").mkdir()
    return tmp_path / "diag" / "redact.key"


def test_a_key_is_kept_for_its_user_alone(kept: Path):
    assert len(redact_key()) == KEY_BYTES
    assert redact_key() == redact_key()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert os.listdir(kept.parent) == [kept.name]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_its_place_gives_way_and_its_target_stays(kept: Path, there: bool):
    target = kept.parent.parent / "precious"
    if there:
        target.write_bytes(b"precious")
    kept.symlink_to(target)
    assert redact_key() == redact_key()
    assert not kept.is_symlink()
    assert (target.read_bytes() if there else target.exists()) == (b"precious" if there else False)


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * KEY_BYTES, b"x" * 4096])
def test_a_damaged_key_is_made_anew(kept: Path, damage: bytes):
    kept.write_bytes(damage)
    assert redact_key() == redact_key()
    assert redact_key() not in damage


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_stays(kept: Path, make):
    make(kept)
    assert len(redact_key()) == KEY_BYTES
    assert not kept.is_file()
    assert os.listdir(kept.parent) == [kept.name]
