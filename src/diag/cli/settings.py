"""`diag.toml`: what a user or a project has decided for every run: which rules, and what is waived until when.

The user's stands in the config folder, a project's in the working directory; both hold. It is data: it can waive a
finding for a time and with a reason, never change a rule. What is waived stays in the report.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import DecodeError, Struct, toml

from diag.cli.place import config_folder
from diag.errors import DiagError
from diag.finding import Waiver
from diag.text import decode

NAME = "diag.toml"
SIZE_CAP = 2**16
"""Bytes of the largest settings that are read."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a `diag.toml` may say: prefixes of rules to select or to ignore, and waivers."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    waive: tuple[Waiver, ...] = ()


def settings() -> Settings:
    """What the user's and the project's settings say together."""
    read = [_read(path) for path in _places()]
    return Settings(
        select=tuple(prefix for one in read for prefix in one.select),
        ignore=tuple(prefix for one in read for prefix in one.ignore),
        waive=tuple(waiver for one in read for waiver in one.waive),
    )


def known_waivers(waivers: tuple[Waiver, ...], ids: Collection[str]) -> None:
    """Refuse a waiver of a rule that there is not: it waives nothing."""
    for one in waivers:
        if one.id not in ids:
            from difflib import get_close_matches  # not above: nearly no run needs it

            near = get_close_matches(one.id, ids, 1)
            raise DiagError(f"{NAME}: no check {one.id!r}" + (f"; did you mean {near[0]!r}" if near else ""))


def _places() -> Iterator[Path]:
    """The files that are there, the user's first."""
    folder = config_folder()
    candidates = [folder / NAME] if folder else []
    candidates.append(Path(NAME))
    yield from (path for path in candidates if os.path.lexists(path))


def _read(path: Path) -> Settings:
    try:
        if path.exists() and not path.is_file():
            raise DiagError(f"cannot read {path}: it is no regular file")
        with path.open("rb") as file:
            raw = file.read(SIZE_CAP + 1)
    except OSError as error:
        raise DiagError(f"cannot read {path}: {error.strerror}") from error
    if len(raw) > SIZE_CAP:
        raise DiagError(f"{path} is too long for settings")
    try:
        told = toml.decode(decode(raw), type=Settings)
    except (DecodeError, ValueError, RecursionError) as error:
        raise DiagError(f"{path}: {error}") from error
    if "" in (*told.select, *told.ignore):
        raise DiagError(f"{path}: a prefix is empty")
    if bare := [one.id for one in told.waive if not one.reason.strip()]:
        raise DiagError(f"{path}: the waiver of {bare[0]} states no reason")
    return told
