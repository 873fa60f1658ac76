"""What processes hold and what they compute, as `diag ops --pid` takes it: device files, and the samples of `perf`."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Fact, HotSymbol, ProcessHolds, Recognise, expression, probe

HOLDS = expression(
    r"^\W*process (?P<pid>[0-9]{1,9}) \((?P<name>.{0,32}?)\) holds "
    r"(?P<devices>/dev/[^;]{1,2000}|no device)(?P<torch>; torch)?(?:; threads (?P<threads>[0-9 ]{1,20000}))?"
)
HEAD = expression(r"^# Overhead\s")
ROW = expression(
    r"^\s{1,10}(?P<share>[0-9]{1,3}\.[0-9]{2})%\s+(?:(?P<thread>[0-9]{1,9}):(?P<command>\S{0,40})\s+|(?P<other>\S{1,40})\s+)?"
    r"(?P<object>\S{1,200})\s+\[[.kguH]\]\s(?P<symbol>.{1,4000}?)(?:\s+-\s+-)?\s*$"
)
LONGEST = 400
"""Characters of a symbol that are kept: the end of a template's name repeats its beginning."""


@probe("process/holds", tells=(ProcessHolds,), recognise=Recognise((" holds ",), HOLDS.pattern, lines=2_000))
def holds(capture: Capture) -> Iterator[Fact]:
    """Each process, with what it has open."""
    for line in capture.lines():
        if found := HOLDS.match(line.text):
            devices = tuple(found["devices"].split()) if found["devices"] != "no device" else ()
            yield ProcessHolds(
                origin=capture.origin(line),
                pid=int(found["pid"]),
                name=found["name"],
                devices=devices,
                torch=bool(found["torch"]),
                threads=tuple(map(int, (found["threads"] or found["pid"]).split())),
            )


@probe("perf", tells=(HotSymbol,), recognise=Recognise(("# Overhead",), HEAD.pattern, lines=2_000))
def perf(capture: Capture) -> Iterator[Fact]:
    """Each function, as `perf report --stdio` prints it."""
    for line in capture.lines():
        if found := ROW.match(line.text):
            yield HotSymbol(
                origin=capture.origin(line),
                share=float(found["share"]),
                object=found["object"],
                symbol=found["symbol"][:LONGEST],
                thread=int(found["thread"]) if found["thread"] else None,
                command=found["command"] or found["other"] or "",
            )
