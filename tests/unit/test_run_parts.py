"""The parts of `diag run`: what is kept of a stream, what the kernel told, what processes do, how texts are joined."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from held import LOADED

from diag import plugins, streams, witness
from diag.capture import Capture
from diag.cli.running import is_plain
from diag.engine import examine
from diag.facts import Driver, PythonStack, TorchBuild
from diag.learn import learn
from diag.processes import family, sampled

LINUX = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="only Linux tells what processes do")
SMI = "| NVIDIA-SMI 470.86       Driver Version: 470.86       CUDA Version: 11.4     |\n"
TORCH = "Collecting environment information...\nPyTorch version: 2.4.0+cu121\nCUDA used to build PyTorch: 12.1\n"
DUMP = """\
Process 14243: python3 train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 14243 (idle): "MainThread"
    Thread.join (threading.py:1119)
    <module> (train.py:6)
Thread 14286 (active+gil): "Thread-1 (worker)"
    worker (<string>:4)
"""


@pytest.fixture
def loaded() -> plugins.Loaded:
    return LOADED


@pytest.mark.parametrize(
    ("arguments", "plain"),
    [
        ("run true", True),
        ("run true --quiet", True),
        ("run -- --odd", True),
        ("run", False),
        ("run --", False),
        ("run --quiet true", False),
        ("run --help", False),
        ("explain -", False),
    ],
)
def test_what_needs_no_parsing(arguments: str, plain: bool) -> None:
    assert is_plain(arguments.split()) is plain


def test_whole_lines_of_start_and_end_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEPT", 20)
    kept = streams.Kept()
    for number in range(100):
        kept.add(memoryview(f"line {number}\n".encode()))
    assert kept.parts() == (b"line 0\nline 1\n", b"line 98\nline 99\n")
    assert (kept.whole, kept.line_ended, kept.total) == (False, True, 790)


def test_what_is_short_is_kept_whole() -> None:
    kept = streams.Kept()
    assert (kept.parts(), kept.line_ended) == ((b"", b""), True)
    kept.add(memoryview(b"no end"))
    assert (kept.parts(), kept.line_ended) == ((b"no end", b""), False)


def test_the_kernels_records_become_the_lines_of_dmesg() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.setblocking(False)
        theirs.send(b"6,1234,72591605071,-;Out of memory: Killed process 7 (x)\n SUBSYSTEM=memory\n")
        assert list(witness._lines(ours.fileno())) == ["[72591.605071] Out of memory: Killed process 7 (x)\n"]


def test_a_groups_count_is_compared_with_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "GROUPS", str(tmp_path))
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (tmp_path / "memory.max").write_text("314572800\n")
    before = witness._count("", "memory.events", "memory.max", "/no/such/group")
    assert before == witness.Counted(str(tmp_path), "memory.events", 2, "314572800")


@LINUX
def test_processes_are_told_with_their_states() -> None:
    with subprocess.Popen(("sh", "-c", "sleep 60 & wait")) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        told, members = sampled((process.pid,), 0.05), family(process.pid)
        for pid in reversed(members):
            os.kill(pid, signal.SIGKILL)
    assert (
        f"process {process.pid} (sh), parent {os.getpid()}, state T, threads 1, cpu 0 % (0 % in the kernel): sh -c"
        in told
    )


def test_stacks_of_python_are_read(loaded: plugins.Loaded) -> None:
    told = learn([Capture.of("py-spy#1", DUMP, exit_code=0)], loaded).facts.all(PythonStack)
    assert [(one.pid, one.thread, one.active, one.frames[0]) for one in told] == [
        (14243, "MainThread", False, "Thread.join (threading.py:1119)"),
        (14243, "Thread-1 (worker)", True, "worker (<string>:4)"),
    ]


def test_texts_of_one_scope_are_of_one_machine(loaded: plugins.Loaded) -> None:
    def told(*scopes: str) -> set[str]:
        texts = (Capture.of(f"{i}", text, kind="text", scope=scopes[i]) for i, text in enumerate((SMI, TORCH)))
        facts = examine(texts, loaded, ()).facts
        return {one.origin.scope for kind in (Driver, TorchBuild) for one in facts.all(kind)}

    assert (told("x", "x"), told("", "")) == ({""}, {"0", "1"})
