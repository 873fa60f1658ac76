"""The error a user can act on, and the exceptions that end a run from outside."""

from __future__ import annotations


class DiagError(Exception):
    """Something the user can put right: said in one line, exit code 2. Every other exception is a bug in diag."""


class Terminated(BaseException):
    """SIGTERM or a closed terminal; `code` is the exit code."""

    def __init__(self, code: int) -> None:
        self.code = code


class TimeUp(BaseException):
    """The bound on the whole run was reached in the middle of something."""


PASSING = (KeyboardInterrupt, Terminated, TimeUp, GeneratorExit)
"""What passes every handler but those that clean up; all else that foreign code raises is that code's failure."""
