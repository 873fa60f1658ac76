"""What a way says and does: its changes in words, and the commands that build the set that was judged."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from diag.facts import KnownSet, Published, Release
from diag.shell import spelled
from diag.versions import local, public
from diag.ways.tables import TORCH, Tables, exact, ranged
from diag.ways.wished import Way

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "nothing": "nothing",
        "none": "none",
        "newer": "{change} or newer",
        "needs": "needs {name} {version}",
        "inside": "run in the image {image}",
        "image": "image {image}",
    },
    "zh": {
        "nothing": "无需改动",
        "none": "卸载",
        "newer": "{change} 或更新版本",
        "needs": "需要 {name} {version}",
        "inside": "在镜像 {image} 中运行",
        "image": "镜像 {image}",
    },
}
EXPORT = re.compile(r"export((?:\s+\w+=[^\s$]*)+)")
DETACHED = re.compile(r"\bdocker run\b.*\s-(?:d|itd|dit)\s.*")
NAMED = re.compile(r"--name[ =](\S+)")
VENV = ("python3 -m venv .venv-new", ". .venv-new/bin/activate")


def told(way: Way, language: str) -> tuple[str, ...]:
    """What changes, and what the machine needs, in words."""
    words = WORDS[language]
    said = []
    for name, old in way.changed.items():
        new = way.versions.get(name) or words["none"]
        change = f"{name} {old} -> {new}" if old else f"{name} {new}"
        said.append(words["newer"].format(change=change) if name == "driver" and way.driver else change)
    for name, version in way.needs.items():
        need = words["needs"].format(name=name, version=version)
        least = name == "driver" and not (way.known and name in way.known.beside)
        said.append(words["newer"].format(change=need) if least else need)
    if way.image:
        said.append(words["image" if way.known else "inside"].format(image=way.image))
    return tuple(said) or (words["nothing"],)


def commands(way: Way, tables: Tables) -> tuple[str, ...]:
    """The commands that build the set; none where nothing is published, or where nothing is to be installed."""
    if way.known:
        return tuple(_known(way, way.known, tables))
    if way.image:
        return (spelled(tables.published[way.engine].start, {"image": way.image}),)
    install = tuple(_installation(way, way.release, tables)) if way.release else ()
    return (*_environment(way, install), *install) if install else ()


def _known(way: Way, known: KnownSet, tables: Tables) -> Iterator[str]:
    """The commands of a set that ran: its own, before them its image where they start none."""
    row = tables.publisher(known)
    lines = [one.replace(known.image, way.image) if known.image else one for one in known.install]
    if row and row.start and way.image and not any("docker run" in one for one in lines):
        lines = [spelled(row.start, {"image": way.image}), *lines]
    if lines:
        contained = any("docker run" in one for one in lines)
        yield from _contained(lines, way.image) if contained else (*_environment(way, lines), *lines)
    elif way.release:
        install = tuple(_installation(way, way.release, tables))
        yield from (*_environment(way, install), *install)


def _contained(lines: Sequence[str], image: str) -> Iterator[str]:
    """Lines of which one starts a container: variables go into it with that, what follows is typed inside."""
    exports = [found for one in lines if (found := EXPORT.fullmatch(one))]
    options = "".join(f" -e {word}" for found in exports for word in found[1].split())
    rest = [one for one in lines if not EXPORT.fullmatch(one)]
    for number, one in enumerate(rest):
        name = NAMED.search(one)
        yield one.replace(f" {image}", f"{options} {image}", 1) if "docker run" in one else one
        if DETACHED.fullmatch(one) and name and rest[number + 1 :]:
            yield f"docker exec -it {name[1]} bash"


def _environment(way: Way, install: Sequence[str]) -> tuple[str, ...]:
    """An environment of its own where the way is fresh, or where uv installs, which keeps out of the system's."""
    if not install:
        return ()
    uv = ("pip install uv",) if any(one.startswith("uv ") for one in install) else ()
    if way.python:
        new = f".venv-uv/bin/uv venv --seed --python {way.python} .venv-new"
        return ("python3 -m venv .venv-uv", ".venv-uv/bin/pip install uv", new, VENV[1], *uv)
    return (*VENV, *uv) if way.fresh or uv else ()


def _installation(way: Way, release: Release, tables: Tables) -> Iterator[str]:
    """The commands that install a release; a plug-in's after what it pins, which an engine's metadata would replace."""
    row = tables.published.get(release.package)
    moved = way.fresh or any(name not in tables.parts for name in way.changed)
    if not moved or (release.overrides and row is None):
        return
    others = [name for name in way.installed if way.fresh or name in way.changed]
    named = [_exactly(name, public(way.versions[name])) for name in others if way.versions.get(name)]
    named += [spelled('"{name}{bound}"', {"name": name, "bound": bound}) for name, bound in way.bounds.items()]
    if release.overrides:
        engines = sorted({one.partition(".")[0] for one in release.overrides} & set(exact(release)))
        for name in engines:
            yield f"pip install {_exactly(name, way.versions[name])}"
        yield " ".join(("pip install", _exactly(release.package, release.version), *named))
        return
    yield from _torch_build(way, release, tables)
    if way.build and row:
        yield _filled(row, release.version, way.build)
        if named:
            yield " ".join(("pip install", *named))
        return
    yield " ".join(("pip install", _exactly(release.package, release.version), *named))


def _torch_build(way: Way, release: Release, tables: Tables) -> Iterator[str]:
    """The command for a torch that stays, and is another build than the package index gives."""
    version = way.versions.get(TORCH, "")
    built, row = tables.release(TORCH, version), tables.published.get(TORCH)
    build = next((one for one in built.builds if f"cu{one.replace('.', '')}" == local(version)), "") if built else ""
    if way.fresh and row and built and build and build != built.runtime_version and TORCH in ranged(release):
        yield _filled(row, built.version, build)


def _filled(row: Published, version: str, build: str) -> str:
    return spelled(row.build, {"version": version, "build": build.replace(".", "")})


def _exactly(name: str, version: str) -> str:
    return spelled('"{name}=={version}"', {"name": name, "version": version})
