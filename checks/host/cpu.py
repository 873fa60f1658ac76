"""The processor and the NUMA nodes: `lscpu` in the languages it is met in, `/proc/cpuinfo`, `numactl --hardware`.

`lscpu` has had three layouts (flat, flat and wider, nested from util-linux 2.37 on) under labels that did not change;
its translated labels are those of util-linux's own catalogues. Arm processors have no name in `/proc/cpuinfo`. What
this cannot know: how many processors there are where a text shows some of them only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from diag.api import Capture, Fact, Host, Line, NumaNode, Recognise, expression, probe

LABELS = {
    "machine": ("Architecture", "架构", "架構", "アーキテクチャ", "Architektur", "Arquitectura"),
    "cpus": ("CPU(s)", "CPU", "CPU (s)", "Processeur(s)"),
    "cpu": ("Model name", "型号名称", "型號", "モデル名", "Modellname", "Nom de modèle", "Nombre del modelo"),
    "virtual": (
        *("Hypervisor vendor", "超管理器厂商", "Hypervisor 供應商", "ハイパーバイザのベンダー"),
        *("Hypervisor-Anbieter", "Constructeur d'hyperviseur", "Fabricante del hipervisor"),
    ),
}
"""What each label of `lscpu` is about, in English, Chinese, Japanese, German, French and Spanish."""
FIELDS = {label: name for name, labels in LABELS.items() for label in labels}
NODE = expression(r"NUMA[ -](?:node|节点|ノード |Knoten|node|nœud )\s?([0-9]{1,4}) ?CPU(?:\(s\))?", re.IGNORECASE)
LISTED = expression(r"[0-9]{1,6}(?:[-,][0-9]{1,6})*")
COUNT = expression(r"[0-9]{1,6}")
UNKNOWN = ("-", "unknown", "")


@probe(
    "lscpu",
    tells=(Host, NumaNode),
    command=("lscpu",),
    recognise=Recognise(
        literals=(
            "Architecture:  ",
            "架构：",
            "架構：",
            "アーキテクチャ:",
            "Architektur:",
            "Arquitectura:",
            "NUMA node0 CPU(s):",
        ),
        pattern=r"^\W*(?:(?:Architecture|アーキテクチャ|Architektur|Arquitectura):\s\s|架[构構]：|NUMA node0 CPU)",
        lines=100,
    ),
)
def lscpu(capture: Capture) -> Iterator[Fact]:
    """What the kernel and the processor say of themselves; flags and weaknesses are left."""
    told: dict[str, str] = {}
    first: Line | None = None
    nodes: dict[int, NumaNode] = {}
    for line in capture.lines():
        label, value = _labelled(line.text)
        if value not in UNKNOWN and (name := FIELDS.get(label)):
            first = first or line
            told.setdefault(name, value)
        elif (node := NODE.fullmatch(label)) and (value == "" or LISTED.fullmatch(value)):
            nodes.setdefault(int(node[1]), NumaNode(origin=capture.origin(line), node=int(node[1]), cpus=value))
    if first:
        machine, cpu, count, virtual = (told.get(name, "") for name in ("machine", "cpu", "cpus", "virtual"))
        cpus = int(count) if COUNT.fullmatch(count) else None
        yield Host(origin=capture.origin(first), machine=machine, cpu=cpu, cpus=cpus, virtual=virtual.lower())
    yield from nodes.values()


def _labelled(text: str) -> tuple[str, str]:
    """The label and the value of a line: a colon of either width between them."""
    label, _, value = text.replace("：", ":", 1).partition(":")
    return label.strip(" \t>|│"), value.strip()


@probe(
    "proc/cpuinfo",
    tells=(Host,),
    path="/proc/cpuinfo",
    recognise=Recognise(
        literals=("processor\t", "processor   ", "model name\t", "model name  ", "siblings\t", "siblings  "),
        pattern=r"^\W*(?:processor\s{1,16}: [0-9]{1,6}\s*$|model name\s{1,16}: \S|siblings\s{1,16}: [0-9])",
        each=True,
        lines=60,
    ),
)
def cpuinfo(capture: Capture) -> Iterator[Fact]:
    """The processor's name, and how many the kernel runs on where the list is whole."""
    values: dict[str, list[str]] = {}
    named: Line | None = None
    for line in capture.lines():
        label, _, value = line.text.partition(":")
        label = label.strip(" \t>|│").lower()
        named = named or (line if label in ("model name", "processor") else None)
        values.setdefault(label, []).append(value.strip())
    if named:
        name = values.get("model name", [""])[0]
        cpus = _whole(values)
        if name or cpus:
            yield Host(origin=capture.origin(named), cpu=name, cpus=cpus)


def _whole(values: dict[str, list[str]]) -> int | None:
    """The number of processors, None where a part of them is shown: a single one may be the first of many."""
    numbers = values.get("processor", [])
    siblings = values.get("siblings", ["2"])[0]
    enough = COUNT.fullmatch(siblings) and len(numbers) >= max(2, int(siblings))
    return len(numbers) if enough and numbers == [str(place) for place in range(len(numbers))] else None


@probe(
    "numactl",
    tells=(NumaNode,),
    command=("numactl", "--hardware"),
    recognise=Recognise(("available: ",), r"^\W*available: [0-9]{1,4} nodes? \(", lines=600),
)
def numactl(capture: Capture) -> Iterator[Fact]:
    """Each node with its processors and its memory, in MiB of which `numactl` says MB."""
    values: dict[int, dict[str, str]] = {}
    lines: dict[int, Line] = {}
    last: tuple[int, str] | None = None
    for line in capture.lines():
        if found := re.match(r"\W*node ([0-9]{1,4}) (cpus|size|free):\s*(.*)$", line.text):
            last = (int(found[1]), found[2])
            lines.setdefault(last[0], line)
            values.setdefault(last[0], {})[last[1]] = found[3].strip()
        elif last and last[1] == "cpus" and re.fullmatch(r"[0-9 ]+", line.text.strip()):
            values[last[0]]["cpus"] += f" {line.text.strip()}"
        else:
            last = None
    for node, told in values.items():
        size, free = (_mebibytes(told.get(name, "")) for name in ("size", "free"))
        cpus = _ranges(told.get("cpus", ""))
        yield NumaNode(origin=capture.origin(lines[node]), node=node, cpus=cpus, memory_bytes=size, free_bytes=free)


def _mebibytes(text: str) -> int | None:
    found = re.fullmatch(r"([0-9]{1,12}) MB", text)
    return int(found[1]) * 2**20 if found else None


def _ranges(text: str) -> str:
    """Numbers as the kernel lists them: `0-17,36-53`."""
    numbers = [int(word) for word in text.split() if COUNT.fullmatch(word)]
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
