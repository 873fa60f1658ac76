"""The version of torch that somebody printed at a prompt."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, TorchBuild, expression, probe

ASKED = expression(r"(?:print\(torch\.__version__\)[\"']?\)?|>>> torch\.__version__)\s*$")
ANSWERED = expression(r"^\s*'?(\d{1,2}\.\d{1,3}\.\d{1,3}[\w.+]{0,60})'?\s*$")


@probe(
    "torch-version",
    tells=(TorchBuild,),
    recognise=Recognise(literals=("torch.__version__",), pattern=ASKED.pattern, lines=1),
)
def torch_version(capture: Capture) -> Iterator[Fact]:
    """A statement that prints torch's version, and the version alone on the next line."""
    asked = False
    for line in capture.lines():
        if asked and (found := ANSWERED.match(line.text)):
            yield TorchBuild(origin=capture.origin(line), version=found[1])
        asked = bool(ASKED.search(line.text))
