"""The live host, with real programs; and texts from files and pipes."""

import io
import json
import os
import random
import sys
import time
from collections.abc import Iterator

import pytest

from diag import reading, sources
from diag.capture import Capture
from diag.errors import DiagError
from diag.facts import DeviceProcess, Fact, Host
from diag.probe import Probe, Request
from diag.sources import LiveHost
from diag.spared import ALONE, Spared, by_torch


class Endless(io.RawIOBase):
    """A stream of lines that never ends."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        buffer[:] = (b"y\n" * len(buffer))[: len(buffer)]
        return len(buffer)


def probe(key="p", **how) -> Probe:
    return Probe(key, (Host,), lambda capture: (), **how)


def take(*probes: Probe, **options) -> list[Capture]:
    return list(LiveHost(sys.executable, sys.executable, **options).captures(probes))


def test_commands_files_and_children_become_captures(tmp_path):
    (tmp_path / "f").write_bytes(b"one\r\n\xff")
    (tmp_path / "child.py").write_text("print('measured')")
    file, command, child = take(
        probe("c", command=("echo", "hello")),
        probe("m", measure=str(tmp_path / "child.py")),
        probe("f", path=str(tmp_path / "f")),
    )
    assert (command.kind, command.content, command.exit_code) == ("command", "hello\n", 0)
    assert (child.kind, child.content) == ("measure", "measured\n")
    assert (file.kind, file.content) == ("file", "one\n\\xff")


def holder(capture: Capture) -> Iterator[Fact]:
    for line in filter(lambda line: line.text, capture.lines()):
        yield DeviceProcess(origin=capture.origin(line), index=int(line.text.split()[0]), pid=1, name="serves")
        yield Host(origin=capture.origin(line), name="not asked for")


def test_a_child_is_given_what_commands_before_it_told(tmp_path):
    (tmp_path / "child.py").write_text("import sys; print(sys.argv[-1])")
    tool = Probe("t", (DeviceProcess, Host), holder, command=("printf", "0\n3\n"))
    broken = Probe("b", (DeviceProcess,), holder, command=("echo", "no number"))
    child = probe("m", measure=str(tmp_path / "child.py"), cost="active", given=(DeviceProcess,))
    told = {one.key: one for one in take(child, tool, broken)}
    rows = json.loads(told["m"].content)["given"]
    expected = {"kind": "DeviceProcess", "pid": 1, "name": "serves"}
    assert rows == [{**expected, "index": 0}, {**expected, "index": 3}]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"command": ("no-such-tool",)}, "FileNotFoundError: no-such-tool"),
        ({"path": "/no/such/file"}, "FileNotFoundError: /no/such/file"),
        ({"path": "/"}, "IsADirectoryError: /"),
        ({"command": ("sleep", "60"), "timeout": 0.2}, "timed out after 0.2 s"),
    ],
)
def test_a_failure_is_a_capture(how, error):
    assert [one.error for one in take(probe(**how))] == [error]


def test_a_long_file_is_cut_and_one_without_an_end_comes_to_one(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * (sources.FILE_CAP + 1000))
    endless, long = take(probe(path="/dev/zero"), probe(path=str(tmp_path / "f")))
    assert (endless.error, len(long.content)) == ("", sources.FILE_CAP)


def test_probes_run_by_what_they_cost():
    costs = [probe(cost, command=("true",), cost=cost) for cost in ("passive", "import", "active", "deep")]
    assert [one.key for one in take(*costs, costs=("passive",))] == ["passive"]
    assert [one.key for one in take(*costs)] == ["passive", "import", "active"]
    assert [one.key for one in take(*costs, costs=("passive", "deep"))] == ["passive", "deep"]


def test_a_child_is_given_further_arguments(tmp_path):
    (tmp_path / "child.py").write_text("import sys; print(sys.argv[1:])")
    one = probe("x", measure=str(tmp_path / "child.py"), arguments=("a",), cost="active")
    assert take(one, arguments={"x": ("b",), "y": ("c",)})[0].content == "['a', 'b']\n"


def test_a_measurement_is_spared_where_another_text_shows_what_would_come_of_it(tmp_path):
    (tmp_path / "child.py").write_text("print('measured')")
    spared = Spared("seen", lambda capture: "there is none" if capture.content == "0\n" else "")
    one = probe("x", measure=str(tmp_path / "child.py"), cost="active", spared=spared)
    none, some = (probe("seen", command=("echo", count)) for count in ("0", "2"))
    assert [(took.error, took.content) for took in take(one, none)[1:]] == [("there is none", "")]
    assert [(took.error, took.content) for took in take(one, some)[1:]] == [("", "measured\n")]
    assert [took.content for took in take(one)] == ["measured\n"]


@pytest.mark.parametrize(
    ("told", "least", "reason"),
    [
        ('{"schema": "diag/torch-env/1", "devices": [{}, {}]}', 2, ""),
        ('{"schema": "diag/torch-env/1", "devices": [{}]}', 1, ""),
        ('{"schema": "diag/torch-env/1", "devices": [{}]}', 2, ALONE[1]),
        ('{"schema": "diag/torch-env/1", "devices": []}', 1, ALONE[0]),
        ('{"schema": "diag/torch-env/1", "devices": [], "unseen": "killed by SIGSEGV"}', 1, "killed by SIGSEGV"),
        ('{"schema": "diag/torch-env/1", "error": "ImportError: x"}', 2, "ImportError: x"),
        ("", 1, "exit code 127"),
    ],
)
def test_a_torch_that_does_not_come_up_or_sees_too_little_spares_what_needs_devices(told, least, reason):
    assert by_torch(least).why(Capture.of("torch", told, kind="measure", exit_code=0 if told else 127)) == reason


def test_a_staged_probe_asks_on_until_it_is_done(tmp_path):
    (tmp_path / "child.py").write_text("import sys; print(int(sys.argv[1]) * 2)")

    def doubled(taken):
        last = int(taken[-1].content) if taken else 1
        return Request((str(last),)) if last < 8 else None

    staged = probe("s", measure=str(tmp_path / "child.py"), cost="active", next=doubled)
    assert [(one.key, one.content) for one in take(staged)] == [("s#1", "2\n"), ("s#2", "4\n"), ("s#3", "8\n")]


def test_a_stage_that_dies_is_the_last_one(tmp_path):
    staged = probe("s", measure=str(tmp_path / "x"), cost="active", timeout=0.2, next=lambda taken: Request(()))
    (tmp_path / "x").write_text("import time; time.sleep(60)")
    assert [one.error for one in take(staged)] == ["timed out after 0.2 s"]


def test_the_time_bound_ends_commands_and_stages(tmp_path):
    start = time.monotonic()
    captures = take(
        probe("slow", command=("sleep", "60")),
        probe("staged", command=("sleep", "60"), cost="active", next=lambda taken: Request(())),
        deadline=start + 0.3,
    )
    assert time.monotonic() - start < 5
    assert all(one.error.startswith("stopped") for one in captures)


def test_a_text_is_read_up_to_the_time_bound(tmp_path):
    path = tmp_path / "log"
    path.write_text("x\n" * 10_000)
    paste = sources.paste(path, deadline=time.monotonic() - 1)
    assert (next(paste.captures(())).content, paste.stopped) == ("", True)


@pytest.mark.parametrize("held", [10, 10_000])
def test_a_pipe_is_read_once_and_can_be_searched_again(monkeypatch, held):
    monkeypatch.setattr(reading, "HELD", held)
    capture = next(sources.piped(io.BytesIO(b"one\ntwo\n" * 10)).captures(()))
    assert list(capture.lines()) == list(capture.lines())
    assert len(list(capture.lines())) == 21


@pytest.mark.parametrize("content", [b"\x7fELF\0\0\0", b"text\0more", random.Random(0).randbytes(10_000)])
def test_what_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(DiagError, match="neither a text nor a bundle"):
        sources.paste(tmp_path / "f")
    with pytest.raises(DiagError, match="stdin is neither a text nor a bundle"):
        sources.piped(io.BytesIO(content))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_other_encodings_are_read_from_files_and_pipes(tmp_path, encoding):
    raw = ("error: ein Fehler\n" * 9 + "grün 错误\n").encode(encoding)
    (tmp_path / "f").write_bytes(raw)
    for paste in (sources.paste(tmp_path / "f"), sources.piped(io.BytesIO(raw))):
        assert [line.text for line in next(paste.captures(())).lines()][-3:] == ["error: ein Fehler", "grün 错误", ""]


def test_a_stream_without_end_is_read_as_far_as_there_is_room(monkeypatch):
    monkeypatch.setattr(reading, "STREAM_CAP", 100)
    paste = sources.piped(io.BufferedReader(Endless(), 10))
    assert len(next(paste.captures(())).content) <= 100
    assert [(one.where, one.error) for one in paste.broken] == [("stdin", sources.TOO_LONG)]


def test_a_stream_that_falls_silent_is_judged_by_what_came(tmp_path):
    end, start = os.pipe()
    os.write(start, b"said in time\n" * 30)
    paste = sources.piped(open(end, "rb"), deadline=time.monotonic() + 0.3)  # noqa: SIM115 (it closes what it reads)
    assert len(list(next(paste.captures(())).lines())) == 31
    assert paste.stopped
    os.close(start)


def test_what_was_read_before_the_time_bound_can_be_read_again(tmp_path):
    (tmp_path / "log").write_text("x\n" * 2 * reading.PIECE)
    paste = sources.paste(tmp_path / "log")
    blocks = paste.body.blocks()
    read = next(blocks).size
    paste.bound.deadline = time.monotonic() - 1
    read += sum(one.size for one in blocks)
    assert (sum(one.size for one in paste.body.blocks()), paste.stopped) == (read, True)
    assert read < reading.PIECE
