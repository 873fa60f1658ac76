"""`diag run` at a terminal: the command sees one, and what is typed reaches it as it does without diag."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import sys
import termios
import time
from collections.abc import Callable, Sequence

import pytest

DIAG = (sys.executable, "-c", "from diag.cli import main; main()", "run")
SOAK = pytest.mark.skipif("DIAG_EXAMPLES" not in os.environ, reason="takes long: make soak")
SEES = "import os; print(*map(os.isatty, (0, 1, 2)), os.get_terminal_size(1)); os.write(2, b'a\\tb\\n'); print('end')"
COUNTS = """
import os, signal, time
came = []
signal.signal(signal.{name}, lambda *_: came.append(os.get_terminal_size(1).columns))
print("up", flush=True)
while not came: time.sleep(0.05)
time.sleep(0.3)
print(len(came), came[-1])
"""
FULL_SCREEN = """
import curses
def shown(screen):
    screen.addstr("press"); screen.refresh()
    screen.addstr(str(screen.getch()))
curses.wrapper(shown)
"""
Step = tuple[bytes, bytes | Callable[[int], object]]


def typed(command: Sequence[str], steps: Sequence[Step] = (), seconds: float = 20) -> tuple[bytes, int]:
    """Run a command at a terminal of its own; each step waits for a text, then types, or does, the other part."""
    pid, terminal = pty.fork()
    if not pid:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", "PS1": "> "})
    sized(30, 100)(terminal)
    shown, at, waiting, end = b"", 0, list(steps), time.monotonic() + seconds
    while time.monotonic() < end:
        while waiting and (found := shown.find(waiting[0][0], at)) >= 0:
            at, does = found + len(waiting[0][0]), waiting.pop(0)[1]
            does(terminal) if callable(does) else os.write(terminal, does)
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                shown += os.read(terminal, 2**16)
            except OSError:
                break
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def sized(rows: int, columns: int) -> Callable[[int], object]:
    return lambda terminal: fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.mark.parametrize(
    ("program", "steps"),
    [
        (SEES, ()),
        ("import getpass; print(getpass.getpass())", [(b"Password: ", b"secret\r")]),
        ("print('hi', input('name? '))", [(b"name? ", b"ann\r")]),
        ("import time; print('up', flush=True); time.sleep(60)", [(b"up\r\n", b"\x03")]),
        (COUNTS.format(name="SIGINT"), [(b"up\r\n", b"\x03")]),
        (FULL_SCREEN, [(b"press", b"a")]),
    ],
    ids=["sees", "password", "line", "interrupt", "once", "full screen"],
)
def test_a_terminal_shows_and_takes_the_same(program, steps):
    bare, seen = (typed((*before, sys.executable, "-c", program), steps) for before in ((), DIAG))
    assert seen == bare


def test_what_is_typed_is_not_sent_twice_where_nobody_says_who_sent_it():
    elsewhere = f"import signal; del signal.sigtimedwait, signal.sigwaitinfo; {DIAG[2]}"
    command = (sys.executable, "-c", elsewhere, "run", sys.executable, "-c", COUNTS.format(name="SIGINT"))
    shown, code = typed(command, [(b"up\r\n", b"\x03")])
    assert (code, shown) == (0, b"up\r\n^C1 100\r\n")


def test_the_command_learns_of_a_new_size():
    shown, code = typed((*DIAG, sys.executable, "-c", COUNTS.format(name="SIGWINCH")), [(b"up", sized(50, 77))])
    assert (code, shown.split()[-1]) == (0, b"77")


def test_who_waits_for_typing_does_not_stall():
    steps = [(b"name? ", lambda terminal: time.sleep(2.5)), (b"", b"ann\r")]
    shown, code = typed(
        (*DIAG[:-1], "run", "--stall", "1", "sh", "-c", "printf 'name? '; read name; echo $name"), steps
    )
    assert (code, shown) == (0, b"name? ann\r\nann\r\n")


@SOAK
@pytest.mark.skipif(not shutil.which("bash"), reason="no shell with job control")
@pytest.mark.parametrize(("stops", "key"), [("sleep 1", b"\x1a"), ("kill -STOP $$", b"")])
def test_a_shell_stops_and_continues_it(stops, key):
    program = f"{sys.executable} -m diag run"
    line = f'{program} sh -c \'echo u""p; {stops}; echo do""wn\'\r'.encode()
    steps = [(b"> ", line), (b"up\r\n", key), (b"Stopped", b"fg\r"), (b"down\r\n", b"exit\r")]
    shown, code = typed(("bash", "--norc", "-i"), steps)
    assert (code, shown.count(b"down")) == (0, 1)
