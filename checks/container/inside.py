"""Whether this is a container, and of which runtime: by the marks it leaves, and by the control group of its processes.

Kubernetes outweighs the runtime beneath it. Control groups of version 2 look alike inside and outside (`0::/`): they
tell nothing then, and no mark at all does not prove a host. That a paste of `/proc/1/cgroup` was taken inside, it takes
for granted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from diag.api import Capture, Container, Fact, Recognise, Unavailable, expression, probe

CHILD = str(Path(__file__).resolve().parent / "_container.py")
SCHEMA = "diag/container/1"
GROUPS = (
    ("kubernetes", expression(r"/kubepods|:cri-containerd:|/cri-containerd-|/crio-[0-9a-f]{12}")),
    ("podman", expression(r"/libpod-[0-9a-f]{12}")),
    ("docker", expression(r"/docker[/\-][0-9a-f]{12}")),
    ("lxc", expression(r"/lxc(?:\.payload)?[./]")),
)
CONTROLLERS = (
    "systemd",
    "memory",
    "cpuset",
    "cpu",
    "cpuacct",
    "devices",
    "pids",
    "freezer",
    "blkio",
    "prio",
    "hugetlb",
)
GROUP = r"^\W*[0-9]{1,3}:[a-z_,=]{0,60}:/"


@probe("container", tells=(Container,), measure=CHILD, recognise=Recognise((f'"schema": "{SCHEMA}"',), lines=0))
def container(capture: Capture) -> Iterator[Fact]:
    """Files and variables that a runtime leaves in its containers."""
    document = capture.document(SCHEMA)
    if document is None:
        return
    marks = [one for one in document.get("marks") or () if isinstance(one, dict) and one.get("runtime")]
    best = next((one for one in marks if one["runtime"] == "kubernetes"), marks[0] if marks else None)
    if best:
        yield Container(origin=capture.said(json.dumps(best)), runtime=str(best["runtime"]), inside=True)
    else:
        reason = "no runtime has left a mark: not in a container, as far as can be told"
        yield Unavailable(
            origin=capture.said(reason), what="container", how="missing", reason=reason, tells=("Container",)
        )


@probe(
    "container/cgroup",
    tells=(Container,),
    path="/proc/1/cgroup",
    recognise=Recognise(("::/", *(f"{one}:/" for one in CONTROLLERS)), GROUP, each=True, lines=20),
)
def control_group(capture: Capture) -> Iterator[Fact]:
    """The control group of the first process, of version 1 or mixed."""
    for line in capture.lines():
        if re.match(GROUP, line.text):
            for runtime, words in GROUPS:
                if words.search(line.text):
                    yield Container(origin=capture.origin(line), runtime=runtime, inside=True)
                    return
    reason = "the control groups name no runtime: of version 2, or not in a container"
    yield Unavailable(
        origin=capture.said(reason), what="container/cgroup", how="silent", reason=reason, tells=("Container",)
    )
