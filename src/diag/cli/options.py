"""Options that several commands share, and the way a command takes a group of them as one value."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


class Language(str, Enum):
    """The languages diag speaks."""

    en = "en"
    zh = "zh"


class FailOn(str, Enum):
    """The severity from which a finding makes the exit code 1."""

    error = "error"
    warning = "warning"
    never = "never"


@dataclasses.dataclass(frozen=True)
class Output:
    """Where the report goes, in what form and language."""

    form: Annotated[
        str, typer.Option("--format", help="What goes to stdout: terminal, json, markdown.", metavar="FORMAT")
    ] = "terminal"
    report: Annotated[
        list[Path] | None, typer.Option("--report", help="Also write the report here; format by extension (.json .md).")
    ] = None
    fail_on: Annotated[FailOn, typer.Option(help="Severity from which the exit code is 1.")] = FailOn.error
    lang: Annotated[Language, typer.Option(help="Language of the report.")] = Language.en
    no_redact: Annotated[bool, typer.Option("--no-redact", help="Leave names, addresses and secrets as read.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Write nothing to stdout; the exit code says it.")] = False


@dataclasses.dataclass(frozen=True)
class Scope:
    """Which rules judge, and how long all may take."""

    select: Annotated[list[str] | None, typer.Option(help="Only checks whose id begins so.", metavar="ID-PREFIX")] = (
        None
    )
    ignore: Annotated[list[str] | None, typer.Option(help="No checks whose id begins so.", metavar="ID-PREFIX")] = None
    root: Annotated[
        list[Path] | None, typer.Option(help="A further folder with checks, kb, reports.", metavar="DIR")
    ] = None
    timeout: Annotated[
        float | None, typer.Option(help="Bound on the whole run, in seconds.", min=0.1, metavar="SECONDS")
    ] = None


@dataclasses.dataclass(frozen=True)
class Live:
    """How much of this host is looked at."""

    quick: Annotated[bool, typer.Option("--quick", help="No torch import; no device is touched.")] = False
    deep: Annotated[bool, typer.Option("--deep", help="All measurements in full.")] = False
    python: Annotated[
        str | None, typer.Option(help="The interpreter to examine, where torch and the engine live.", metavar="PATH")
    ] = None


def grouped(function: Callable[..., int]) -> Callable[..., int]:
    """The command with each parameter that is a group of options replaced by the options themselves."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))

    @functools.wraps(function)
    def command(**given: Any) -> int:
        taken = {
            name: group(**{one.name: given.pop(one.name) for one in _options(group)}) for name, group in groups.items()
        }
        return function(**given, **taken)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _options(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]
