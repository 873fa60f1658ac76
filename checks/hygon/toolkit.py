"""DTK, Hygon's toolkit: its version, from its folder and from its compiler.

Its `rocm-smi`, `hy-smi` and `rocminfo` are read where AMD's are. What this cannot know: which of several toolkits a
program uses; the link `/opt/dtk` names no version by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Runtime, expression, probe

RELEASE = expression(r"^\W*(?:DTK-)?([0-9]{2}\.[0-9]{2}(?:\.[0-9]{1,2})?)\b")
COMPILER = expression(r"^\W*dcc version: ([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})")
FOLDER = expression(r"^\W*InstalledDir: \S{0,100}/dtk-([0-9]{2}\.[0-9]{2}(?:\.[0-9]{1,2})?)/")


@probe("opt/dtk/version", tells=(Runtime,), path="/opt/dtk/.info/rocm_version")
def dtk_version(capture: Capture) -> Iterator[Fact]:
    """The version of the toolkit in its usual folder, under the name that ROCm gives such a file: `25.04.4`."""
    for line in capture.lines():
        if found := RELEASE.match(line.text):
            yield Runtime(origin=capture.origin(line), name="dtk", version=found[1], kind="toolkit")
            return


@probe(
    "dcc",
    tells=(Runtime,),
    recognise=Recognise(literals=("dcc version: ",), pattern=COMPILER.pattern, lines=6),
)
def dcc(capture: Capture) -> Iterator[Fact]:
    """What DTK's `hipcc --version` prints: the compiler, and the toolkit where its folder bears the version."""
    for line in capture.lines():
        if found := COMPILER.match(line.text):
            yield Runtime(origin=capture.origin(line), name="dcc", version=found[1], kind="toolkit")
        elif found := FOLDER.match(line.text):
            yield Runtime(origin=capture.origin(line), name="dtk", version=found[1], kind="toolkit")
            return
