"""Roots: folders shaped `checks/ kb/ reports/`, and what is loaded from them.

The bundled root goes the same way as a third party's or a user's. A later root may add ids, never replace one. A file
that does not load is listed in `broken` and stops nothing else.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from diag import facts, kb, matrix
from diag.check import Check
from diag.facts import Reference
from diag.finding import LANGUAGES, Broken
from diag.probe import Deduction, Probe

GROUP = "diag.roots"
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Loaded:
    """Everything the roots hold, by id."""

    probes: Mapping[str, Probe] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    deductions: tuple[Deduction, ...] = ()
    references: tuple[Reference, ...] = ()
    templates: Mapping[str, Path] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()


def bundled() -> Path:
    """The root that comes with diag: inside the wheel, or the live checkout of an editable install."""
    checkout = HERE.parents[1]
    return checkout if (checkout / "checks").is_dir() and HERE.parent.name == "src" else HERE / "_bundled"


def roots(further: Iterable[Path] = (), config: Path | None = None) -> list[Path]:
    """The roots in order: bundled, those of installed packages, the config folder's, those asked for."""
    found = [bundled(), *_packaged()]
    if config is not None and config.is_dir():
        found.append(config)
    return [*found, *further]


def _packaged() -> Iterator[Path]:
    for entry in entry_points(group=GROUP):
        spec = importlib.util.find_spec(entry.value.partition(":")[0])
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(folder)


def load(folders: Iterable[Path]) -> Loaded:
    """Load every file of every root; the first holder of an id keeps it."""
    shelf = _Shelf()
    for number, root in enumerate(folders):
        shelf.add_root(root, f"diag_root_{number}")
    return shelf.loaded()


class _Shelf:
    """Collects what the roots hold while they are read."""

    def __init__(self) -> None:
        self.probes: dict[str, Probe] = {}
        self.checks: dict[str, Check] = {}
        self.deductions: dict[str, Deduction] = {}
        self.references: list[Reference] = []
        self.templates: dict[str, Path] = {}
        self.kinds: dict[str, type[Reference]] = dict(_references(vars(facts)))
        self.broken: list[Broken] = []

    def loaded(self) -> Loaded:
        return Loaded(
            self.probes,
            self.checks,
            tuple(self.deductions.values()),
            tuple(self.references),
            self.templates,
            tuple(self.broken),
        )

    def add_root(self, root: Path, name: str) -> None:
        if not any((root / part).is_dir() for part in ("checks", "kb", "reports")):
            self.broken.append(Broken(where=str(root), error="not a root: it has no checks, kb or reports folder"))
        for path in _files(root / "checks", ".py"):
            self.attempt(path, lambda path=path: self.add_module(path, root / "checks", name))
        for path in _files(root / "kb" / "entries", ".yaml"):
            self.attempt(path, lambda path=path: self.keep_checks([kb.load(path, root)]))
        for path in _files(root / "kb" / "matrix", ".yaml"):
            self.attempt(path, lambda path=path: self.keep_checks(matrix.load(path, root)))
        for path in _files(root / "kb" / "reference", ".yaml"):
            self.attempt(path, lambda path=path: self.references.extend(kb.references(path, self.kinds)))
        for path in _files(root / "reports", ".j2"):
            self.templates.setdefault(path.name, path)

    def attempt(self, path: Path, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self.broken.append(Broken(where=str(path), error=_line(error)))

    def add_module(self, path: Path, folder: Path, name: str) -> None:
        slug = path.relative_to(folder).with_suffix("").as_posix()
        module = _imported(path, f"{name}.{slug.replace('/', '.').replace('-', '_')}")
        self.kinds.update(_references(vars(module)))
        for value in vars(module).values():
            if isinstance(value, Probe):
                self.keep(self.probes, value.key, value, path)
            elif isinstance(value, Deduction):
                self.keep(self.deductions, value.name, value, path)
            elif isinstance(value, Check):
                if value.id != slug.replace("_", "-"):
                    raise ValueError(f"check id {value.id!r} is not the file's path {slug.replace('_', '-')!r}")
                self.keep_checks([value])

    def keep_checks(self, checks: Iterable[Check]) -> None:
        for one in checks:
            missing = [language for language in LANGUAGES if language not in one.words]
            if missing:
                raise ValueError(f"{one.id} has no wording in {', '.join(missing)}")
            self.keep(self.checks, one.id, one, None)

    def keep(self, shelf: dict[str, Any], key: str, value: Any, path: Path | None) -> None:
        if shelf.setdefault(key, value) is not value:
            raise ValueError(f"{key!r} is already held by an earlier file{f' than {path.name}' if path else ''}")


def _line(error: Exception) -> str:
    """What went wrong with a file, in one line."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}: " + " ".join(str(error).split())[:300]


def _files(folder: Path, suffix: str) -> list[Path]:
    hidden = ("_", ".")
    return sorted(
        path
        for path in (folder.rglob(f"*{suffix}") if folder.is_dir() else ())
        if not any(part.startswith(hidden) for part in path.relative_to(folder).parts)
    )


def _imported(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _references(namespace: Mapping[str, Any]) -> Iterator[tuple[str, type[Reference]]]:
    for name, value in namespace.items():
        if isinstance(value, type) and issubclass(value, Reference) and value is not Reference:
            yield name, value
