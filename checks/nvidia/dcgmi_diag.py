"""The table that NVIDIA's diagnosis prints (`dcgmi diag`): each test and how it ended, on which devices.

A result stands in the second column, for all devices (`Pass - All`), some (`Fail - GPU: 0`) or, from DCGM 4 on, one a
row (`GPU0: Pass`). What the tests say of themselves follows in rows called Warning, Error or Info, broken at any
letter. A test that failed is told as the health of the device, what heat did to its clock as a reason for a lower
clock. That a diagnosis was read is told by a mark.

What it cannot know: anything from the JSON, which the tool prints with `-j` in a form that its makers do not promise.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Line, Reading, Recognise, Text, expression, probe

HEAD = (
    r"^\W{0,20}\| Diagnostic\s{1,40}\| Result\s"
    r"|^\W{0,20}\| [A-Za-z][^|]{1,40}\| (?:Pass|Fail|Skip|Warn) - (?:GPUs?\b|All\b)"
)
RESULT = expression(
    r"(?:GPU ?(?P<one>[0-9]{1,4}): )?(?P<word>Pass|Fail|Skip|Warn)"
    r"(?: - (?:GPUs?:? (?P<some>[0-9, ]{1,200})|All))?"
)
SAYING = ("Warning", "Error", "Info")
WIDTH = 46
"""Where the text of the second column ends; one that goes on in the next row was cut there, a blank or not."""
HEAT = expression(r"GPU ([0-9]{1,4}) (?:There were )?[Tt]hermal violations totaling")
PENDING = expression(r"GPU ([0-9]{1,4}) ha[sd] (?:uncorrectable )?memory errors and row remappings are pending")


@probe(
    "dcgmi/diag",
    tells=(Reading, Text),
    recognise=Recognise(literals=("| Diagnostic ", " - GPU", " - All "), pattern=HEAD, lines=400),
)
def dcgmi_diag(capture: Capture) -> Iterator[Fact]:
    """Each test that failed, and the warnings that are known."""
    test, marked = "", False
    said: tuple[Line, str] | None = None
    for line in capture.lines():
        cells = line.text.split("|")
        name, cell = (cells[1].strip(), cells[2].strip()) if len(cells) > 3 else ("", "")
        found = RESULT.fullmatch(cell)
        if said and (name or found or not cell):
            yield from _sayings(capture, *said)
            said = None
        if name in SAYING:
            said = line, cells[2][1:WIDTH]
        elif said:
            said = said[0], said[1] + cells[2][1:WIDTH]
        elif found:
            test = name or test
            if not marked:
                yield Text(origin=capture.origin(line), kinds=("device-diagnosis",))
            marked = True
            if found["word"] == "Fail":
                yield from _failed(capture, line, test, found["one"] or found["some"] or "")
    if said:
        yield from _sayings(capture, *said)


def _failed(capture: Capture, line: Line, test: str, devices: str) -> Iterator[Fact]:
    for number in devices.replace(",", " ").split() or [""]:
        index = int(number) if number else None
        yield Reading(origin=capture.origin(line), name="health", value=f"Fail: {test}", vendor="nvidia", index=index)


def _sayings(capture: Capture, line: Line, said: str) -> Iterator[Fact]:
    words = " ".join(said.split())
    for pattern, name, value in ((HEAT, "throttle", "thermal_violation"), (PENDING, "retired.pending", "Yes")):
        if found := pattern.search(words):
            yield Reading(origin=capture.origin(line), name=name, value=value, vendor="nvidia", index=int(found[1]))
