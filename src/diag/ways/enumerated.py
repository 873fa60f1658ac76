"""The ways from a set of versions to others: known sets, plug-ins' releases, releases of engines and of torch.

Pure tables: each way is a whole set, what of it changes, and what the changes cost. Whether a way leads to something
that works is the judge's answer, not decided here; what plainly cannot (another Python, an older C library or driver
than a release needs) is left out where a change of just that is a way as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from diag.facts import KnownSet, Release, Vendor
from diag.matrix.known import alike
from diag.versions import at_least, local, numbers, public, same, satisfies, within
from diag.ways.tables import PINNED, TORCH, Tables, Versions, exact, is_on, ranged
from diag.ways.wished import Given, Wanted, Way

COST = {"package": 1, "environment": 3, "python": 5, "container": 20, "driver": 400}
"""What a change costs: a package before a fresh environment, a container, a driver. Hardware is never changed."""
PYTHONS = ("3.12", "3.11", "3.10", "3.13", "3.14", "3.9")
"""The interpreters that a way may change to, those that most wheels are built for first."""
BROUGHT = ("distribution", "build")
"""Kinds of parts that stand in an environment, and come anew with another."""
HOST = ("driver", "device")
"""Kinds of parts that no environment and no image brings."""


def ways(given: Given, wanted: Sequence[Wanted], tables: Tables) -> Iterator[Way]:
    """Every way from the given set to one that grants all wishes."""
    first = next((one for one in wanted if one.name in tables.releases and one.name != TORCH), wanted[0])
    others = [one for one in wanted if one is not first]
    yield from _known(given, (first, *others), tables)
    plugins = {name for one in tables.of(Vendor) if one.vendor in given.makers for name in one.packages}
    found = [
        release
        for name in sorted(plugins if first.name else ())
        for release in tables.releases.get(name, ())
        if satisfies(exact(release).get(first.name, ""), first.specifier)
    ]
    for release in tables.releases.get(first.name, ()):
        if tables.fits(release, given.makers) and satisfies(release.version, first.specifier):
            found.append(release)
    for release in found:
        for way in _release(given, release, others, tables):
            yield replace(way, subject=first.name, version=public(way.versions[first.name]))


def _known(given: Given, wanted: Sequence[Wanted], tables: Tables) -> Iterator[Way]:
    """The sets that ran on such a device, with all that is wished for."""
    if not any(one.name or one.model for one in wanted):
        return
    for known in tables.of(KnownSet):
        named = all(one.granted(known.versions.get(one.name, "")) for one in wanted if one.name)
        if named and is_on(given.device, known.gpu) and alike(wanted[0].model, known.model):
            way = _ran(given, known, tables)
            subject = wanted[0].name or way.engine
            yield replace(way, subject=subject, version=known.versions.get(subject, ""))


def _ran(given: Given, known: KnownSet, tables: Tables) -> Way:
    """The way to a set that ran: what its image brings is no change of the machine."""
    have = given.versions
    whole = {**known.versions, **known.beside}
    goal = {
        name: have[name] if _lies(name, have, one, tables) else one.removesuffix(".*") for name, one in whole.items()
    }
    changes = _changes(have, goal)
    engine = next((name for name in known.versions if name in tables.releases and name != TORCH), "")
    row = tables.publisher(known)
    plain = row and row.package == engine and not known.install and not known.image
    release = tables.release(engine, known.versions[engine]) if plain else None
    needs = {name: goal[name] for name in changes if name not in have and tables.kind(name) in HOST}
    way = Way(
        versions={name: one for name, one in have.items() if tables.kind(name) not in BROUGHT} | goal,
        changed={name: old for name, old in changes.items() if name not in needs},
        needs=needs if TORCH in whole or "driver" in {*whole, *have} else needs | _driver(release, tables),
        installed=[name for name in goal if name not in tables.parts and name != engine],
        ranges={name: one for name, one in ranged(release).items() if name not in goal} if release else {},
        source=known.id,
        engine=engine,
        level=known.level,
        release=release,
        known=known,
        image=tables.fitting(known.image, row, known.versions[row.package], given.device) if row else known.image,
        fresh=bool(any(name in have for name in tables.releases) and not known.image and changes),
    )
    moved = any(old and tables.kind(name) not in HOST for name, old in way.changed.items())
    return replace(way, cost=_cost(way, tables) if moved or not known.image else _cost(replace(way, image=""), tables))


def _driver(release: Release | None, tables: Tables) -> dict[str, str]:
    """The driver that a release needs with the torch that it pins."""
    torch = tables.release(TORCH, exact(release).get(TORCH, "")) if release else None
    oldest = tables.oldest_driver(torch.runtime, torch.runtime_version) if torch else ""
    return {"driver": oldest} if oldest else {}


def _release(given: Given, release: Release, others: Sequence[Wanted], tables: Tables) -> Iterator[Way]:
    """A release with what it pins: its default build, and each further one that torch has, too."""
    for torch in _torches(given, release, others, tables):
        goal = {release.package: release.version, **exact(release)} | ({TORCH: torch} if torch else {})
        joined = _joined(goal, given, release, others, tables)
        if joined is None:
            continue
        built = tables.release(TORCH, torch)
        for build in ("", *_builds(release, built, tables)):
            whole = {**goal, **_runtime(given, built, build, tables), **joined, **_built(release, build)}
            base = _base(given, whole, release, set(joined), tables)
            yield from _further(replace(base, build=build), given, release, tables)


def _runtime(given: Given, torch: Release | None, build: str, tables: Tables) -> dict[str, str]:
    """The build of torch that is there, where it is just this, and the runtime of another than was told."""
    if torch is None:
        return {}
    runtime = build or torch.runtime_version
    told = {torch.runtime: runtime} if torch.runtime in given.asked else {}
    named = f"{torch.version}+{_suffix(runtime)}"
    return {**told, **({TORCH: named} if given.versions.get(TORCH) == named else {})}


def _torches(given: Given, release: Release, others: Sequence[Wanted], tables: Tables) -> list[str]:
    """The versions of torch for a release: the pinned one, else the one that is there, and the newest of each runtime.

    Empty where the release leaves torch to a plug-in that goes with the one it pins.
    """
    if release.package == TORCH:
        return [release.version]
    if (pinned := exact(release).get(TORCH)) or TORCH not in release.pins:
        return [pinned or ""]
    pin = ",".join((release.pins[TORCH], *(one.specifier for one in others if one.name == TORCH and one.specifier)))
    found = [given.versions[TORCH]] if satisfies(given.versions.get(TORCH, ""), pin) else []
    if release.overrides:
        return found or [tables.lowest(TORCH, pin)]
    fitting = [one for one in tables.releases.get(TORCH, ()) if satisfies(one.version, pin)]
    python = given.versions.get("python", "")
    runs = [one for one in fitting if satisfies(python, one.pins.get("python", "")) is not False]
    newest = {numbers(one.runtime_version)[:1]: one.version for one in reversed(runs or fitting)}
    by_age = sorted(newest.values(), key=numbers, reverse=True)
    return found + [one for one in by_age if not (found and same(one, found[0]))] or [""]


def _joined(
    goal: Versions, given: Given, release: Release, others: Sequence[Wanted], tables: Tables
) -> dict[str, str] | None:
    """What the other wishes add to a release's set; None where one of them cannot be granted in it."""
    added: dict[str, str] = {}
    for wish in others:
        whole = {**goal, **added}
        pin = ",".join(filter(None, (release.pins.get(wish.name, ""), wish.specifier)))
        have = given.versions.get(wish.name, "")
        if wish.name in whole:
            if not wish.granted(whole[wish.name]):
                return None
        elif wish.name == TORCH:
            return None
        elif rows := tables.releases.get(wish.name):
            fits = (one for one in rows if tables.fits(one, given.makers) and satisfies(one.version, pin))
            agreed = (one for one in fits if _agrees(one, whole))
            if (row := next(agreed, None)) is None:
                return None
            added |= {row.package: row.version, **{name: one for name, one in exact(row).items() if name not in whole}}
        else:
            named = wish.specifier[2:] if PINNED.fullmatch(wish.specifier) else ""
            fitting = [one for one in (have, named, *tables.versions.get(wish.name, ())) if one and satisfies(one, pin)]
            if not fitting:
                return None
            added[wish.name] = fitting[0]
    return added


def _agrees(release: Release, whole: Versions) -> bool:
    """Whether a release asks for the torch of a set, and for nothing in another version than stands there."""
    pins = exact(release)
    decided = TORCH in release.pins or TORCH not in whole
    return decided and all(same(one, whole[name]) for name, one in pins.items() if name in whole)


def _builds(release: Release, torch: Release | None, tables: Tables) -> list[str]:
    """The further builds of a release for which torch has one, too, where its maker publishes them."""
    row = tables.published.get(release.package)
    if not (row and row.build and torch and satisfies(release.version, f">={row.since or 0}")):
        return []
    return [one for one in release.builds if one in torch.builds and one != torch.runtime_version]


def _built(release: Release, build: str) -> dict[str, str]:
    """The versions of another build of a release: `0.26.0+cu129` for CUDA 12.9; none of the default one."""
    return {release.package: f"{release.version}+{_suffix(build)}", release.runtime: build} if build else {}


def _suffix(build: str) -> str:
    return f"cu{build.replace('.', '')}"


def _base(given: Given, goal: Versions, release: Release, joined: set[str], tables: Tables) -> Way:
    """The set of a release on the machine as it is; what the release brings anew costs nothing more."""
    have = given.versions
    choices = {name: pin for name, pin in ranged(release).items() if name not in goal or name == TORCH}
    moved = _moved(given, goal, choices, tables)
    pairs = {name: _named(one) for name, one in release.pairs.items() if not _lies(name, have, one, tables)}
    open_ = {name for name in pairs if _lies(name, have, release.pairs[name], tables) is None}
    whole = {**goal, **moved, **pairs}
    changes = _changes(have, whole)
    settled = release.package in have and release.package not in changes
    fresh = any(name in have for name in tables.releases) and not (settled and not changes.get(TORCH))
    left = _left(given, {**goal, **pairs}, choices, changes, tables) if fresh else set()
    whole = {name: one for name, one in whole.items() if name not in left}
    own = {release.package, release.runtime, TORCH} | joined | (set(whole) if release.overrides else set())
    kept = {name: one for name, one in have.items() if tables.kind(name) != "build" and name not in (*whole, *left)}
    told = {name: one for name, one in whole.items() if one and (name in own or name in have or name in pairs)}
    shown = own | given.asked | (set(whole) - set(exact(release)))
    new = set() if settled else own - set(pairs)
    shown -= left | open_
    free = set(choices) | set(moved) | joined | given.asked
    fixed = (*tables.parts, release.package, *exact(release))
    return Way(
        versions=kept | told,
        changed={name: old for name, old in changes.items() if name in shown and (old or name in new)},
        needs={name: pairs[name] for name in pairs if name in open_},
        installed=[one for one in kept | told if one in free and one not in fixed],
        ranges=_open(release, goal, tables) | choices,
        source=f"{release.package} {release.version}",
        engine=release.package,
        release=release,
        fresh=fresh,
    )


def _open(release: Release, goal: Versions, tables: Tables) -> dict[str, str]:
    """What the engines that a plug-in pins give ranges for, and the plug-in says nothing of."""
    engines = sorted({one.partition(".")[0] for one in release.overrides})
    rows = [row for name in engines if (row := tables.release(name, goal.get(name, "")))]
    return {name: pin for row in rows for name, pin in ranged(row).items() if name not in (*goal, *release.pins)}


def _moved(given: Given, goal: Versions, choices: Versions, tables: Tables) -> dict[str, str]:
    """What is there and cannot stay, although no version of it is pinned: the version to go to, empty where none is."""
    have = given.versions
    companions = tables.companions(have, goal.get(TORCH, ""), set(goal))
    unmet = [name for name, pin in choices.items() if name != TORCH and satisfies(have.get(name, ""), pin) is False]
    return {name: low for name in unmet if (low := tables.lowest(name, choices[name]))} | companions


def _left(given: Given, goal: Versions, choices: Versions, changes: Versions, tables: Tables) -> set[str]:
    """What stays behind in the old environment.

    That is what the release does not name, or what no known fault is about, unless it was asked about; and what came
    with what is replaced.
    """
    replaced = [tables.release(name, given.versions[name]) for name in given.versions if name in changes]
    gone = {name for name in given.versions if name in tables.releases and name not in goal}
    brought = gone.union(*(one.pins for one in replaced if one))
    kept = {name for name in choices if name in given.asked or any(name in one for one in tables.faults.values())}
    return {
        name
        for name in given.versions
        if name not in (*tables.parts, *goal, *kept) and (name in brought or name not in given.asked)
    }


def _further(base: Way, given: Given, release: Release, tables: Tables) -> Iterator[Way]:
    """The set as it is, with another Python, in the published image; each with a newer driver as well."""
    torch = None if release.overrides else tables.release(TORCH, base.versions.get(TORCH, ""))
    steps = list(_steps(base, given, [one for one in (release, torch) if one], tables)) or [base]
    built = torch or release
    for step in steps:
        inside = release.image_version if step.image else ""
        oldest = tables.oldest_driver(built.runtime, inside or base.build or built.runtime_version)
        have = given.versions.get("driver", "")
        if oldest and not have:
            yield _priced(replace(step, needs={**step.needs, "driver": oldest}), tables)
        elif oldest and within(have, f">={oldest}", series=True) is False:
            if any(tables.kind(name) == "runtime" for name in given.versions):
                yield _priced(step, tables)
            newer = replace(step, versions={**step.versions, "driver": oldest}, driver=oldest)
            yield _priced(replace(newer, changed={**step.changed, "driver": have}), tables)
        else:
            yield _priced(step, tables)


def _steps(base: Way, given: Given, built: Sequence[Release], tables: Tables) -> Iterator[Way]:
    """The set as it is where Python and the C library are what it was built for, with another Python, in an image."""
    have = given.versions
    pythons = [one.pins.get("python", "") for one in built]
    runs = all(satisfies(have.get("python", ""), one) is not False for one in pythons)
    loads = all(at_least(have.get("glibc", ""), one.glibc) is not False for one in built)
    if runs and loads:
        yield base
    fit = next((one for one in PYTHONS if all(satisfies(one, pin) for pin in pythons)), "")
    if loads and not runs and fit:
        changed = {**base.changed, "python": have["python"]}
        yield replace(base, versions={**base.versions, "python": fit}, changed=changed, python=fit, fresh=True)
    image = tables.image(built[0], given.device)
    brings = {"glibc", "python"}.union(tables.published[base.engine].brings) if image else set()
    if image and not base.build and any(name in have and name in (*base.changed, "glibc", "python") for name in brings):
        own = {base.engine, TORCH, *base.changed, *built[0].pins, *brings}
        stays = {name: one for name, one in base.versions.items() if name in tables.parts or name in own}
        yield replace(
            base,
            versions={name: one for name, one in stays.items() if name not in ("glibc", "python")},
            changed={name: old for name, old in base.changed.items() if name not in brings},
            needs={name: one for name, one in base.needs.items() if name not in brings},
            image=image,
        )


def _priced(way: Way, tables: Tables) -> Way:
    return replace(way, cost=_cost(way, tables))


def _cost(way: Way, tables: Tables) -> int:
    """What the changes of a way cost: of packages each where they are, and a fresh environment once."""
    moved = [name for name, old in way.changed.items() if old]
    packages = sum(COST["package"] for name in moved if tables.kind(name) in BROUGHT)
    host = [name for name in moved if tables.kind(name) not in BROUGHT]
    if way.image:
        return COST["container"] + sum(COST["driver"] for name in host if tables.kind(name) in HOST)
    parts = sum(COST["python" if tables.kind(name) == "python" else "driver"] for name in host)
    return parts + (COST["environment"] if way.fresh else packages) + (COST["package"] if way.build else 0)


def _named(range_: str) -> str:
    """The version that a plug-in goes with: of a range the oldest named."""
    named = re.findall(r">=\s*([\w.]+)", range_)
    return named[0] if named else range_.removeprefix("==").removesuffix(".*")


def _lies(name: str, have: Versions, range_: str, tables: Tables) -> bool | None:
    """Whether what is there of a part lies in what is asked for, which may be a bare version; None where not told."""
    if name not in have:
        return None
    asked = range_ if range_[:1] in "<>=!~" else f"=={range_}"
    if tables.kind(name) == "distribution":
        return have[name] == range_ or (not local(range_) and satisfies(have[name], asked) is True)
    return within(have[name], asked, series=True)


def _changes(given: Versions, goal: Versions) -> dict[str, str]:
    """What changes, with what was there; a local part that the goal does not name may stay, but torch's."""
    changed = {}
    for name, version in goal.items():
        have = given.get(name, "")
        apart = not version or bool(local(version)) or name == TORCH or not same(have, version)
        if have != version and (not have or apart):
            changed[name] = have
    return changed
