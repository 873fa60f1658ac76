"""Values of options, as they are taken from a command line: what is no such value is a mistake in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

LONGEST = 1e7
"""Seconds of the longest bound, which an alarm can still be set to."""


def told(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """The value of an option or argument; an empty one is a mistake, most often an unset variable."""
    if "" in (value if isinstance(value, tuple) else (value,)):
        raise click.BadParameter("it is empty", context, option)
    return value


def place(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """The same for the names of files and folders, as paths; None where there is none."""
    told(context, option, value)
    return tuple(map(Path, value)) if isinstance(value, tuple) else value and Path(value)


def bound(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """A number of seconds that is one."""
    if value is not None and not 0.1 <= value <= LONGEST:
        raise click.BadParameter(f"{value} is not between 0.1 and {LONGEST:.0f}", context, option)
    return value


def number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """A number that is one."""
    if value is not None and value != value:
        raise click.BadParameter(f"{value} is no number", context, option)
    return value
