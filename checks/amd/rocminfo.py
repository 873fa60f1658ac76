"""`rocminfo`: what the HSA runtime sees, which is what HIP and torch see. DTK, the ROCm of Hygon, has it, too.

The vendor is told by what the text says of the device, never by the tool: `gfx906` is AMD's MI50 and
Hygon's Z100 alike. An agent of a processor is no accelerator. What this cannot know: the version of ROCm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from diag.api import Accelerator, Capture, Driver, Fact, Line, Recognise, Unavailable, expression, probe

MODULE = expression(r"^\W*ROCk module version ([0-9]{1,4}(?:\.[0-9]{1,4}){1,4}) is loaded")
FIELD = expression(r"^\s*([A-Z][\w .()-]{1,40}?):\s+(\S.*)$")
ARCHITECTURE = expression(r"gfx[0-9][0-9a-f]{2,4}")
NUMBER = expression(r"[0-9]{1,12}")
HYGON_ARCHITECTURES = {"gfx926", "gfx928", "gfx936", "gfx938"}
HYGON = expression(r"hygon|C-3000|Haiguang|^(?:K[0-9]00|Z100|Z200|BW)", re.IGNORECASE)
REFUSALS = (
    "ROCk module is NOT loaded",
    "ROCk module is NOT live",
    "Unable to open /dev/kfd read-write",
    "Call returned HSA_STATUS_ERROR",
)
NO_MEMBER = expression(r"\S{1,64} is not member of \S{1,40} group, the default DRM access group")
"""What follows a refusal; old releases said it and went on, so that it refuses only where no agent follows."""


class Agent(NamedTuple):
    """An agent: the line of its name, and its fields as they came first."""

    line: Line
    fields: dict[str, str]


@probe(
    "rocminfo",
    tells=(Accelerator, Driver),
    command=("rocminfo",),
    timeout=10.0,
    recognise=Recognise(
        literals=(
            *("ROCk module", "hygon module", "HSA System Attributes", "HSA Agents", "Name:  ", "BDFID:", " KB"),
            *("*** Done ***", "the default DRM access group", *REFUSALS[2:]),
        ),
        pattern=r"^\W*(?:ROCk module (?:version|is)|hygon module is|HSA System Attributes|HSA Agents|BDFID:\s"
        r"|(?:Marketing|Vendor) Name:\s|Name: {20}\S|Size:\s+[0-9]{1,15}\(0x|Done \*\*\*)|"
        + "|".join((NO_MEMBER.pattern, *REFUSALS[2:])),
        each=True,
        lines=120,
    ),
)
def rocminfo(capture: Capture) -> Iterator[Fact]:
    """The agents, the loaded driver, or the tool's own refusal."""
    hygon = False
    for line in capture.lines():
        hygon = hygon or line.text.strip().startswith("hygon module")
        if found := MODULE.match(line.text):
            yield Driver(origin=capture.origin(line), vendor="amd", version=found[1])
        elif words := next((words for words in REFUSALS if words in line.text), ""):
            reason = line.text[line.text.index(words) :].strip()
            yield Unavailable(origin=capture.origin(line), what="rocminfo", reason=reason, tells=("Accelerator",))
    agents = list(_agents(capture))
    whole = _whole(capture)
    yield from (_device(capture, index if whole else None, agent, hygon) for index, agent in enumerate(agents))
    if not agents:
        yield from _none(capture)
        yield from _no_member(capture)


def _whole(capture: Capture) -> bool:
    """Whether the text has the agents from the first on, which is a processor: their numbers count from there."""
    for line in capture.lines():
        found = FIELD.match(line.text.rstrip())
        if line.text.strip() == "HSA Agents" or (found and found[1] == "Name"):
            return not found or not found[2].startswith(("gfx", "amdgcn"))
    return False


def _none(capture: Capture) -> Iterator[Unavailable]:
    """A list of agents that came to its end without an accelerator: the runtime sees none."""
    listed = False
    for line in capture.lines():
        listed = listed or line.text.strip() == "HSA Agents"
        if listed and "*** Done ***" in line.text:
            reason = "it lists no accelerator"
            yield Unavailable(
                origin=capture.origin(line), what="rocminfo", how="silent", reason=reason, tells=("Accelerator",)
            )
            return


def _no_member(capture: Capture) -> Iterator[Unavailable]:
    """A user without the group, where neither a refusal that says more nor a list of agents is there."""
    if any(words in line.text for line in capture.lines() for words in ("HSA Agents", *REFUSALS[:3])):
        return
    for line in capture.lines():
        if found := NO_MEMBER.search(line.text):
            yield Unavailable(origin=capture.origin(line), what="rocminfo", reason=found[0], tells=("Accelerator",))
            return


def _agents(capture: Capture) -> Iterator[Agent]:
    """The agents that are accelerators; the name of an instruction set is a longer word."""
    agent: Agent | None = None
    segment = ""
    for line in capture.lines():
        if not (found := FIELD.match(line.text.rstrip())):
            continue
        key, value = found[1], found[2]
        if key == "Name" and not value.startswith("amdgcn-"):
            if agent:
                yield agent
            agent = Agent(line, {}) if ARCHITECTURE.fullmatch(value) else None
        if agent:
            agent.fields.setdefault(key, value)
            segment = value if key == "Segment" else segment
            if key == "Size" and segment.startswith("GLOBAL"):
                agent.fields.setdefault("memory", value)
    if agent:
        yield agent


def _device(capture: Capture, index: int | None, agent: Agent, hygon: bool) -> Accelerator:
    fields = agent.fields
    return Accelerator(
        origin=capture.origin(agent.line),
        vendor="hygon" if hygon else _vendor(fields),
        name=fields.get("Marketing Name", ""),
        index=index,
        address=_address(fields),
        memory_mib=_mebibytes(fields.get("memory", "")),
        architecture=fields["Name"],
        seen_by="tool",
    )


def _vendor(fields: dict[str, str]) -> str:
    told = [fields.get(key, "") for key in ("Marketing Name", "Vendor Name")]
    if (
        fields["Name"] in HYGON_ARCHITECTURES
        or fields.get("Device Type") in ("DCU", "HCU")
        or any(map(HYGON.search, told))
    ):
        return "hygon"
    return "amd" if told[1] == "AMD" or fields["Name"] != "gfx906" else ""


def _address(fields: dict[str, str]) -> str:
    """`BDFID` holds bus, device and function; the domain stands beside it in some versions."""
    numbers = [NUMBER.fullmatch(fields.get(key, "0")) for key in ("BDFID", "Domain")]
    place, domain = (int(found[0]) if found else 0 for found in numbers)
    return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 31:02x}.{place & 7:x}" if place else ""


def _mebibytes(size: str) -> float | None:
    found = re.match(r"([0-9]{1,15})\(0x[0-9a-f]+\) KB", size)
    return float(found[1]) / 1024 or None if found else None
