"""What pip and uv say of packages outside their lists: `show`, how an installation ends, what was there before it.

Also what an installed package asks for and does not get, and folders that pip stumbles over.

A build has an environment of its own, which is thrown away: what pip installs there is not told. A package that is
installed twice in one text has the last version told. What this cannot know: what was removed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import (
    Capture,
    Engine,
    Fact,
    Line,
    Package,
    PackageFault,
    Recognise,
    Requirement,
    canonical,
    expression,
    probe,
)

ENGINES = ("vllm", "sglang")
FIELD = expression(r"^\W*(Name|Version|Location): (\S.{0,400})$")
DISTRIBUTION = expression(r"[A-Za-z0-9][\w.\-]{0,100}")
VERSION = expression(r"\d[\w.+!\-]{0,80}")
SATISFIED = expression(
    r"^\W*Requirement already satisfied: ([A-Za-z0-9][\w.\-]{0,100})\S{0,200}(?: ?[<>=!~]\S{0,200})? in (\S+)"
    r"(?: \(from [^\n]{1,400}\))? \((\d[\w.+!\-]{0,80})\)\s*$"
)
INSTALLED = "Successfully installed "
ADDED = expression(r"^\s*\+ ([A-Za-z0-9][\w.\-]{0,100})==(\d[\w.+!\-]{0,80})(?: \(from .{1,400}\))?\s*$")
WHEEL = expression(r"([A-Za-z0-9][\w.\-]{0,100})-(\d[\w.+!]{0,80})")
CONFLICT = expression(
    r"(?:^|[\s>|])([A-Za-z0-9][\w.\-]{0,100}) (\d[\w.+!\-]{0,80}) (?:requires|has requirement) "
    r"([A-Za-z0-9][\w.\-]{0,100})(?:\[[\w,\-]{1,80}\])?([<>=!~][^\s;]{0,200})(?:; [^\n]{1,300})?, but you(?:'ll)? have "
    r"([A-Za-z0-9][\w.\-]{0,100}) (\d[\w.+!\-]{0,80}?)(?: which is incompatible)?\.\s*$"
)
LEFT = expression(r"Ignoring invalid distribution ([~\-][\w.\-]{1,100}) \(([^()\n]{1,300})\)\s*$")
BUILD = ("pip-build-env", "install build dependencies")
"""What pip prints, where it is told to print much, before it fills an environment for a build."""


@probe(
    "pip/show",
    tells=(Package, Engine),
    recognise=Recognise(
        literals=("Name: ", "Version: ", "Location: "), pattern=FIELD.pattern, each=True, lines=12, at_least=2
    ),
)
def pip_show(capture: Capture) -> Iterator[Fact]:
    """`pip show` and `uv pip show`: the version is the line after the name, the folder a few lines below."""
    name, named, version, at = "", 0, "", Line(0, "")
    for line in capture.lines():
        key, value = found.groups() if (found := FIELD.match(line.text.rstrip())) else ("", "")
        if key == "Name":
            yield from _package(capture, at, name, version)
            name, named, version = value if DISTRIBUTION.fullmatch(value) else "", line.number, ""
        elif key == "Version" and line.number == named + 1 and VERSION.fullmatch(value):
            version, at = value, line
        elif key == "Location" and version:
            yield from _package(capture, at, name, version, value)
            name = version = ""
    yield from _package(capture, at, name, version)


@probe(
    "pip/log",
    tells=(Package, Engine, Requirement),
    recognise=Recognise(
        literals=(INSTALLED, "Requirement already satisfied: ", " + ", ", but you", *BUILD),
        pattern=rf"^\W*{INSTALLED}\S|{SATISFIED.pattern}|{ADDED.pattern}|{CONFLICT.pattern}|{'|'.join(BUILD)}",
        each=True,
        lines=400,
    ),
)
def pip_log(capture: Capture) -> Iterator[Fact]:
    """What an installation by pip or uv put in, what was there before it, and which of these do not fit together.

    `pip check` prints the same of what does not fit as the end of an installation.
    """
    told: dict[str, list[Fact]] = {}
    building = False
    for line in capture.lines():
        building = building or any(words in line.text for words in BUILD)
        ended = INSTALLED in line.text
        if not (building and (ended or CONFLICT.search(line.text))):
            told |= {canonical(one[0]): list(_package(capture, line, *one)) for one in _named(line.text)}
            told |= {str(one.told()): [one] for one in _asked(capture, line)}
        building = building and not ended
    for facts in told.values():
        yield from facts


def _named(text: str) -> Iterator[tuple[str, ...]]:
    """Each package of a line: name, version, and the folder where it is told."""
    if found := SATISFIED.match(text):
        yield found[1], found[3], found[2]
    elif found := ADDED.match(text):
        yield found[1], found[2]
    elif INSTALLED in text:
        words = text.partition(INSTALLED)[2].split()
        yield from ((found[1], found[2]) for word in words if (found := WHEEL.fullmatch(word)))
    elif found := CONFLICT.search(text):
        yield from ((found[1], found[2]), (found[5], found[6]))


def _asked(capture: Capture, line: Line) -> Iterator[Requirement]:
    """What a package of a line asks for and does not get."""
    if (found := CONFLICT.search(line.text)) and canonical(found[3]) == canonical(found[5]):
        yield Requirement(
            origin=capture.origin(line),
            package=canonical(found[1]),
            version=found[2],
            name=canonical(found[3]),
            specifier=found[4],
        )


def _package(capture: Capture, line: Line, name: str, version: str, location: str = "") -> Iterator[Fact]:
    if name and version:
        name = canonical(name)
        yield Package(origin=capture.origin(line), name=name, version=version, location=location)
        if name in ENGINES:
            yield Engine(origin=capture.origin(line), name=name, version=version)


@probe(
    "pip/leftovers",
    tells=(PackageFault,),
    recognise=Recognise(literals=("Ignoring invalid distribution ",), pattern=LEFT.pattern, each=True, lines=2_000),
)
def pip_leftovers(capture: Capture) -> Iterator[Fact]:
    """The folders of half an uninstallation; an older pip prints the tilde that opens their names as a dash."""
    told: set[tuple[str, ...]] = set()
    for line in capture.lines():
        if (found := LEFT.search(line.text)) and found.groups() not in told:
            told.add(found.groups())
            name = f"~{found[1][1:]}"
            yield PackageFault(origin=capture.origin(line), name=name, problem="leftover", location=found[2])
