"""Parts of texts, and what could not be learnt from them."""

from __future__ import annotations

from typing import Literal

from diag.facts.base import Passing
from diag.text import Line

How = Literal["missing", "unstarted", "failed", "silent"]


class Text(Passing, frozen=True, kw_only=True):
    """That a text of these `kinds` was there (`kernel-log`, `traceback`), read at one of its lines."""

    kinds: tuple[str, ...] = ()


class Sighting(Passing, frozen=True, kw_only=True):
    """A line that matches a symptom of a rule, with the lines near it.

    `matched` is the part that does, `values` what it names; `times` counts the lines that say the same but for numbers,
    `speakers` are the processes that said it.
    """

    rule: str
    matched: str
    near: tuple[Line, ...]
    values: dict[str, str]
    times: int = 1
    speakers: tuple[str, ...] = ()


class Unavailable(Passing, frozen=True, kw_only=True):
    """A probe was tried and told nothing: the reason is evidence of absence, which silence is not.

    `what` is the probe's key. `missing`: its program, file or module is not there; `unstarted`: it is there and could
    not be started (no right to, no program in it); `failed`: it did not do its work; `silent`: it ended well and
    nothing in its text was understood.
    """

    what: str
    reason: str
    how: How = "failed"
    tells: tuple[str, ...] = ()
