"""How a command ended, and that it wrote nothing: what `diag run` saw of it, in its own words."""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, CommandEnd, CommandStall, Fact, GroupKills, Recognise, expression, probe

SAYS = r"^\W*diag run: "
PROGRAM = r"(?P<program>\S.{0,200}?)"
AFTER = r" after (?P<seconds>[0-9.]{1,12}) s(?:, at most (?P<mib>[0-9.]{1,12}) MiB in one process)?"
ENDED = expression(
    rf"{SAYS}{PROGRAM} (?:exited with code (?P<code>[0-9]{{1,3}})|died with <Signals\.(?P<signal>\w{{3,12}}): \d+>)"
    rf"{AFTER}"
)
KILLED = expression(
    rf"{SAYS}the kernel killed (?P<count>[0-9]{{1,9}}) of its control group for want of memory"
    r"(?:.{0,80}, limit (?P<limit>[0-9]{1,19}) bytes)?"
)
QUIET = expression(rf"{SAYS}{PROGRAM} wrote nothing for (?P<seconds>[0-9.]{{1,12}}) s")


@probe(
    "run/command",
    tells=(CommandEnd, GroupKills, CommandStall),
    recognise=Recognise(("diag run: ",), SAYS, each=True, lines=0),
)
def command(capture: Capture) -> Iterator[Fact]:
    """Its end, or its silence, and what its control group counted."""
    for line in capture.lines():
        origin = capture.origin(line)
        if found := ENDED.match(line.text):
            yield CommandEnd(
                origin=origin,
                program=found["program"],
                exit_code=int(found["code"]) if found["code"] else None,
                signal=found["signal"] or "",
                seconds=float(found["seconds"]),
                memory=int(float(found["mib"]) * 2**20) if found["mib"] else None,
            )
        elif found := KILLED.match(line.text):
            limit = int(found["limit"]) if found["limit"] else None
            yield GroupKills(origin=origin, count=int(found["count"]), limit=limit)
        elif found := QUIET.match(line.text):
            yield CommandStall(origin=origin, program=found["program"], seconds=float(found["seconds"]))
