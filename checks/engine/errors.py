"""Lines by which programs say that they failed: whatever no rule explains is worth a look.

It tells that they stand there, not what they mean; a traceback that a program survived is told, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Recognise, Text, expression, probe

KIND = "error"
FAILED = expression(
    r"^[^\w]*(?:\S.{0,200}?\s)?(?:Traceback \(most recent call last\):|(?:[\w.]{0,60}\.)?(?:RuntimeError"
    r"|AcceleratorError|OutOfMemoryError|DistBackendError"
    r"|ImportError|ModuleNotFoundError|AssertionError|ValueError|OSError): \S"
    r"|(?:CUDA|HIP|NCCL|RCCL|HCCL|XPU) (?:error|failure)\b|Segmentation fault|core dumped)"
)


@probe(
    "errors",
    tells=(Text,),
    recognise=Recognise(
        literals=(
            *("Traceback (most recent call last):", "RuntimeError: ", "AcceleratorError: ", "OutOfMemoryError: "),
            *("DistBackendError: ", "ImportError: ", "ModuleNotFoundError: ", "AssertionError: ", "ValueError: "),
            *("OSError: ", "CUDA error", "HIP error", "NCCL error", "Segmentation fault", "core dumped"),
        ),
        pattern=FAILED.pattern,
        each=True,
        lines=40,
    ),
)
def errors(capture: Capture) -> Iterator[Fact]:
    """The last line of each run of such lines: of a traceback, the exception."""
    last = None
    for line in capture.lines():
        last = line if FAILED.match(line.text) else last
    if last:
        yield Text(origin=capture.origin(last), kinds=(KIND,))
