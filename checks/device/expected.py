"""What the user says that the machine must have: `--expect 8xH200`, asked for or in a text that says so.

The name stands for words that must all be in a device's name or its maker's: `H200`, `A100-SXM4-80GB`, `Kunlun P800`,
`910B2C`.
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.api import Capture, Expected, Fact, Recognise, expression, probe

ASKED = expression(r"^\s*(?P<count>[1-9][0-9]{0,4})\s*(?:[xX×*]\s*(?P<name>\w[\w .\-()/]{1,60}?))?\s*$")
OPTION = expression(r"(?:^|\s)--expect[= ]\s*(?P<quote>[\"']?)(?P<asked>[^\"']{1,80})(?P=quote)\s*$")


@probe("expect", tells=(Expected,), recognise=Recognise(("--expect",), OPTION.pattern, each=True, lines=0))
def expected(capture: Capture) -> Iterator[Fact]:
    """The option's value alone, or the option at the end of a line that calls diag."""
    lines = list(capture.lines())
    for line in lines:
        option = OPTION.search(line.text)
        asked = option["asked"] if option and "diag" in line.text else line.text if len(lines) == 1 else ""
        if found := ASKED.fullmatch(asked):
            yield Expected(origin=capture.origin(line), count=int(found["count"]), name=found["name"] or "")
