"""What SYCL's `sycl-ls` sees: a device a line, for each back end that offers it.

One GPU is listed once by Level Zero and once by OpenCL. Level Zero is what torch uses, so its lines are the devices;
those of OpenCL count only where it has none. The version in brackets is that of the compute runtime, which the two
back ends write differently (1.3.26918 and 23.30.26918): the one of the lines that count is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Accelerator, Capture, Driver, Fact, Line, Recognise, expression, probe

LISTED = expression(
    r"^\W*\[?(?:ext_oneapi_)?(?P<backend>level_zero|opencl):gpu(?::(?P<old>[0-9]{1,4})\]|\]\[\w{1,20}:(?P<new>[0-9]{1,4})\])"
    r"\s{0,9}[^,]{1,80}, (?P<name>.{1,120}?)\s{1,9}\[(?P<version>[0-9][\w.+-]{1,40})\]\s*$"
)
REST = expression(r"\s(?:OpenCL\s)?[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}(?:\sNEO)?\s*$")


@probe(
    "sycl-ls",
    tells=(Driver, Accelerator),
    command=("sycl-ls",),
    recognise=Recognise(literals=("level_zero:gpu", "opencl:gpu"), pattern=LISTED.pattern, each=True, lines=16),
)
def sycl_ls(capture: Capture) -> Iterator[Fact]:
    """The GPUs of the maker, and the compute runtime that found them."""
    listed = [(line, found) for line in capture.lines() if (found := LISTED.match(line.text)) and "Intel" in line.text]
    native = [(line, found) for line, found in listed if found["backend"] == "level_zero"]
    for line, found in native or listed:
        yield _device(capture, line, found, numbered=bool(native))
    for line, found in (native or listed)[:1]:
        yield Driver(origin=capture.origin(line), vendor="intel", version=found["version"])


def _device(capture: Capture, line: Line, found: re.Match[str], *, numbered: bool) -> Accelerator:
    """The device of a line; OpenCL's numbers count processors, too, so they are not those of the GPUs."""
    return Accelerator(
        origin=capture.origin(line),
        vendor="intel",
        name=REST.sub("", found["name"].rstrip()).strip(),
        index=int(found["old"] or found["new"]) if numbered else None,
        seen_by="tool",
    )
