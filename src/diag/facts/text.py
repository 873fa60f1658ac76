"""Parts of texts, and what could not be learnt from them."""

from __future__ import annotations

from typing import Literal

from diag.facts.base import Passing

How = Literal["missing", "unstarted", "failed", "silent"]


class Text(Passing, frozen=True, kw_only=True):
    """A window of a longer text around lines that some entry asks about; `kinds` says what texts they stand in."""

    content: str
    kinds: tuple[str, ...] = ()


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
