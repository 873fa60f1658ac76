"""Containers as their host describes them: `docker inspect` (and podman's), `kubectl describe pod`.

Both are read line by line, so that a part of one tells what it holds. Of the variables of a container those are told
that `checks/environment` allows. Limits are those that were asked for. Which of several containers runs the engine it
cannot know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diag.api import Capture, Container, Fact, Line, Recognise, Setting, expression, probe, program, replace

VARIABLES = str(Path(__file__).resolve().parent.parent / "environment" / "_environment.py")
FIELD = expression(r'^[\s>]*"(?P<key>[A-Za-z]{2,20})":\s*(?P<value>"[^"]*"|-?[0-9]{1,18}|true|false|null|[\[{])')
WORD = expression(r'^[\s>]*"(?P<word>[^"\\]{1,2000})",?\s*$')
KEYS = (
    *("HostConfig", "ShmSize", "IpcMode", "DeviceRequests", "PathOnHost", "Privileged", "Image", "Env", "Ulimits"),
    *("GroupAdd", "Mounts", "Destination"),
)
LISTS = ("DeviceIDs", "Env", "GroupAdd")
IDENTITY = expression(r'^[\s>]*"Id": "(?:[0-9a-f]{64})"')
LIMIT = {"-1": "unlimited"}
POD = expression(
    r"^[\s>]*(?:(?:Init )?Containers:\s*$|Container ID:\s|Image:\s+\S|Medium:\s+Memory|SizeLimit:\s|"
    r"/dev/shm from |[a-z0-9.\-]{3,40}/(?:gpu|npu|dcu|vgpu|xpu|Ascend\w{1,12}):\s)"
)
ACCELERATORS = expression(r"^\s*[a-z0-9.\-]{3,40}/(?:gpu|npu|dcu|vgpu|xpu|Ascend\w{1,12}):\s+(?P<count>[0-9]{1,6})\s*$")
HEAD = expression(r"^(?P<indent>\s*)(?P<name>[a-z0-9][a-z0-9.\-]{0,62}):\s*$")
VALUE = expression(r"^\s*(?P<key>Image|Medium|SizeLimit):\s+(?P<value>\S+)\s*$")
SIZE = expression(r"([0-9]{1,9})(Ki|Mi|Gi|Ti|k|M|G|T)?")
UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@probe(
    "docker-inspect",
    tells=(Container, Setting),
    recognise=Recognise(
        ('"Id": "', *(f'"{key}":' for key in KEYS)),
        rf'^[\s>]*"(?:Id": "[0-9a-f]{{64}}"|(?:{"|".join(KEYS)})":\s)',
        each=True,
        lines=120,
        at_least=2,
    ),
)
def docker_inspect(capture: Capture) -> Iterator[Fact]:
    """What `docker inspect CONTAINER` prints, whole or in part."""
    told: dict[str, Any] = {}
    first: Line | None = None
    within, limit = "", ""
    for line in capture.lines():
        if IDENTITY.match(line.text) and "ipc" in told:
            yield from _container(capture, first, told)
            told, first = {}, None
        if found := FIELD.match(line.text):
            key, value = found["key"], found["value"].strip('"')
            within = key if value in ("[", "{") and not (within == "Ulimits" and value == "{") else within
            first = first or (line if key in KEYS else None)
            limit = value if within == "Ulimits" and key == "Name" else limit
            if within == "Ulimits" and key == "Soft" and re.fullmatch(r"[a-z]{1,20}", limit):
                yield Setting(origin=capture.origin(line), name=limit, value=LIMIT.get(value, value), kind="limit")
            _learn(told, key, value)
        elif within in LISTS and (found := WORD.match(line.text)):
            yield from _listed(capture, line, told, within, found["word"])
    yield from _container(capture, first, told)


def _learn(told: dict[str, Any], key: str, value: str) -> None:
    """What one field says of the container."""
    if key == "Name" and value.startswith("/"):
        told.setdefault("name", value[1:])
    elif key == "Image" and value not in ("[", "{") and not value.startswith("sha256:"):
        told["image"] = value
    elif key == "IpcMode":
        told["ipc"] = value
    elif key == "Privileged" and value in ("true", "false"):
        told["privileged"] = value == "true"
    elif key == "ShmSize" and value.isdecimal():
        told["shm_bytes"] = int(value)
    elif key == "PathOnHost":
        told["devices"] = (*told.get("devices", ()), value)
    elif key == "Destination":
        told["mounts"] = (*told.get("mounts", ()), value)
    elif key == "Count" and value != "0":
        told["gpus"] = "all" if value == "-1" else value
    elif key == "OCIRuntime":
        told["runtime"] = "podman"


def _listed(capture: Capture, line: Line, told: dict[str, Any], within: str, word: str) -> Iterator[Setting]:
    """A word of a list: the id of a device, or a variable."""
    name, equals, value = word.partition("=")
    if within == "GroupAdd":
        told["groups"] = (*told.get("groups", ()), word)
    elif within == "DeviceIDs":
        told["gpus"] = ",".join(filter(None, (told.get("gpus", ""), word)))
    elif equals and (shown := program(VARIABLES)["told"](name, value)) is not None:
        quote = line if shown and shown in line.text else Line(line.number, f'"{name}=')
        yield Setting(origin=capture.origin(quote), name=name, value=shown)
        if name == "NVIDIA_VISIBLE_DEVICES":
            told.setdefault("gpus", shown)


def _container(capture: Capture, first: Line | None, told: dict[str, Any]) -> Iterator[Container]:
    if first and ("ipc" in told or "shm_bytes" in told):
        yield Container(origin=capture.origin(first), **{"runtime": "docker", **told, "inside": False})


@probe(
    "kubectl-describe-pod",
    tells=(Container,),
    recognise=Recognise(
        ("Containers:", "Container ID:", "Image:", "Medium: ", "SizeLimit: ", "/dev/shm from ", ".com/", ".cn/"),
        POD.pattern,
        each=True,
        lines=40,
        at_least=2,
    ),
)
def kubectl_describe_pod(capture: Capture) -> Iterator[Fact]:
    """What `kubectl describe pod` prints: each container, what it may have, and memory mounted at /dev/shm."""
    pod: list[Container] = []
    mounts: dict[str, int] = {}
    head, volume, medium = "", "", ""
    for line in capture.lines():
        if "/dev/shm from " in line.text and pod:
            mounts[line.text.partition(" from ")[2].split(" ")[0]] = len(pod) - 1
        elif (found := HEAD.match(line.text)) and not re.match(r"\s*(?:[A-Z])", line.text):
            head, volume, medium = found["name"], found["name"], ""
        elif found := VALUE.match(line.text):
            if found["key"] == "Image":
                name = head or ""
                pod.append(
                    Container(
                        origin=capture.origin(line), runtime="kubernetes", inside=False, name=name, image=found["value"]
                    )
                )
            elif found["key"] == "Medium":
                medium = found["value"]
            elif medium == "Memory" and volume in mounts and (size := _size(found["value"])):
                pod[mounts[volume]] = replace(pod[mounts[volume]], shm_bytes=size)
        elif pod and (found := ACCELERATORS.match(line.text)):
            pod[-1] = replace(pod[-1], gpus=found["count"])
    yield from pod


def _size(text: str) -> int | None:
    found = SIZE.fullmatch(text)
    return int(found[1]) * UNITS[found[2] or ""] if found else None
