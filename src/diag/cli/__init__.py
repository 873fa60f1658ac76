"""The command line: thin commands, and the only place that prints and exits."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line and exit with the code of the contract."""
    # Until all is loaded there is no garbage; looking for it would take a twentieth of a short run.
    gc.disable()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (as long as the process)
    if sys.stdout is None:
        sys.exit(_said("stdout is closed", 2))
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = _run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except Terminated:
        code = 143
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except OSError as error:
        code = _said(f"stdout: {error.strerror or error}", 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


class Terminated(BaseException):
    """SIGTERM: like Ctrl-C, it passes every handler on its way out but those that clean up."""


def _terminated(signum: int, frame: FrameType | None) -> None:
    raise Terminated


def _run(arguments: list[str]) -> int:
    import click

    from diag.cli.app import app
    from diag.errors import DiagError

    try:
        result = app.main(arguments, prog_name="diag", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        return _said(f"{error.format_message()} (diag --help)", 2)
    except click.Abort:
        return 130
    except DiagError as error:
        return _said(str(error), 2)
    except BrokenPipeError:
        raise
    except OSError as error:
        named = f"{error.filename}: " if error.filename else ""
        return _said(f"{named}{error.strerror or error}", 2)
    except Exception as error:
        from diag.cli.bug import block

        print(block(error), file=sys.stderr)
        return 3


def _said(message: str, code: int) -> int:
    print(f"diag: {' '.join(message.split())}", file=sys.stderr)
    return code
