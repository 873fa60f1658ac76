"""What is going on, on stderr, and only where stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def shown(doing: str) -> Iterator[None]:
    """Say what is being done, if anything, until it is done."""
    if not doing or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(doing):
        yield
