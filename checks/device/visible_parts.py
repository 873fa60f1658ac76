"""Parts of GPUs (MIG) that a command is to see: `CUDA_VISIBLE_DEVICES=MIG-… python train.py`.

Lines that set the variable and nothing else are read with the other variables. What the command is, and whether it was
ever run, is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Setting, expression, probe

SET = expression(
    r"(?:^|\s)(?P<name>(?:CUDA|NVIDIA)_VISIBLE_DEVICES)=(?P<value>MIG-[\w/.-]{1,80}(?:,[\w/.-]{1,80}){0,31})\s+\S"
)


@probe(
    "device/visible-parts",
    tells=(Setting,),
    recognise=Recognise(literals=("_VISIBLE_DEVICES=MIG-",), pattern=r"_VISIBLE_DEVICES=MIG-", each=True, lines=3),
)
def visible_parts(capture: Capture) -> Iterator[Fact]:
    """The variable before a command."""
    for line in capture.lines():
        if found := SET.search(line.text):
            yield Setting(origin=capture.origin(line), name=found["name"], value=found["value"])
