"""The ways from a set of versions to others: known sets, plug-ins' releases, releases of engines and of torch.

Pure tables: each way is a whole set with what changes, the commands, and what the changes cost. Whether a way leads to
something that works is the judge's answer, not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from diag.facts import ComponentName, KnownSet, Level, Pin, Published, Reference, Release, RuntimeDriver, Vendor
from diag.matrix.known import alike
from diag.text import matches
from diag.versions import canonical, local, numbers, parse, public, same, satisfies, within

COST = {"package": 1, "python": 5, "container": 20, "driver": 400}
"""What a change costs: a package before an environment, a container, a driver. Hardware is never changed."""
PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
"""The interpreters that a way may change to, those that most wheels are built for first."""
PINNED = re.compile(r"==[\w.]+(?:\+[\w.]+)?")
WISH = re.compile(r"([A-Za-z][\w.-]*)\s*((?:[<>!~]=?|===?).*)?")
TORCH = "torch"
R = TypeVar("R", bound=Reference)
Versions = Mapping[str, str]


class Wanted(NamedTuple):
    """What is wished for: a distribution in a range (empty for any version), and a model; either may be empty."""

    name: str = ""
    specifier: str = ""
    model: str = ""


class Way(Struct, frozen=True, kw_only=True):
    """A set of versions, what changes, the commands, and the cost.

    `source` names the release or the known set that the way is made from, `version` is that of what was wished for,
    `level` what is known of it before it is judged, `kind` what has to change most.
    """

    versions: dict[str, str]
    changes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    cost: int = 0
    source: str
    version: str = ""
    level: Level = "allowed-by-metadata"
    kind: str = "package"


class Tables:
    """The rows that ways are made from."""

    def __init__(self, rows: Iterable[Reference]) -> None:
        self._rows: dict[type[Reference], list[Reference]] = {}
        for row in rows:
            self._rows.setdefault(type(row), []).append(row)

    def of(self, kind: type[R]) -> list[R]:
        """The rows of one kind."""
        return self._rows.get(kind, [])  # type: ignore[return-value]

    @cached_property
    def releases(self) -> dict[str, list[Release]]:
        """The releases of each distribution, the newest first."""
        found: dict[str, list[Release]] = {}
        for row in self.of(Release):
            if parse(row.version):
                found.setdefault(row.package, []).append(row)
        for rows in found.values():
            rows.sort(key=lambda one: parse(one.version) or 0, reverse=True)
        return found

    @cached_property
    def parts(self) -> dict[str, ComponentName]:
        """The parts that are no distributions, by name."""
        return {row.name: row for row in self.of(ComponentName)}

    @cached_property
    def published(self) -> dict[str, Published]:
        """How each distribution is published."""
        return {row.package: row for row in reversed(self.of(Published))}

    def image(self, release: Release) -> str:
        """The image of a release, empty where none is published."""
        row = self.published.get(release.package)
        return row.image.replace("{version}", release.version) if row else ""

    def kind(self, name: str) -> str:
        """What a part is: as `ComponentName` has it, else a distribution."""
        return self.parts[name].kind if name in self.parts else "distribution"

    def release(self, package: str, version: str) -> Release | None:
        """The release of this public version."""
        return next((one for one in self.releases.get(package, ()) if same(one.version, version)), None)

    def companions(self, given: Versions, torch: str, pinned: set[str]) -> dict[str, str]:
        """What is there and was compiled for another torch: the version that is for this one, empty where none is."""
        rows: dict[str, list[Pin]] = {}
        for row in self.of(Pin) if torch else ():
            if row.name == TORCH and row.package in given and row.package not in (*pinned, TORCH):
                rows.setdefault(row.package, []).append(row)
        moved = {}
        for name, known in rows.items():
            fitting = [one.version for one in known if satisfies(torch, one.specifier)]
            if not any(f"{public(given[name])}.".startswith(f"{version}.") for version in fitting):
                newest = fitting[-1] if fitting else ""
                moved[name] = f"{newest}.0" if newest.count(".") == 1 else newest
        return moved

    def fits(self, release: Release, makers: frozenset[str]) -> bool:
        """Whether a release is for devices of these makers: as their plug-in, else by its build or by torch's."""
        if owners := {one.vendor for one in self.of(Vendor) if release.package in one.packages}:
            return not makers or not owners.isdisjoint(makers)
        built = (release, *self.releases.get(TORCH, ()))
        runtime = next((self.parts[one.runtime] for one in built if one.runtime in self.parts), None)
        return not makers or (runtime is not None and runtime.vendor in makers)

    def oldest_driver(self, runtime: str, version: str) -> str:
        """The oldest driver on which a runtime of this major version starts; empty where no row tells."""
        same = [one for one in self.of(RuntimeDriver) if one.runtime == runtime]
        major = [one for one in same if numbers(one.version)[:1] == numbers(version)[:1]]
        return next((one.compatible_driver for one in major if one.compatible_driver), "")


def wishes(words: Iterable[str]) -> list[Wanted]:
    """The wishes in words (`NAME`, `NAME>=1,<2`, `model=NAME`); ValueError, with the word, for what is none."""
    found, model = [], ""
    for word in words:
        split = WISH.fullmatch(word.strip())
        if word.startswith("model=") and word != "model=":
            model = word.removeprefix("model=")
        elif split is None:
            raise ValueError(word)
        else:
            allowed = re.sub(r"\+[\w.]+", "", split[2] or "")
            SpecifierSet(allowed)
            found.append(Wanted(canonical(split[1]), allowed))
    return [one._replace(model=model) for one in found or [Wanted()]]


def ways(given: Versions, wanted: Wanted, tables: Tables, makers: frozenset[str]) -> Iterator[Way]:
    """Every way from the given set to one that grants the wish; `makers` are those of the devices, where known."""
    yield from _known(given, wanted, tables)
    plugins = {name for one in tables.of(Vendor) if one.vendor in makers for name in one.packages}
    for name in sorted(plugins if wanted.name else ()):
        for release in tables.releases.get(name, ()):
            pinned = release.pins.get(wanted.name, "")
            if PINNED.fullmatch(pinned) and satisfies(pinned[2:], wanted.specifier):
                yield from _release(given, release, tables)
    for release in tables.releases.get(wanted.name, ()):
        if tables.fits(release, makers) and satisfies(release.version, wanted.specifier):
            yield from _release(given, release, tables)


def _known(given: Versions, wanted: Wanted, tables: Tables) -> Iterator[Way]:
    """The sets that ran on such a device, with what is wished for."""
    for one in tables.of(KnownSet):
        version = one.versions.get(wanted.name, "")
        exact = version == wanted.specifier.removeprefix("==")
        granted = bool(version) and (exact or satisfies(version, wanted.specifier))
        if (
            (granted or not wanted.name)
            and (wanted.name or wanted.model)
            and _on(given, one)
            and alike(wanted.model, one.model)
        ):
            goal = {name: version.removesuffix(".*") for name, version in {**one.versions, **one.beside}.items()}
            changes = _changes(given, goal)
            yield Way(
                versions={**{name: old for name, old in given.items() if name not in goal}, **goal},
                changes=(*changes.values(), *([f"image {one.image}"] if one.image else [])) or ("nothing",),
                commands=_commands(one, tables),
                cost=sum(_cost(name, tables, image=bool(one.image)) for name in changes if name in given),
                source=one.id,
                version=version,
                level=one.level,
                kind="known",
            )


def _commands(known: KnownSet, tables: Tables) -> tuple[str, ...]:
    """The commands of a set: its own, before them its image where they start none; none where nothing is published."""
    rows = [one for one in tables.of(Published) if one.vendor == known.vendor and one.package in known.versions]
    if known.image and not any("docker run" in one for one in known.install):
        return (*(one.start.replace("{image}", known.image) for one in rows[:1] if one.start), *known.install)
    goal = {**known.versions, **known.beside}
    named = " ".join(f'"{name}=={version}"' for name, version in goal.items() if name not in tables.parts)
    return known.install or ((f"pip install {named}",) if rows else ())


def _on(given: Versions, known: KnownSet) -> bool:
    """Whether the set ran on such a device: its name is one of the set's, with the maker's word or without."""
    name = given.get("gpu", "").lower()
    return any(matches(word, one) for one in known.gpu for word in (name, name.partition(" ")[2]) if word)


def _release(given: Versions, release: Release, tables: Tables) -> Iterator[Way]:
    """A release with what it pins: its default build, and each further one that torch has, too.

    What it gives a range for stays where that allows it, or goes to the oldest version allowed.
    """
    exact = {name: pin[2:] for name, pin in release.pins.items() if PINNED.fullmatch(pin)}
    goal = {release.package: release.version, **exact, **{name: _named(one) for name, one in release.pairs.items()}}
    torch = tables.release(TORCH, goal.get(TORCH, ""))
    default = torch.runtime_version if torch else ""
    if torch and given.get(TORCH) == f"{torch.version}+{_suffix(default)}":
        goal[TORCH] = given[TORCH]
    row = tables.published.get(release.package)
    further = row and row.build and torch and satisfies(release.version, f">={row.since or 0}")
    others = [one for one in release.builds if torch and one in torch.builds and one != default] if further else []
    ranged = {name: pin for name, pin in release.pins.items() if name in given and name not in (*goal, "python")}
    unmet = [name for name, pin in ranged.items() if satisfies(given[name], pin) is False]
    oldest = {name: low for name, pin in ranged.items() if (low := _lowest(pin))}
    companions = tables.companions(given, goal.get(TORCH, ""), set(goal) | set(ranged))
    for moved in dict.fromkeys((tuple(unmet), tuple(ranged))):
        lowered = {name: oldest[name] for name in moved if name in oldest} | companions
        for build in ("", *others):
            whole = {**goal, **lowered, **(_built(release, build) if build else {})}
            base = _base(given, whole, release, tables)
            yield from _further(base, given, release, tables, build or default)


def _built(release: Release, build: str) -> dict[str, str]:
    """The versions of another build of a release: `0.26.0+cu129` for CUDA 12.9."""
    return {release.package: f"{release.version}+{_suffix(build)}", release.runtime: build}


def _suffix(build: str) -> str:
    return f"cu{build.replace('.', '')}"


def _named(range_: str) -> str:
    """The version that a plug-in goes with: of a range the oldest named."""
    return _lowest(range_) or range_.removeprefix("==")


def _lowest(pin: str) -> str:
    """The oldest version that a range names, where it allows it."""
    named = re.findall(r">=\s*([\w.]+)", pin)
    return named[0] if len(named) == 1 and satisfies(named[0], pin) is not False else ""


def _base(given: Versions, goal: Versions, release: Release, tables: Tables) -> Way:
    """The set of a release on the machine as it is; what the release brings anew costs nothing more."""
    build = goal.get(release.runtime, "")
    kept = {name: old for name, old in given.items() if tables.kind(name) != "build" and goal.get(name) != ""}
    changes = _changes(given, goal)
    own = {name for name in changes if name in given or name in (release.package, release.runtime, *release.pairs)}
    shown = tuple(text for name, text in changes.items() if name in own or name == TORCH or release.overrides)
    built = tables.release(TORCH, goal.get(TORCH, ""))
    told = given.get(built.runtime, "") if built and not build else ""
    if built and told and told != built.runtime_version:
        shown = (*shown, f"{built.runtime} {told} -> {built.runtime_version}")
    image = bool(tables.image(release))
    return Way(
        versions={
            **kept,
            **{name: one for name, one in goal.items() if one and (name in own or name == TORCH or release.overrides)},
        },
        changes=shown or ("nothing",),
        commands=_fresh(given, _installation(release, goal, changes, tables)),
        cost=sum(_cost(name, tables, image=image) for name in own if not same(goal[name], given.get(name, ""))),
        source=f"{release.package} {release.version}",
        version=release.version,
        kind="build" if build else "package",
    )


def _fresh(given: Versions, commands: tuple[str, ...]) -> tuple[str, ...]:
    """The commands in an environment of their own where torch is there already: pip would keep a build of it."""
    if TORCH not in given or not commands:
        return commands
    venv = ("python3 -m venv .venv-new", ". .venv-new/bin/activate")
    uv = ("pip install uv",) if any(one.startswith("uv ") for one in commands) else ()
    return (*venv, *uv, *commands)


def _installation(release: Release, goal: Versions, changes: Versions, tables: Tables) -> tuple[str, ...]:
    """The commands that install a release; a plug-in's after what it pins, which an engine's metadata would replace."""
    exact = {name for name, pin in release.pins.items() if PINNED.fullmatch(pin)}
    if release.overrides and release.package not in tables.published:
        return ()
    if release.overrides:
        engines = sorted({one.partition(".")[0] for one in release.overrides} & exact)
        return tuple(f'pip install "{name}=={goal[name]}"' for name in (*engines, release.package))
    moved = [name for name in changes if goal[name] and name not in (*tables.parts, release.package, *exact)]
    others = "".join(f' "{name}=={goal[name]}"' for name in moved)
    if build := goal.get(release.runtime, ""):
        row = tables.published[release.package]
        filled = row.build.replace("{version}", release.version).replace("{build}", build.replace(".", ""))
        return (filled, f"pip install{others}") if others else (filled,)
    return (f'pip install "{release.package}=={release.version}"{others}',)


def _further(base: Way, given: Versions, release: Release, tables: Tables, runtime: str) -> Iterator[Way]:
    """The set as it is, with another Python, in the published image; each with a newer driver as well."""
    steps = [base]
    wanted = release.pins.get("python", "")
    fit = next((one for one in PYTHONS if satisfies(one, wanted)), "")
    if "python" in given and satisfies(given["python"], wanted) is False and fit:
        install = [one.removeprefix("uv ") for one in base.commands if "install" in one and not one.endswith(" uv")]
        commands = (f"uv venv --python {fit}", ". .venv/bin/activate", *(f"uv {one}" for one in install))
        steps.append(_with(base, {"python": fit}, f"python {given['python']} -> {fit}", commands, "python"))
    image = tables.image(release)
    if image and base.kind == "package" and not {"glibc", "python"}.isdisjoint(given):
        inside = {name: version for name, version in base.versions.items() if name not in ("glibc", "python")}
        start = (tables.published[release.package].start.replace("{image}", image),)
        steps.append(_with(replace(base, versions=inside), {}, f"run in the image {image}", start, "container"))
    built = (None if release.overrides else tables.release(TORCH, base.versions.get(TORCH, ""))) or release
    oldest = tables.oldest_driver(built.runtime, runtime or built.runtime_version)
    if oldest and "driver" not in given:
        steps = [replace(one, changes=(*one.changes, f"needs driver {oldest} or newer")) for one in steps]
    yield from steps
    if oldest and within(given.get("driver", ""), f">={oldest}", series=True) is False:
        for step in steps:
            change = f"driver {given['driver']} -> {oldest} or newer"
            yield _with(step, {"driver": oldest}, change, step.commands, "driver")


def _with(way: Way, versions: Versions, change: str, commands: tuple[str, ...], kind: str) -> Way:
    changes = (*(one for one in way.changes if one != "nothing"), change)
    whole = {**way.versions, **versions}
    kinds = f"{way.kind} {kind}" if way.kind != "package" else kind
    return replace(way, versions=whole, changes=changes, commands=commands, cost=way.cost + COST[kind], kind=kinds)


def _changes(given: Versions, goal: Versions) -> dict[str, str]:
    """What changes, by name; a local part that the goal does not name may stay."""
    changed = {}
    for name, version in goal.items():
        have = given.get(name, "")
        if have != version and (not have or local(version) or public(have) != version or name == TORCH):
            changed[name] = f"{name} {have} -> {version or 'none'}" if have else f"{name} {version}"
    return changed


def _cost(name: str, tables: Tables, *, image: bool) -> int:
    """The cost of a change to one part; what an image brings is a container's."""
    kind = tables.kind(name)
    if kind in ("distribution", "build"):
        return COST["package"]
    return COST["python"] if kind == "python" else COST["container" if image and kind != "driver" else "driver"]
