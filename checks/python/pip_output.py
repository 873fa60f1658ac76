"""What pip and uv say of packages outside their lists: `show`, how an installation ends, what was there before it.

A build has an environment of its own, which is thrown away: what pip installs there is not told. A package that is
installed twice in one text has the last version told. What this cannot know: what was removed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Engine, Fact, Line, Package, Recognise, canonical, expression, probe

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
    tells=(Package, Engine),
    recognise=Recognise(
        literals=(INSTALLED, "Requirement already satisfied: ", " + ", *BUILD),
        pattern=rf"^\W*{INSTALLED}\S|{SATISFIED.pattern}|{ADDED.pattern}|{'|'.join(BUILD)}",
        each=True,
        lines=400,
    ),
)
def pip_log(capture: Capture) -> Iterator[Fact]:
    """What an installation by pip or uv put in, and what was there before it."""
    told: dict[str, list[Fact]] = {}
    building = False
    for line in capture.lines():
        building = building or any(words in line.text for words in BUILD)
        ended = INSTALLED in line.text
        if not (ended and building):
            told |= {canonical(one[0]): list(_package(capture, line, *one)) for one in _named(line.text)}
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


def _package(capture: Capture, line: Line, name: str, version: str, location: str = "") -> Iterator[Fact]:
    if name and version:
        name = canonical(name)
        yield Package(origin=capture.origin(line), name=name, version=version, location=location)
        if name in ENGINES:
            yield Engine(origin=capture.origin(line), name=name, version=version)
