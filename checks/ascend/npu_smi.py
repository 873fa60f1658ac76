"""Huawei's `npu-smi`: the devices it lists, what they say of themselves, who uses them, how they are joined.

The table gives each device two rows: its card, then its chip. A card with two chips (910C) is two devices; where the
table numbers devices over all cards (`Phy-ID`, `Device`), that number is theirs, else the card's. Memory is the last
pair of the second row: HBM where there is some, else that of the board. What this cannot know: the product behind
`Ascend910`, which is the name of every 910C.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    Accelerator,
    Capture,
    DeviceProcess,
    Driver,
    Fact,
    Line,
    Link,
    Reading,
    Recognise,
    Unavailable,
    expression,
    pci_address,
    probe,
)

HEADER = expression(r"\| npu-smi \S{1,40}\s+Version:\s*([0-9][\w.]{1,40})")
COLUMNS = r"\| Bus-Id\s{1,20}\|[^|]{0,60}Memory-Usage\(MB\)"
REFUSAL = expression(r"^\W*(dcmi mod(?:ule|el) initiali[sz]e.*)")
HEALTH = {"ok", "warning", "alarm", "critical", "unknown"}
NUMBER = expression(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
WHOLE = expression(r"[0-9]{1,9}")
PAIR = expression(r"([0-9]{1,9})\s{0,9}/\s{0,9}([0-9]{1,9})(?![0-9])")
TOPOLOGY = expression(r"^\W*((?:NPU|Phy-ID)[0-9]{1,4})\s+(?:NPU|Phy-ID)[0-9]{1,4}\b")
NAMED = expression(r"[A-Za-z][A-Za-z_-]{1,15}[0-9]{1,4}")
BOARD = r"^\W*NPU ID\s+:\s*[0-9]"
LISTED = r"^\W*(?:Total|Card) Count\s+:\s*[0-9]"


class Row(NamedTuple):
    """A row of the table: the words of its first cells, the cell that follows, and those after it."""

    line: Line
    words: list[str]
    state: str
    rest: str
    whole: bool


Chips = dict[tuple[int, int], int]
"""The number of each device, by its card and chip."""


@probe(
    "npu-smi",
    tells=(Driver, Accelerator, Reading, DeviceProcess),
    command=("npu-smi", "info"),
    timeout=20.0,
    recognise=Recognise(
        literals=("| npu-smi ", "Memory-Usage(MB)", "dcmi mod"),
        pattern="|".join((HEADER.pattern, COLUMNS, REFUSAL.pattern)),
    ),
)
def npu_smi(capture: Capture) -> Iterator[Fact]:
    """What `npu-smi info` prints: driver, devices, processes; or its refusal."""
    card: tuple[Row, int] | None = None
    chips: Chips = {}
    users = False
    for line in capture.lines():
        cells = [cell.strip() for cell in line.text.split("|")]
        users = users or "Process id" in line.text
        if card:
            yield from _device(capture, card[0], _row(line, cells, card[1]), chips)
            card = None
        elif refused := REFUSAL.match(line.text):
            reason, tells = refused[1].strip(), ("Driver", "Accelerator")
            yield Unavailable(origin=capture.origin(line), what="npu-smi", reason=reason, tells=tells)
        elif found := HEADER.search(line.text):
            yield Driver(origin=capture.origin(line), vendor="ascend", version=found[1])
        elif users:
            yield from _process(capture, line, cells, chips)
        else:
            card = _card(line, cells)


def _row(line: Line, cells: list[str], place: int) -> Row:
    state, rest = (*cells[place : place + 2], "", "")[:2]
    return Row(line, " ".join(cells[:place]).split(), state, rest, len(cells) > place + 2)


def _card(line: Line, cells: list[str]) -> tuple[Row, int] | None:
    """The first row of a device, and which of its cells states its health."""
    place = next((number for number, cell in enumerate(cells) if cell.lower() in HEALTH), 0)
    row = _row(line, cells, place)
    return (row, place) if len(row.words) > 1 and WHOLE.fullmatch(row.words[0]) else None


def _device(capture: Capture, card: Row, chip: Row, chips: Chips) -> Iterator[Fact]:
    """The device of two rows, and what they read; a row that was cut tells only what is whole."""
    npu, numbers = int(card.words[0]), [int(word) for word in chip.words if WHOLE.fullmatch(word)]
    index = numbers[1] if len(numbers) > 1 else npu
    chips[npu, numbers[0] if numbers else 0] = index
    pairs = PAIR.findall(chip.rest) if chip.whole else []
    used, total = pairs[-1] if pairs else ("", "")
    device = Accelerator(
        origin=capture.origin(card.line),
        vendor="ascend",
        name=" ".join(card.words[1:]),
        index=index,
        address=pci_address(chip.state),
        memory_mib=float(total) if total else None,
        seen_by="tool",
    )
    power, heat = (*card.rest.split(), "", "")[:2] if card.whole else ("", "")
    busy = chip.rest.split()[0] if pairs else ""
    yield device
    yield _reading(capture, card.line, device, "health", (card.state, ""))
    for line, name, value, unit in (
        (card.line, "power", power, "W"),
        (card.line, "temperature", heat, "C"),
        (chip.line, "utilization", busy, "%"),
        (chip.line, "memory.used", used, "MiB"),
    ):
        if NUMBER.fullmatch(value):
            yield _reading(capture, line, device, name, (value, unit))


def _reading(capture: Capture, line: Line, device: Accelerator, name: str, told: tuple[str, str]) -> Reading:
    value, unit = told
    origin, index, address = capture.origin(line), device.index, device.address
    return Reading(origin=origin, name=name, value=value, unit=unit, vendor="ascend", index=index, address=address)


def _process(capture: Capture, line: Line, cells: list[str], chips: Chips) -> Iterator[Fact]:
    """The process of a row: its card and chip in the first cell, its number in the second."""
    where, pid, name, memory = (*cells[1:5], "", "", "", "")[:4]
    numbers = where.split()
    if 1 <= len(numbers) <= 2 and all(map(WHOLE.fullmatch, (*numbers, pid))):
        npu, chip = int(numbers[0]), int(numbers[-1]) if len(numbers) == 2 else 0
        yield DeviceProcess(
            origin=capture.origin(line),
            index=chips.get((npu, chip), npu),
            pid=int(pid),
            name=name,
            memory_mib=float(memory) if WHOLE.fullmatch(memory) else None,
            vendor="ascend",
        )


@probe(
    "npu-smi/list",
    tells=(Accelerator,),
    recognise=Recognise(literals=("Total Count ", "Card Count "), pattern=LISTED),
)
def npu_smi_list(capture: Capture) -> Iterator[Fact]:
    """What `npu-smi info -l` prints: the number of each card, and how many chips it has."""
    cards: list[tuple[Line, int]] = []
    several = False
    for line in capture.lines():
        key, _, value = (part.strip() for part in line.text.partition(":"))
        if key == "NPU ID" and WHOLE.fullmatch(value):
            cards.append((line, int(value)))
        several = several or (key == "Chip Count" and value != "1")
    for line, number in cards:
        index = None if several else number
        yield Accelerator(origin=capture.origin(line), vendor="ascend", index=index, seen_by="tool")


@probe(
    "npu-smi/board",
    tells=(Driver, Accelerator, Reading),
    recognise=Recognise(literals=("NPU ID ",), pattern=BOARD, lines=24),
)
def npu_smi_board(capture: Capture) -> Iterator[Fact]:
    """What `npu-smi info -t board -i 0` prints of one card: its driver, firmware and address."""
    told: dict[str, tuple[Line, str]] = {}
    for line in capture.lines():
        key, colon, value = (part.strip() for part in line.text.partition(":"))
        if colon:
            told.setdefault(key, (line, value))
    number, software, firmware, bus = (
        told.get(key, (None, ""))[1] for key in ("NPU ID", "Software Version", "Firmware Version", "PCIe Bus Info")
    )
    if not (WHOLE.fullmatch(number) and NUMBER.match(software)):
        return
    yield Driver(origin=capture.origin(told["Software Version"][0]), vendor="ascend", version=software)
    address = pci_address(bus)
    origin = capture.origin(told["NPU ID"][0])
    device = Accelerator(origin=origin, vendor="ascend", index=int(number), address=address, seen_by="tool")
    yield device
    if NUMBER.match(firmware):
        yield _reading(capture, told["Firmware Version"][0], device, "firmware", (firmware, ""))


@probe(
    "npu-smi/topo",
    tells=(Link,),
    command=("npu-smi", "info", "-t", "topo"),
    cost="import",
    recognise=Recognise(literals=("CPU Affinity", "Phy-ID"), pattern=TOPOLOGY.pattern, lines=80),
)
def npu_smi_topo(capture: Capture) -> Iterator[Fact]:
    """What `npu-smi info -t topo` prints: how each two devices are joined."""
    names: list[str] = []
    for line in capture.lines():
        words = line.text.split()
        if TOPOLOGY.match(line.text):
            names = [word for word in words if NAMED.fullmatch(word)]
        elif words and words[0] in names:
            first = names.index(words[0])
            for second, kind in zip(names[first + 1 :], words[first + 2 :], strict=False):
                yield Link(origin=capture.origin(line), first=names[first], second=second, kind=kind, vendor="ascend")
