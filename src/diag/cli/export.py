"""`diag kb export`: the knowledge base as one JSON document, for other programs, reviewers and translators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field, json

from diag import __version__
from diag.check import Check
from diag.cli.emit import write
from diag.cli.knowledge import of_component
from diag.cli.opening import load
from diag.cli.options import Bounds
from diag.finding import Confidence, Remedy, Severity
from diag.symptoms import Symptoms


class ExportedEntry(Struct, frozen=True, kw_only=True):
    """An entry; wording by language, `versions` by the name of the component that it is about (PEP 440).

    `text` says where the lines stand that it reads, `checked` (ISO 8601) when its sources were read. `fires` and
    `silent` are the texts that prove it.
    """

    id: str
    severity: Severity
    confidence: Confidence
    about: str
    text: tuple[str, ...]
    title: dict[str, str]
    cause: dict[str, str]
    symptoms: Symptoms
    versions: dict[str, tuple[str, ...]]
    remedies: tuple[Remedy, ...]
    explains: tuple[str, ...]
    consequence: bool
    sources: tuple[str, ...]
    checked: str
    fires: tuple[str, ...]
    silent: tuple[str, ...]


class Export(Struct, frozen=True, kw_only=True):
    """The entries of all roots by id, and the version of diag that read them."""

    schema_: Literal["diag/kb/1"] = field(default="diag/kb/1", name="schema")
    tool: str = __version__
    entries: tuple[ExportedEntry, ...]


def run(component: str, roots: Sequence[Path]) -> int:
    """Print the entries of a component, or all."""
    found = of_component(load(Bounds(root=tuple(roots))), component)
    write(json.format(json.encode(Export(entries=tuple(map(_exported, found)))), indent=1).decode() + "\n")
    return 0


def _exported(check: Check) -> ExportedEntry:
    assert check.symptoms is not None
    return ExportedEntry(
        title={language: words["title"] for language, words in check.words.items()},
        cause={language: words["cause"] for language, words in check.words.items()},
        symptoms=check.symptoms,
        text=check.reads,
        versions=dict(check.ranges),
        **{name: getattr(check, name) for name in _SAME},
    )


_SAME = (
    *("id", "severity", "confidence", "about", "remedies", "explains", "consequence"),
    *("sources", "checked", "fires", "silent"),
)
"""Fields that a check has under the same name."""
