"""Units of systemd that an accelerator, a container engine or an adapter needs.

A unit that is not installed is not told: `systemctl show` says so of each (`LoadState=not-found`). `systemctl
is-active` prints a word without the unit's name, so that its text tells nothing. Most containers have no systemd. Where
`show` answered for so many units that it was asked for all of them, those that are not told are not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, Fact, Line, Listing, Recognise, Service, expression, probe

UNITS = (
    *("nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced", "nvidia-dcgm", "nvidia-gridd", "nvidia-powerd"),
    *("docker", "containerd", "kubelet", "openibd", "rdma-ndd", "opensmd", "irqbalance", "numad", "tuned"),
    *("ollama", "gpustack", "slurmd", "earlyoom", "systemd-oomd"),
)
NAMES = "|".join(UNITS)
SHOWN = ("LoadState", "ActiveState", "SubState", "UnitFileState")
HEADED = expression(rf"^\W*(?:x )?({NAMES})\.service(?: - \S.*)?\s*$")
LOADED = expression(r"^\W*Loaded: (?P<load>[a-z\-]{3,20}) ?(?:\([^;()]{0,200}(?:; (?P<enabled>[a-z\-]{3,20}))?)?")
ACTIVE = expression(r"^\W*Active: (?P<state>[a-z\-]{3,20})(?: \((?:(?P<sub>[\w\-]{2,30})\)|[^)]{0,60}\)))?")
LISTED = expression(
    rf"^\W*({NAMES})\.service\s{{1,200}}(?:loaded|masked|error|bad-setting)\s{{1,20}}"
    r"(active|inactive|failed|activating|deactivating|reloading|maintenance)\s{1,20}([a-z\-]{2,30})\b"
)
STARTED = expression(rf"\bJob for ({NAMES})\.service failed because ")
"""What `systemctl start` and `restart` say of a unit that did not come up."""
FILED = expression(rf"^\W*({NAMES})\.service\s{{1,200}}(enabled|disabled|static|masked|indirect|generated|alias)\b")


@probe(
    "systemctl",
    tells=(Service, Listing),
    command=("systemctl", "show", "-p", ",".join(("Id", *SHOWN)), *(f"{name}.service" for name in UNITS)),
    timeout=5.0,
    recognise=Recognise(
        literals=(*(f"{name}.service" for name in UNITS), "Loaded: ", "Active: ", *(f"{one}=" for one in SHOWN)),
        pattern="|".join(
            (
                *(HEADED.pattern, LISTED.pattern, FILED.pattern, rf"^\W*Id=(?:{NAMES})\.service", STARTED.pattern),
                *(
                    r"^\s*Loaded: (?:loaded|not-found|masked|error)\b",
                    r"^\s*Active: [a-z]{4,}",
                    r"^\W*\w{6,14}State=[a-z]",
                ),
            )
        ),
        each=True,
        lines=16,
    ),
)
def systemctl(capture: Capture) -> Iterator[Fact]:
    """Units as `status`, `list-units`, `list-unit-files` and `show` print them."""
    unit: tuple[str, Line] | None = None
    told: dict[str, str] = {}
    asked: list[Line] = []
    for line in capture.lines():
        asked += [line] if line.text.lstrip().startswith("Id=") else []
        if opened := HEADED.match(line.text) or re.match(rf"^\W*Id=({NAMES})\.service", line.text):
            yield from _service(capture, unit, told)
            unit, told = (opened[1], line), {}
        elif found := LISTED.match(line.text):
            yield Service(origin=capture.origin(line), name=found[1], state=found[2], sub=found[3])
        elif found := STARTED.search(line.text):
            yield Service(origin=capture.origin(line), name=found[1], state="failed")
        elif found := FILED.match(line.text):
            yield Service(origin=capture.origin(line), name=found[1], enabled=found[2])
        elif unit:
            told = {**_said(line.text), **told}
    yield from _service(capture, unit, told)
    if len(asked) == len(UNITS):
        yield Listing(origin=capture.origin(asked[0]), kind="Service")


def _said(text: str) -> dict[str, str]:
    """What a line below a unit's name tells: of `status`, and of `show`."""
    if found := LOADED.match(text) or ACTIVE.match(text):
        return {name: value for name, value in found.groupdict().items() if value}
    name, _, value = text.strip().partition("=")
    names = dict(zip(SHOWN, ("load", "state", "sub", "enabled"), strict=True))
    return {names[name]: value.strip()} if name in names and value else {}


def _service(capture: Capture, unit: tuple[str, Line] | None, told: dict[str, str]) -> Iterator[Service]:
    known = {name: value for name, value in told.items() if name != "load"}
    if unit and known and told.get("load") != "not-found":
        yield Service(origin=capture.origin(unit[1]), name=unit[0], **known)
