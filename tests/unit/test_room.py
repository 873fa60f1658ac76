"""What control groups have left, by the files of both versions, and where a process finds its own."""

from functools import partial
from pathlib import Path

import pytest

from diag.probe import program
from diag.sources import MEASURE

ROOM, WHOLE = program(str(MEASURE / "room.py")), program(str(MEASURE / "device.py"))["whole"]
MIB = 2**20
V2 = {
    "memory.max": f"{1000 * MIB}\n",
    "memory.high": "max\n",
    "memory.current": f"{300 * MIB}\n",
    "memory.stat": f"anon {200 * MIB}\nfile {90 * MIB}\nfile_dirty {10 * MIB}\nfile_writeback 0\n"
    f"inactive_file {60 * MIB}\n",
}
V1 = {
    "memory.limit_in_bytes": f"{1000 * MIB}\n",
    "memory.usage_in_bytes": f"{300 * MIB}\n",
    "memory.stat": f"inactive_file {MIB}\ndirty 0\ntotal_inactive_file {60 * MIB}\ntotal_dirty {4 * MIB}\n"
    f"total_writeback {6 * MIB}\n",
}
NO_LIMIT = "9223372036854771712\n"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (V2, (1000 * MIB, 750 * MIB)),
        ({**V2, "memory.high": f"{400 * MIB}\n"}, (400 * MIB, 150 * MIB)),
        ({**V2, "memory.max": "max\n"}, None),
        (V1, (1000 * MIB, 750 * MIB)),
        ({**V1, "memory.limit_in_bytes": NO_LIMIT}, None),
        ({"memory.stat": V1["memory.stat"]}, None),
        ({"memory.max": V2["memory.max"], "memory.current": V2["memory.current"]}, (1000 * MIB, 700 * MIB)),
    ],
)
def test_what_a_group_has_left_is_its_limit_less_what_cannot_be_given_back(tmp_path, files, left):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert ROOM["room"](tmp_path) == left


@pytest.mark.parametrize(
    ("path", "root", "below"),
    [
        ("/a/b", "/", "a/b"),
        ("/", "/", ""),
        ("/docker/1f/x", "/docker/1f", "x"),
        ("/docker/1f", "/docker/1f", ""),
        ("/docker/1f2", "/docker/1f", ""),
        ("/../other", "/", ""),
    ],
)
def test_a_group_is_looked_for_below_the_root_of_its_mount(path, root, below):
    assert ROOM["beneath"](path, root) == below


def test_all_groups_above_count():
    assert list(ROOM["upwards"](Path("/m"), "a/b")) == [Path("/m/a/b"), Path("/m/a"), Path("/m")]
    assert list(ROOM["upwards"](Path("/m"), "")) == [Path("/m")]


@pytest.mark.parametrize("limit", [0, 1, 5, 63, 64])
def test_halving_finds_each_limit_in_few_trials(limit):
    step = ROOM["STEP"]
    found = ROOM["halved"](lambda size: size <= limit * step, 64 * step)
    assert found["largest"] == limit * step
    assert found["trials"] <= 7


def test_nothing_is_touched_beyond_what_is_left():
    """Of this host: with all of its memory to be left there is nothing to touch."""
    total, free = ROOM["host"]()
    assert 0 < free <= total
    told, all_told = (WHOLE(partial(ROOM["touched"], ROOM["STEP"], left, 10.0), 20.0)["answer"] for left in (total, 0))
    assert (told["total"], told["bound"]) == (0, "host")
    assert all_told == {"total": ROOM["STEP"], "bound": ""}
