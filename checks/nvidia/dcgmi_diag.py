"""NVIDIA's diagnosis (`dcgmi diag`): each test and how it ended, on which devices, and what DCGM says of them.

A result stands in the second column, for all devices (`Pass - All`), some (`Fail - GPU: 0`) or, from DCGM 4 on, one a
row (`GPU0: Pass`). What the tests say of themselves follows in rows called Warning, Error or Info, broken at any
letter; the health watch, the JSON and the log of DCGM say the same in a line. A test that failed is told as the health
of the device, what heat did to its clock as a reason for a lower clock. That a diagnosis was read is told by a mark.

What it cannot know: how a test ended from the JSON, which has a form that its makers do not promise.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, Line, Reading, Recognise, Text, expression, probe

HEAD = (
    r"^\W{0,20}\| Diagnostic\s{1,40}\| Result\s"
    r"|^\W{0,20}\| [A-Za-z][^|]{1,40}\| (?:Pass|Fail|Skip|Warn) - (?:GPUs?\b|All\b)"
    r"|^\W{0,20}\| (?:Warning|Error)\s{1,30}\| .{0,60}\bGPU [0-9]"
)
RESULT = expression(
    r"(?:GPU ?(?P<one>[0-9]{1,4}): )?(?P<word>Pass|Fail|Skip|Warn)"
    r"(?: - (?:GPUs?:? (?P<some>[0-9, ]{1,200})|All))?"
)
SAYING = ("Warning", "Error", "Info")
WIDTH = 46
"""Where the text of the second column ends; one that goes on in the next row was cut there, a blank or not."""
HEAT = expression(r"[Tt]hermal violations totaling [0-9]|due to thermal violation in GPU [0-9]")
SAID = {
    HEAT: ("throttle", "thermal_violation"),
    expression(r"ha[sd] (?:uncorrectable )?memory errors and row remappings are pending"): ("retired.pending", "Yes"),
    expression(r"had uncorrectable memory errors and row remapping failed"): ("remapped.failure", "Yes"),
}
"""What DCGM says of a device, and the reading that it amounts to."""
DEVICE = expression(r"\bGPU ([0-9]{1,4})\b")
ROW = 3
"""Strokes of a row of the table, which may end before its sentence does."""


@probe(
    "dcgmi/diag",
    tells=(Reading, Text),
    recognise=Recognise(
        literals=("| Diagnostic ", " - GPU", " - All ", "| Warning  ", "| Error  "), pattern=HEAD, lines=400
    ),
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


@probe(
    "dcgm/said",
    tells=(Reading,),
    recognise=Recognise(
        literals=("violations totaling", "thermal violation in GPU", "row remapping"),
        pattern="|".join(words.pattern for words in SAID),
        each=True,
        lines=20,
    ),
)
def dcgm_said(capture: Capture) -> Iterator[Fact]:
    """What DCGM says in a line that no table broke."""
    for line in capture.lines():
        if line.text.count("|") < ROW:
            yield from _sayings(capture, line, line.text)


def _sayings(capture: Capture, line: Line, said: str) -> Iterator[Fact]:
    words = " ".join(said.split())
    device = DEVICE.search(words)
    index = int(device[1]) if device else None
    for pattern, (name, value) in SAID.items():
        if pattern.search(words):
            yield Reading(origin=capture.origin(line), name=name, value=value, vendor="nvidia", index=index)
