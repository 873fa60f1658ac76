"""The set of versions that somebody asks about: the words after `diag matrix check`.

`NAME==VERSION` is a distribution, any other `NAME=VERSION` a part that `kb/reference/components.yaml` names:
`gpu=8xH200`, `driver=570.124.06`, `python=3.12`, `cuda=12.8`. What this cannot know: what is meant by a name that
stands nowhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from diag.api import (
    WORD,
    Capture,
    Component,
    Engine,
    Fact,
    Origin,
    Package,
    Recognise,
    canonical,
    count,
    expression,
    probe,
)

COMMAND = expression(r"^\s*(?:[^\s]{0,80}[$#>]\s+)?diag matrix check(?P<words>\s.*)$")
COUNTED = expression(r"(?P<count>[1-9][0-9]{0,4})[xX*](?P<name>\D.*|\d{4}.*)")
ENGINES = ("vllm", "sglang", "lmdeploy")


@probe(
    "matrix",
    tells=(Component, Package, Engine),
    recognise=Recognise(("diag matrix check ",), COMMAND.pattern, each=True, lines=0),
)
def asked(capture: Capture) -> Iterator[Fact]:
    """Each word that names a part, in the order given; a distribution is told as one that is installed."""
    for line in capture.lines():
        found = COMMAND.search(line.text)
        for word in _words(found["words"]) if found else ():
            if part := WORD.fullmatch(word):
                yield from _told(capture.origin(line), part["name"], part["sign"], part["version"])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quote
        return text.split()


def _told(origin: Origin, name: str, sign: str, version: str) -> Iterator[Fact]:
    if sign != "=":
        name = canonical(name)
        yield Component(origin=origin, name=name, version=version)
        yield Package(origin=origin, name=name, version=version)
        if name in ENGINES:
            yield Engine(origin=origin, name=name, version=version, role="planned")
        return
    counted = COUNTED.fullmatch(version) if name == "gpu" else None
    number = count(counted["count"]) if counted else None
    yield Component(origin=origin, name=name.lower(), version=counted["name"] if counted else version, count=number)
