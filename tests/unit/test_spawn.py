"""Misbehaving programs, run for real: none may hang, flood or crash the caller, nor outlive it."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from diag import spawn
from diag.spawn import Children, Command, Outcome, run

TRACED = """
import ctypes, os, time
libc, target = ctypes.CDLL(None), os.getpid()
libc.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, any
if not os.fork():
    os.setsid()
    refused = libc.ptrace(0x4206, target, None, None)  # PTRACE_SEIZE
    print(os.getpid(), refused, flush=True)
time.sleep(60)
"""


def sh(text: str, timeout: float = 10.0, keep: int = 2**20) -> Command:
    return Command(("sh", "-c", text), timeout, {}, keep)


def only(command: Command) -> Outcome:
    (outcome,) = run([command])
    return outcome


def gone(pid: int) -> bool:
    """Whether the process ends within some seconds; a zombie whose new parent is slow counts as ended."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.01)
    return False


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    descriptors = len(os.listdir("/proc/self/fd"))
    yield
    assert psutil.Process().children(recursive=True) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("code", [0, 9, 12, 255])
def test_streams_and_exit_code(code: int) -> None:
    outcome = only(sh(f"echo out; echo err >&2; exit {code}"))
    assert (outcome.stdout, outcome.stderr, outcome.exit_code, outcome.error) == ("out\n", "err\n", code, "")
    assert 0 < outcome.seconds < 5


@pytest.mark.parametrize(("number", "name"), [("SEGV", "SIGSEGV"), ("KILL", "SIGKILL"), ("40", "signal 40")])
def test_death_by_signal(number: str, name: str) -> None:
    outcome = only(sh(f"echo before; kill -{number} $$"))
    assert (outcome.stdout, outcome.error) == ("before\n", f"killed by {name}")
    assert outcome.exit_code is not None
    assert outcome.exit_code < 0


def test_environment_is_neutral_and_can_be_added_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("INHERITED", "yes")
    show = Command(("sh", "-c", "echo $LC_ALL:$LANGUAGE:$INHERITED:$OURS; cat"), environment={"OURS": "too"})
    assert only(show).stdout == "C.UTF-8::yes:too\n"


def test_programs_that_do_not_start(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, text, mode in [
        ("plain", "#!/bin/sh\n", 0o644),
        ("broken", "#!/no/such/interpreter\n", 0o755),
        ("noise", "\x01\x02\n", 0o755),
    ]:
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    path = {"PATH": f"/no/such:/dev/null:{tmp_path}"}
    names = ["absent", "plain", "folder", "broken", "noise", str(tmp_path / "absent"), "nul\0nul"]
    outcomes = run([Command((name,), environment=path) for name in names])
    assert [outcome.error for outcome in outcomes] == [
        "FileNotFoundError: absent",
        "PermissionError: plain (Permission denied)",
        "PermissionError: folder (Permission denied)",
        "OSError: broken (the interpreter or loader it names does not exist)",
        "OSError: noise (Exec format error)",
        f"FileNotFoundError: {tmp_path}/absent",
        "ValueError: embedded null byte",
    ]
    assert {outcome.exit_code for outcome in outcomes} == {None}


def test_command_lines_that_the_system_refuses() -> None:
    long, empty, equals = run(
        [Command(("true", "x" * 2**22)), Command(()), Command(("true",), environment={"a=b": ""})]
    )
    assert long.error == "OSError: true (Argument list too long)"
    assert empty.error.startswith("IndexError")
    assert equals.error.startswith("ValueError")


def test_program_is_found_on_the_path_of_its_environment(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "tool").chmod(0o755)
    assert only(Command(("tool",), environment={"PATH": f"/no/such:{tmp_path}"})).stdout == "mine\n"


@pytest.mark.parametrize("text", ["echo early; sleep 60", "trap '' TERM HUP INT; echo early; sleep 60; sleep 60"])
def test_hanging_program_is_killed(text: str) -> None:
    outcome = only(sh(text, timeout=0.4))
    assert (outcome.stdout, outcome.exit_code, outcome.error) == ("early\n", None, "timed out after 0.4 s")
    assert outcome.seconds < 5


def test_text_is_plain() -> None:
    raw = r"\033[1;31mred\033[0m \033]0;title\007\033(Bend\r\nna\303\257ve \377 \000.\n"
    assert only(sh(f"printf '{raw}'")).stdout == "red end\nnaïve \\xff .\n"


def test_flood_keeps_whole_lines_of_head_and_tail() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = only(sh("echo first; yes | head -c 200000000; echo last", timeout=60, keep=2**16))
    head, tail = outcome.stdout.split(f"… {outcome.left_out} bytes left out …\n")
    assert head == "first\n" + "y\n" * (2**14 - 3)
    assert tail.endswith("y\nlast\n")
    assert len(head) + len(tail) + outcome.left_out == 200_000_011
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024


def test_endless_output_on_both_streams_meets_the_clock() -> None:
    outcome = only(sh("tr '\\0' x </dev/zero >&2 & yes", timeout=0.5, keep=1000))
    assert outcome.error == "timed out after 0.5 s"
    assert outcome.left_out > 10_000
    assert len(outcome.stdout) + len(outcome.stderr) < 2200


def test_output_of_exactly_the_size_kept_is_whole() -> None:
    outcome = only(sh("yes | head -c 1000", keep=1000))
    assert (outcome.stdout, outcome.left_out) == ("y\n" * 500, 0)


def test_grandchild_that_holds_the_pipe_is_killed() -> None:
    outcome = only(sh("sleep 60 & echo $!"))
    assert (outcome.exit_code, outcome.error) == (0, "")
    assert outcome.seconds < 5
    assert gone(int(outcome.stdout))


def test_silent_grandchild_is_killed_too() -> None:
    assert gone(int(only(sh("sleep 60 >/dev/null 2>&1 & echo $!")).stdout))


def test_grandchild_in_its_own_session_holds_nobody_up() -> None:
    began = time.monotonic()
    outcome = only(sh("setsid sh -c 'echo $$; while :; do echo; done' & sleep 0.2; exit 3"))
    os.kill(int(outcome.stdout.split()[0]), signal.SIGKILL)
    assert (outcome.exit_code, outcome.error) == (3, "")
    assert time.monotonic() - began < 5


def test_many_commands_keep_their_order_and_the_bound() -> None:
    clock = "date +%s.%N"
    outcomes = run([sh(f"echo {i}; {clock}; sleep 0.1; {clock}") for i in range(30)], parallel=8)
    rows = [outcome.stdout.split() for outcome in outcomes]
    assert [int(row[0]) for row in rows] == list(range(30))
    spans = [(float(row[1]), float(row[2])) for row in rows]
    assert 2 <= max(sum(a <= t <= b for a, b in spans) for t, _ in spans) <= 8


def test_deadline_stops_the_running_and_starts_nothing_more(tmp_path: Path) -> None:
    began = time.monotonic()
    commands = [sh("echo quick"), sh("echo slow; sleep 60"), sh("sleep 60"), sh(f"touch {tmp_path}/started")]
    quick, *late = run(commands, deadline=began + 0.6, parallel=2)
    assert time.monotonic() - began < 5
    assert (quick.stdout, quick.error) == ("quick\n", "")
    assert late[0].stdout == "slow\n"
    assert {(o.exit_code, o.error) for o in late} == {(None, "stopped: time bound reached")}
    assert not list(tmp_path.iterdir())


def test_deadline_in_the_past_starts_nothing() -> None:
    (outcome,) = run([Command(("true",))], deadline=time.monotonic() - 1)
    assert outcome == Outcome(error="stopped: time bound reached")


def test_children_run_while_the_caller_does_something_else(tmp_path: Path) -> None:
    with Children([sh(f"touch {tmp_path}/a; echo a"), sh(f"touch {tmp_path}/b; echo b")], parallel=1) as children:
        end = time.monotonic() + 5
        while not (tmp_path / "b").exists() and time.monotonic() < end:
            children.turn(0.01)
        assert [outcome.stdout for outcome in children.wait()] == ["a\n", "b\n"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupted_caller_leaves_nobody_behind(kind: type[BaseException]) -> None:
    pids: list[int] = []
    with pytest.raises(kind), Children([sh("trap '' INT TERM; exec sleep 60")] * 3) as children:  # noqa: PT012
        pids += [child.pid for child in psutil.Process().children()]
        children.turn()
        raise kind
    assert len(pids) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.killpg(pid, 0)


def test_ctrl_c_at_any_moment_leaves_nobody_behind() -> None:
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            run([sh(f"kill -INT {os.getpid()}; sleep 60"), *[sh("sleep 60")] * 7])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_lost_exit_status_is_not_a_success() -> None:
    usual = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        outcome = only(sh("echo done; exit 3"))
    finally:
        signal.signal(signal.SIGCHLD, usual)
    assert (outcome.stdout, outcome.exit_code) == ("done\n", None)
    assert outcome.error == "exit status lost: SIGCHLD is ignored"


def test_child_that_cannot_be_reaped_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tracer that never waits keeps a killed process from its parent, as an uninterruptible sleep would."""
    monkeypatch.setattr(spawn, "REAP", 0.3)
    began = time.monotonic()
    outcome = only(Command((sys.executable, "-c", TRACED), timeout=2.0))
    tracer, refused = map(int, outcome.stdout.split())
    (child,) = (child for child in psutil.Process().children() if child.pid != tracer) if not refused else (None,)
    os.kill(tracer, signal.SIGKILL)
    if child is None:
        pytest.skip("this system allows no tracing")
    os.waitpid(child.pid, 0)
    assert (outcome.exit_code, outcome.error) == (None, "unresponsive: ignored SIGKILL")
    assert time.monotonic() - began < 8
