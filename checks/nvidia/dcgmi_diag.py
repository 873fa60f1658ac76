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
    r"|^\W{0,20}\| (?:Warning|Error)\s{1,30}\| .{0,60}\bGPU [0-9]"
)
RESULT = expression(
    r"(?:GPU ?(?P<one>[0-9]{1,4}): )?(?P<word>Pass|Fail|Skip|Warn)"
    r"(?: - (?:GPUs?:? (?P<some>[0-9, ]{1,200})|All))?"
)
SAYING = ("Warning", "Error", "Info")
WIDTH = 46
"""Where the text of the second column ends; one that goes on in the next row was cut there, a blank or not."""
SAID = (
    (
        "throttle",
        "thermal_violation",
        expression(r"GPU (?P<gpu>[0-9]{1,4}) (?:There were )?[Tt]hermal violations totaling"),
    ),
    (
        "throttle",
        "thermal_violation",
        expression(
            r"[Tt]hermal violations totaling [0-9.]{1,12} ?s ?e ?c ?o ?n ?d ?s\b.{0,60} for GPU (?P<gpu>[0-9]{1,4})"
        ),
    ),
    ("throttle", "thermal_violation", expression(r"[Tt]hermal violations totaling [0-9.]{1,12}")),
    ("throttle", "thermal_violation", expression(r"due to thermal violation in GPU (?P<gpu>[0-9]{1,4})")),
    ("throttle", "thermal_violation", expression(r"Temperature [0-9]{1,4} of \D{1,30} (?P<gpu>[0-9]{1,4}) exceeded")),
    (
        "retired.pending",
        "Yes",
        expression(r"GPU (?P<gpu>[0-9]{1,4}) ha[sd] (?:uncorrectable )?memory errors and row rem"),
    ),
    ("retired.pending", "Yes", expression(r"pending retired page has been detected in GPU (?P<gpu>[0-9]{1,4})")),
    (
        "remapped.failure",
        "Yes",
        expression(r"GPU (?P<gpu>[0-9]{1,4}) had uncorrectable memory errors and row remapping failed"),
    ),
    (
        "ecc.uncorrected",
        "",
        expression(r"Detected (?P<value>[0-9]{1,9}) volatile double-bit ECC error.{0,6} in GPU (?P<gpu>[0-9]{1,4})"),
    ),
    ("persistence", "Off", expression(r"Persistence mode for GPU (?P<gpu>[0-9]{1,4}) is disabled")),
    ("link.inactive", "", expression(r"GPU (?P<gpu>[0-9]{1,4})'s NvLink link (?P<value>[0-9]{1,3}) is currently down")),
    ("health", "Reset", expression(r"GPU (?P<gpu>[0-9]{1,4}) requires a reset to recover from a fault")),
    ("health", "Reboot", expression(r"GPU (?P<gpu>[0-9]{1,4}) fault may have left the OS in an inconsistent state")),
)
"""What DCGM says of a device, and the reading that it amounts to."""
OPENINGS = (
    *("ermal violations totaling", "due to thermal violation in GPU", "exceeded user-specified maximum"),
    *("row remappings are pending", "row remapping failed", "pending retired page has been", "volatile double-bit ECC"),
    *("s NvLink link ", "requires a reset to recover", "left the OS in an inconsistent state"),
)


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


def _sayings(capture: Capture, line: Line, said: str) -> Iterator[Fact]:
    words = " ".join(said.split())
    told: set[str] = set()
    for name, value, pattern in SAID:
        if name not in told and (found := pattern.search(words)):
            told.add(name)
            read = found.groupdict()
            index = int(read["gpu"]) if read.get("gpu") else None
            given = value or read.get("value") or ""
            yield Reading(origin=capture.origin(line), name=name, value=given, vendor="nvidia", index=index)


@probe(
    "dcgmi/said",
    tells=(Reading,),
    recognise=Recognise(literals=OPENINGS, pattern="|".join(OPENINGS), each=True, lines=20),
)
def dcgmi_said(capture: Capture) -> Iterator[Fact]:
    """What DCGM says in lines that no table broke: `dcgmi health`, JSON, the log of its engine."""
    for line in capture.lines():
        if line.text.count("|") < 3:
            yield from _sayings(capture, line, line.text)
