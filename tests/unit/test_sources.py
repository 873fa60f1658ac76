"""The live host, with real programs; and texts from files and pipes."""

import io
import sys
import time

import pytest

from diag import reading, sources
from diag.capture import Capture
from diag.errors import DiagError
from diag.facts import Host
from diag.probe import Probe, Request
from diag.sources import LiveHost


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
    costs = [probe(cost, command=("true",), cost=cost) for cost in ("passive", "import", "active")]
    assert [one.key for one in take(*costs, costs=("passive",))] == ["passive"]
    assert [one.key for one in take(*costs)] == ["passive", "import", "active"]


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


@pytest.mark.parametrize("content", [b"\x7fELF\0\0\0", b"text\0more"])
def test_what_is_no_text_is_refused(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(DiagError, match="neither a text nor a bundle"):
        sources.paste(tmp_path / "f")
