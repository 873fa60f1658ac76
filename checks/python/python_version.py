"""The version that an interpreter printed when it was asked with `python -V`."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Python, Recognise, expression, probe

PRINTED = expression(r"^[\s>]{0,40}Python (3\.\d{1,2}\.\d{1,2}(?:(?:a|b|rc)\d{1,2})?)\+?\s*$")


@probe(
    "python/version",
    tells=(Python,),
    recognise=Recognise(literals=("Python 3.",), pattern=PRINTED.pattern, each=True, lines=4),
)
def python_version(capture: Capture) -> Iterator[Fact]:
    """A line that is nothing but what `python -V` prints; each version once."""
    told: set[str] = set()
    for line in capture.lines():
        if (found := PRINTED.match(line.text)) and found[1] not in told:
            told.add(found[1])
            yield Python(origin=capture.origin(line), version=found[1])
