"""Roots: folders shaped `checks/ kb/ reports/`, and what is loaded from them.

The bundled root goes the same way as a third party's or a user's. A later root may add ids, never replace one. A file
that does not load is listed in `broken` and stops nothing else.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from diag import facts
from diag.cache import place
from diag.check import Check
from diag.documents import Documents
from diag.errors import PASSING, DiagError
from diag.facts import Fact, Reference
from diag.finding import LANGUAGES, SEVERITIES, Broken
from diag.probe import Deduction, Probe
from diag.scan import Signatures
from diag.sections import literals

GROUP = "diag.roots"
PARTS = ("checks", "kb", "reports")
WORDING = {"title", "summary", "cause"}
HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Later:
    """Rows of reference that are read only where a fact of one of the kinds `beside` was told: they are many."""

    path: Path
    beside: tuple[str, ...]
    rows: Callable[[], Iterable[Reference]]


@dataclass(frozen=True)
class Loaded:
    """Everything the roots hold, by id; `overlaid` are the rows of the matrix that overlays replaced or added,
    `kept` the file where what texts are searched for is kept compiled."""

    probes: Mapping[str, Probe] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    deductions: tuple[Deduction, ...] = ()
    references: tuple[Reference, ...] = ()
    later: tuple[Later, ...] = ()
    templates: Mapping[str, Path] = field(default_factory=dict)
    broken: tuple[Broken, ...] = ()
    overlaid: frozenset[str] = frozenset()
    kept: Path | None = None

    @cached_property
    def signatures(self) -> Signatures:
        """What every text is searched for: the literals of all probes and all symptoms."""
        return Signatures((*self.asking, *literals(self.probes.values())), self.kept)

    @cached_property
    def asking(self) -> Mapping[str, list[Check]]:
        """The checks that want to hear of a line with a literal, by the literal."""
        asking: dict[str, list[Check]] = {}
        for check in self.checks.values():
            for one in check.symptoms.literals if check.symptoms else ():
                asking.setdefault(one, []).append(check)
        return asking

    @cached_property
    def tellers(self) -> Mapping[type[Fact], list[str]]:
        """The keys of the probes that may tell a kind of fact."""
        tellers: dict[type[Fact], list[str]] = {}
        for probe in self.probes.values():
            for kind in probe.tells:
                tellers.setdefault(kind, []).append(probe.key)
        return tellers


@dataclass(frozen=True)
class _Opened:
    """A root whose rules are not kept yet: checks of modules that were loaded, and modules that wait."""

    root: Path
    name: str
    checks: list[tuple[Path, Check]] = field(default_factory=list)
    rules: list[Path] = field(default_factory=list)


def bundled() -> Path:
    """The root that comes with diag: inside the wheel, or the live checkout of an editable install."""
    checkout = HERE.parents[1]
    return checkout if (checkout / "checks").is_dir() and HERE.parent.name == "src" else HERE / "_bundled"


def roots(further: Iterable[Path] = (), config: Path | None = None) -> list[Path]:
    """The roots in order: bundled, those of installed packages, the config folder's, those asked for."""
    found = [bundled(), *_packaged()]
    if config is not None and is_root(config):
        found.append(config)
    return [*found, *further]


def _packaged() -> Iterator[Path]:
    for entry in entry_points(group=GROUP):
        package = entry.value.partition(":")[0]
        try:
            spec = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            spec = None
        # One that is not there is handed on all the same: loading it says so.
        yield from map(Path, (spec.submodule_search_locations or ()) if spec else (package,))


def is_root(folder: Path) -> bool:
    """Whether a folder has a part that a root is made of."""
    # A home that may not be looked into holds none.
    return any(os.path.isdir(folder / part) for part in PARTS)


def load(folders: Iterable[Path]) -> Loaded:
    """Load every file of every root; the first holder of an id keeps it."""
    return Shelf(folders).loaded()


def templates(root: Path) -> dict[str, Path]:
    """The templates for reports that a root holds, by file name."""
    return {path.name: path for path in _files(root / "reports", ".j2")}


class Shelf:
    """The roots, opened: what says which texts to take is loaded at once, the rules and their data when asked for.

    So the commands of a host can run while its rules are still read. `cache` is a folder where YAML is kept parsed;
    `wanted` answers of a module's source whether it is needed, None where all are.
    """

    def __init__(
        self, folders: Iterable[Path], cache: Path | None = None, wanted: Callable[[bytes], bool] | None = None
    ) -> None:
        folders = list(folders)
        self.probes: dict[str, Probe] = {}
        self.templates: dict[str, Path] = {}
        self._checks: dict[str, Check] = {}
        self._deductions: dict[str, Deduction] = {}
        self._references: list[Reference] = []
        self._later: list[Later] = []
        self._kinds: dict[str, type[Reference]] = dict(_references(vars(facts)))
        self._broken: list[Broken] = []
        self._overlays: list[tuple[Path, str]] = []
        self._overlaid: set[str] = set()
        self._wanted = wanted
        self._scan = place(cache, "scan", folders, whole=wanted is None)
        self._documents = Documents(place(cache, "kb", folders, whole=wanted is None))
        self._opened = [self._open(root, f"diag_root_{number}") for number, root in enumerate(folders)]

    def loaded(self) -> Loaded:
        """Everything that the roots hold."""
        # A root's rules and data are kept before those of the next, so that a later root never replaces an id.
        while self._opened:
            self._add_rules(self._opened.pop(0))
        self._documents.keep()
        for path, slug in self._overlays:
            self._lay_over(path, slug)
        return Loaded(
            self.probes,
            self._checks,
            tuple(self._deductions.values()),
            tuple(self._references),
            tuple(self._later),
            self.templates,
            tuple(self._broken),
            frozenset(self._overlaid),
            self._scan,
        )

    def overlay(self, folder: Path) -> None:
        """Let the rows in a folder of files like those of `kb/matrix` replace the roots' of the same id."""
        paths = _files(folder, ".yaml")
        if not paths:
            raise DiagError(f"overlay {folder}: no .yaml in it")
        for path in paths:
            self._overlays.append((path, _slug(path, folder)))

    def _open(self, root: Path, name: str) -> _Opened:
        """Keep the probes and deductions of a root's modules; its checks wait, and so do the modules of rules alone."""
        opened = _Opened(root, name)
        if not is_root(root):
            self._broken.append(Broken(where=str(root), error="not a root: it has no checks, kb or reports folder"))
        for part in (root / name for name in PARTS if (root / name).is_dir()):
            if not os.access(part, os.R_OK | os.X_OK):
                self._broken.append(Broken(where=str(part), error="PermissionError: it cannot be read"))
        for path in _files(root / "checks", ".py"):
            source = _source(path)
            if self._wanted and not self._wanted(source):
                continue
            if _holds_rules_alone(source):
                opened.rules.append(path)
            else:
                self._attempt(path, lambda path=path: self._add_module(path, opened))
        self.templates = {**templates(root), **self.templates}
        return opened

    def _add_rules(self, opened: _Opened) -> None:
        root = opened.root
        for path in opened.rules:
            self._attempt(path, lambda path=path: self._add_module(path, opened))
        for path, check in opened.checks:
            self._attempt(path, lambda check=check: self._keep_checks([check]))
        for part, work in (("entries", self._add_entry), ("matrix", self._add_matrix), ("reference", self._refer)):
            folder = root / "kb" / part
            for path in _files(folder, ".yaml") if part != "entries" or self._wanted is None else ():
                self._attempt(path, lambda path=path, work=work, folder=folder: work(path, _slug(path, folder)))

    def _add_entry(self, path: Path, slug: str) -> None:
        from diag import kb

        document = self._documents.read(path)
        try:
            self._keep_checks([kb.load(document, slug)])
        except Exception:
            # One that does not load is looked into again next time.
            self._documents.drop(document)
            raise

    def _add_matrix(self, path: Path, slug: str) -> None:
        from diag.matrix import rows

        document = self._documents.read(path)
        self._keep_checks(rows.checks(document, slug))
        told = rows.facts(document, f"matrix/{slug}")
        own = cache(lambda: tuple(one for one in told if rows.key(one) not in self._overlaid))
        self._later.append(Later(path, rows.BESIDE, own))

    def _lay_over(self, path: Path, slug: str) -> None:
        from diag.matrix import rows

        try:
            document = Documents(None).read(path)
            checks, told = list(rows.checks(document, slug)), tuple(rows.facts(document, f"overlay/{slug}"))
            rows.proved(checks, told)
            for one in checks:
                self._checks.pop(one.id, None)
            self._keep_checks(checks)
        except Exception as error:
            raise DiagError(f"overlay {path}: {_line(error)}") from error
        self._overlaid |= {one.id for one in checks} | {rows.key(one) for one in told}
        self._later.append(Later(path, rows.BESIDE, lambda: told))

    def _refer(self, path: Path, slug: str) -> None:
        from diag import kb

        document = self._documents.read(path)
        told = partial(kb.references, document, self._kinds)
        if beside := kb.beside(document):
            self._later.append(Later(path, beside, cache(lambda: tuple(told()))))
        else:
            self._references.extend(told())

    def _attempt(self, path: Path, work: Any) -> None:
        try:
            work()
        except PASSING:
            raise
        except BaseException as error:
            self._broken.append(Broken(where=str(path), error=_line(error)))

    def _add_module(self, path: Path, opened: _Opened) -> None:
        slug = path.relative_to(opened.root / "checks").with_suffix("").as_posix()
        module = _imported(path, f"{opened.name}.{slug.replace('/', '.').replace('-', '_')}")
        self._kinds.update(_references(vars(module)))
        for value in vars(module).values():
            if isinstance(value, Probe):
                self._keep(self.probes, value.key, value, path)
            elif isinstance(value, Deduction):
                self._keep(self._deductions, f"{module.__name__}.{value.name}", value, path)
            elif isinstance(value, Check):
                if value.id != slug.replace("_", "-"):
                    raise ValueError(f"check id {value.id!r} is not the file's path {slug.replace('_', '-')!r}")
                opened.checks.append((path, value))

    def _keep_checks(self, checks: Iterable[Check]) -> None:
        for one in checks:
            said = {language: set(one.words.get(language, ())) for language in LANGUAGES}
            if missing := [language for language in LANGUAGES if not said[language] >= WORDING]:
                raise ValueError(f"{one.id} has no full wording in {', '.join(missing)}")
            if one.severity not in SEVERITIES:
                raise ValueError(f"{one.id}: severity {one.severity!r} is none of {', '.join(SEVERITIES)}")
            self._keep(self._checks, one.id, one, None)

    def _keep(self, shelf: dict[str, Any], key: str, value: Any, path: Path | None) -> None:
        if shelf.setdefault(key, value) is not value:
            raise ValueError(f"{key!r} is already held by an earlier file{f' than {path.name}' if path else ''}")


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # loading it will say so
        return b""


def _holds_rules_alone(source: bytes) -> bool:
    """Whether a module only makes checks, as its source says: it can wait until they are asked for."""
    return b"@check(" in source and not any(word in source for word in (b"robe(", b"eduction("))


def _slug(path: Path, folder: Path) -> str:
    # As `relative_to` has it, which takes longer than the rest of loading an entry.
    return "/".join(path.parts[len(folder.parts) :])[: -len(path.suffix)]


def _line(error: BaseException) -> str:
    """What went wrong with a file, in one line."""
    return f"{type(error).__name__}: " + " ".join(str(error).split())[:300]


def _files(folder: Path, suffix: str) -> list[Path]:
    hidden = ("_", ".")
    found: list[str] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(hidden)]
        found += [os.path.join(parent, name) for name in files if name.endswith(suffix) and not name.startswith(hidden)]
    return sorted(map(Path, filter(os.path.isfile, found)))


def _imported(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Annotations that are strings are resolved through sys.modules.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _references(namespace: Mapping[str, Any]) -> Iterator[tuple[str, type[Reference]]]:
    for name, value in namespace.items():
        if isinstance(value, type) and issubclass(value, Reference) and value is not Reference:
            yield name, value
