"""What backends of torch print when they hand an operator to the CPU.

torch_npu and torch_mlu name each operator once, MPS the first alone, XPU none unless it is asked to, Gaudi's software
writes a log where it is asked to. A line that is broken by a terminal may have lost the name. Whether the operator ran
once or in each step no line tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from diag.api import Capture, Fact, FallbackNotice, Origin, Recognise, expression, probe

OPERATOR = r"(?P<operator>\w[\w:.]{1,88}?)"


class Saying(NamedTuple):
    """Words of a backend: the literal that finds them, their pattern, and what they tell beside the names in it."""

    words: str
    pattern: re.Pattern[str]
    backend: str = ""
    why: Literal["", "missing", "failed", "forced"] = "missing"


SAYINGS = (
    Saying(
        "not currently supported on the",
        expression(
            rf"operator \W{OPERATOR}\W is not currently supported on the (?P<backend>[A-Za-z]\w{{1,11}}) backend"
        ),
    ),
    Saying(
        "backend and will fall back",
        expression(rf"operator \W{OPERATOR}\W fails on the (?P<backend>\w{{2,12}}) backend and will fall back to run"),
        why="failed",
    ),
    # The closing quote is missing in all revisions, in some the blank, too.
    Saying(
        "on the XPU backend",
        expression(rf"operator '{OPERATOR}'? ?on the XPU backend (?:is falling|and will fall) back to run on the CPU"),
        "XPU",
    ),
    Saying("Aten Op fallback from XPU to CPU", expression(r"Aten Op fallback from XPU to CPU"), "XPU"),
    Saying(
        "registered to be forced to fallback",
        expression(rf"operator '{OPERATOR}' registered to be forced to fallback to CPU"),
        "XPU",
        "forced",
    ),
    Saying(
        "interface does not support operator",
        expression(rf"NPU interface does not support operator '{OPERATOR}', the operator will fall back to CPU"),
        "NPU",
    ),
    Saying(
        "CPU fallback ",
        expression(r"^\W*(?:\S+ ){0,8}CPU fallback (?P<operator>\w{2,60}) : self=HPU\w+Type"),
        "HPU",
        "",
    ),
    # What is left of the first where a terminal broke the line.
    Saying("supported on the NPU", expression(r"not currently supported on the NPU\s*$"), "NPU"),
    Saying("supported on the NPU backend", expression(r"supported on the NPU backend and w(?:ill)?\s*$"), "NPU"),
    Saying("npu_cpu_fallback", expression(r"\(function npu_cpu_fallback\)"), "NPU"),
)
COUNTS = expression(r"^\W*Frequency of op and op name that were executed on CPU:\s*$")
COUNTED = expression(r"^\s*[0-9]{1,12}\s{1,20}(?P<operator>aten::\w{2,60})\s*$")


@probe(
    "operators/notices",
    tells=(FallbackNotice,),
    recognise=Recognise(
        literals=(*dict.fromkeys(saying.words for saying in SAYINGS), "Frequency of op and op name", "aten::"),
        pattern="|".join(
            re.sub(r"\?P<\w+>", "?:", one.pattern) for one in (*(saying.pattern for saying in SAYINGS), COUNTS, COUNTED)
        ),
        each=True,
        lines=3,
    ),
)
def notices(capture: Capture) -> Iterator[Fact]:
    """Each operator once, and a line without a name where its backend names none."""
    known: dict[str, set[str]] = {}
    counting = False
    for line in capture.lines():
        notice = _notice(capture.origin(line), line.text, counting)
        counting = bool(COUNTS.match(line.text)) or (counting and notice is not None)
        if notice is None:
            continue
        told = known.setdefault(notice.backend, set())
        name = notice.operator.removeprefix("aten::")
        if name not in told and (name or not told):
            told.add(name)
            yield notice


def _notice(origin: Origin, text: str, counting: bool) -> FallbackNotice | None:
    """What a line tells; `counting` inside of the list with which Gaudi's software ends its log."""
    for saying in SAYINGS:
        if saying.words in text and (found := saying.pattern.search(text)):
            named = found.groupdict(default="")
            backend = named.get("backend", "").upper() or saying.backend
            return FallbackNotice(origin=origin, operator=named.get("operator", ""), backend=backend, why=saying.why)
    if counting and (found := COUNTED.match(text)):
        return FallbackNotice(origin=origin, operator=found["operator"], backend="HPU")
    return None
