"""Moore Threads' `musa_version_query`: the version of each part of the installed MUSA SDK.

A name and a colon on a line, then a block of fields. What this cannot know: which of several SDKs a program loads.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Runtime, expression, probe

PART = expression(r"^\W*musa_(?:toolkits|runtime):\s*$")
VERSION = expression(r'^\s*"version":\s{0,20}"([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})"')


@probe(
    "musa-version-query",
    tells=(Runtime,),
    command=("musa_version_query",),
    cost="import",
    recognise=Recognise(literals=("musa_toolkits:", "musa_runtime:"), pattern=PART.pattern, lines=7),
)
def musa_version_query(capture: Capture) -> Iterator[Fact]:
    """The version of the toolkit, since 5.1 of the runtime, which is the SDK's; other parts are numbered apart."""
    inside = False
    for line in capture.lines():
        if inside and (found := VERSION.match(line.text)):
            yield Runtime(origin=capture.origin(line), name="musa", version=found[1], kind="toolkit")
            return
        inside = (inside and line.text.strip() != "}") or bool(PART.match(line.text))
