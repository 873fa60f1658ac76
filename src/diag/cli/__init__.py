"""The command line: thin commands, and the only place that prints and exits."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import TextIO

from diag.errors import DiagError, Terminated, TimeUp


def main() -> None:
    """Run the command line and exit with the code of the contract."""
    # Until all is loaded there is no garbage; looking for it would take a twentieth of a short run.
    gc.disable()
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115 (as long as the process)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (as long as the process)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _ended)
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except Terminated as end:
        code = end.code
    except BrokenPipeError:
        code = _discarded(sys.stdout, 141)
    except OSError as error:
        code = _discarded(sys.stdout, _said(f"stdout: {error.strerror or error}", 2))
    sys.exit(code)


def _ended(signum: int, frame: FrameType | None) -> None:
    raise Terminated(128 + signum)


def _discarded(stream: TextIO, code: int) -> int:
    # What is still held back would raise again at the end of the process.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code


def _run(arguments: list[str]) -> int:
    try:
        return _called(arguments)
    except DiagError as error:
        return _said(str(error), 2)
    except TimeUp:
        return _said("the time bound was reached", 4)
    except BrokenPipeError:
        raise
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _said(f"{named}{error.strerror or error}", 2)
    except Exception as error:
        from diag.cli.bug import block

        print(block(error), file=sys.stderr)
        return 3


def _called(arguments: list[str]) -> int:
    """Call what is asked for; a command to run is started before anything is imported that takes longer than it."""
    if arguments[:1] == ["run"]:
        from diag.cli import running

        if running.is_plain(arguments):
            return running.run(tuple(arguments[2 if arguments[1] == "--" else 1 :]))
    import click

    try:
        return _invoked(arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        return _said(f"{error.format_message()} (diag --help)", 2)
    except click.Abort:
        return 130


def _invoked(arguments: list[str]) -> int:
    from click.exceptions import Exit

    from diag.cli.app import app

    if "_DIAG_COMPLETE" in os.environ:
        app.main(arguments, prog_name="diag")
    try:
        # Not by `main`, which makes an exit code 1 of a reader that has gone.
        with app.make_context("diag", arguments) as context:
            result = app.invoke(context)
    except Exit as end:
        result = end.exit_code
    return result if isinstance(result, int) else 0


def _said(message: str, code: int) -> int:
    from diag.text import printable

    try:
        print(f"diag: {printable(message)}", file=sys.stderr, flush=True)
    except OSError:
        _discarded(sys.stderr, code)
    return code
