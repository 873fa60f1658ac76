"""`rocm-smi`, and `hy-smi` that is its descendant: one shape in two vendors' words.

Knows the concise table of ROCm 1.9 to 7 and of DTK 23 to 26 (`DCU`, later `HCU`), the lines `GPU[0] : key: value` of
the options, the matrix of link types, and `--json`. A Hygon machine has a `rocm-smi` of its own: the vendor is told by
marks in the text, never by the tool's name. What it cannot know: the name of a device from the concise table, and which
device a partition (CPX, TPX, …) is a part of: each row counts as a device, as torch counts it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from diag.api import (
    Accelerator,
    Capture,
    Driver,
    Fact,
    Line,
    Link,
    Partition,
    Reading,
    Recognise,
    Unavailable,
    expression,
    pci_address,
    probe,
    replace,
)

HYGON = expression(r"^\W*[DH]CU[\[\s0-9]|\b[DH]CU (?:memory )?use|C-3000 IC Design|Chengdu Haiguang")
HYGON_HEAD = expression(r"=\s{0,9}System Management Interface")
"""The heading without "ROCm", which an AMD table that was edited has as well."""
AMD = expression(r"\bAMD\b|Advanced Micro Devices|\bInstinct\b|\bRadeon\b")
KEYED = expression(r"^\W*(?:GPU|DCU|HCU)\s?\[([0-9]{1,4})\]\s*:\s*([^:]{1,60}?)\s*:\s*(\S.*)$")
MEMBER = expression(r'"card([0-9]{1,4})":\s*\{([^{}]*)')
PAIR = expression(r'"([^"]{1,80})":\s*"([^"]{0,200})"')
LOADED = expression(r'(?:^\W*Driver [Vv]ersion:\s{0,9}|"Driver version":\s{0,9}")([0-9][\w.\-]{0,60})')
DRM = expression(r"Link type between DRM devices ([0-9]{1,4}) and ([0-9]{1,4})\W{1,9}([A-Z]\w{1,15})")
RELEASE = expression(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,4}")
HEADER = expression(r"^\W*(?:GPU|Device|DCU|HCU)\s.*\bPerf\b")
ROW = expression(r"^\W*([0-9]{1,4})\s")
DEVICE_ID = expression(r"(?:\s|\[)0x[0-9a-f]{4}\b")
LINKS = expression(r"Link Type between two \w+")
MATRIX = expression(r"^\W*((?:GPU|DCU|HCU)[0-9]{1,4})\s+(\S.*)$")
NUMBER = expression(r"-?[0-9]{1,15}(?:\.[0-9]{1,6})?")
CLOCK = expression(r"\(?([0-9]{1,6})Mhz\)?")
TOKENS = {
    "temperature": expression(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)\s?[°_]{0,2}[cC]"),
    "power": expression(r"([0-9]{1,5}(?:\.[0-9]{1,3})?)W"),
    "clock": expression(r"([0-9]{1,6})Mhz"),
    "percent": expression(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)%"),
}
REFUSALS = ("No AMD GPUs specified", "Driver not initialized (amdgpu", "No JSON data to report")
READINGS = (
    ("utilization", "percent", ("gpu use (%)", "hcu use (%)", "dcu use (%)")),
    ("temperature", "C", ("temperature (sensor edge) (c)", "temperature (sensor junction) (c)")),
    ("power", "W", ("average graphics package power (w)", "current socket graphics package power (w)")),
    ("power.limit", "W", ("max graphics package power (w)",)),
    ("memory.free", "MiB", ("available memory size (mib)",)),
    ("memory.used", "MiB", ("vram total used memory (mib)", "vram total used memory (b)")),
    ("clock.sm", "MHz", ("sclk clock level", "sclk clock speed:", "sclk clock speed")),
    ("clock.memory", "MHz", ("mclk clock level", "mclk clock speed:", "mclk clock speed")),
)
SMI = Recognise(
    literals=(
        *("System Management Interface", "SMI Log", "PwrCap", "MCLK OD", "Driver not initialized (amdgpu", '"card'),
        *(
            "GPU[",
            "DCU[",
            "HCU[",
            "Driver version",
            "Driver Version: ",
            "Link Type between two ",
            "XGMI",
            "PCIE",
            "HSW",
        ),
        *(" auto ", " manual ", " high ", " low ", " unknown ", '"GPU use', '"VRAM Total', '"Card ', '"PCI Bus'),
        *('"Temperature (Sensor', " Graphics Package", '"GFX Version', '"(Topology) Link type'),
    ),
    pattern="|".join(
        (
            r"=\s{0,9}(?:ROCm )?System Management Interface|End of (?:ROCm )?SMI Log|\bPerf\b.*(?:PwrCap|MCLK OD)",
            r'Link Type between two|Driver not initialized|"(?:card[0-9]{1,4}|Driver version)":',
            r"^\W*(?:GPU|DCU|HCU)(?:\[[0-9]{1,4}\]\s*:|[0-9]{1,4}\s.*\b(?:XGMI|PCIE|HSW)\b)",
            r"^\W*[0-9]{1,4}\s.*\s(?:auto|manual|high|low|unknown)\s.*%",
            r'^\W*"(?:GPU use|VRAM Total|Card |PCI Bus|Temperature \(Sensor|(?:Max|Average|Current \w+) Graphics)',
            r'^\W*"(?:GFX Version|\(Topology\) Link type)',
        )
    ),
    each=True,
    lines=60,
)
"""Line by line: options print other texts, and values that passed, of the same machine."""


class Told(NamedTuple):
    """What was told of one device: where first, and each value under its key in lower case."""

    line: Line
    values: dict[str, str]


@probe(
    "rocm-smi",
    tells=(Accelerator, Driver, Reading, Link, Partition),
    command=(
        *("rocm-smi", "--showdriverversion", "--showproductname", "--showbus", "--showmeminfo", "vram", "--showuse"),
        *("--showtemp", "--showpower", "--showtopotype"),
    ),
    timeout=20.0,
    recognise=SMI,
)
def rocm_smi(capture: Capture) -> Iterator[Fact]:
    """What AMD's tool prints; on a Hygon machine its Hygon twin, which in a paste is `hy-smi`'s to read."""
    hygon = _hygon(capture)
    if not hygon or capture.kind == "command":
        yield from _refused(capture)
        yield from _read(capture, "hygon" if hygon else "amd")


@probe(
    "hy-smi",
    tells=(Accelerator, Driver, Reading, Link, Partition),
    command=(
        *("hy-smi", "--showdriverversion", "--showproductname", "--showbus", "--showmeminfo", "vram", "--showuse"),
        *("--showtemp", "--showpower", "--showtopotype"),
    ),
    timeout=20.0,
    recognise=SMI,
)
def hy_smi(capture: Capture) -> Iterator[Fact]:
    """What Hygon's tool prints, under its own name or that of `rocm-smi`."""
    if _hygon(capture):
        yield from _read(capture, "hygon")


def _hygon(capture: Capture) -> bool:
    lines = [line.text for line in capture.lines()]
    if any(map(HYGON.search, lines)):
        return True
    return any(map(HYGON_HEAD.search, lines)) and not any(map(AMD.search, lines))


def _refused(capture: Capture) -> Iterator[Unavailable]:
    for line in capture.lines():
        if words := next((words for words in REFUSALS if words in line.text), ""):
            reason = line.text[line.text.index(words) :].strip()
            yield Unavailable(origin=capture.origin(line), what="rocm-smi", reason=reason, tells=("Accelerator",))


def _read(capture: Capture, vendor: str) -> Iterator[Fact]:
    for line in capture.lines():
        if found := LOADED.search(line.text):
            yield _driver(capture, line, vendor, found[1])
            break
    devices = _told(capture)
    listed = {fact.index for fact in _devices(capture, devices, vendor)}
    yield from _devices(capture, devices, vendor)
    for index, told in devices.items():
        yield from _readings(capture, index, told, vendor)
    yield from _concise(capture, vendor, listed)
    yield from _links(capture, vendor)


def _driver(capture: Capture, line: Line, vendor: str, version: str) -> Driver:
    """AMD's tool prints the kernel's release where its driver is the kernel's own: that is no version of it."""
    known = vendor == "hygon" or RELEASE.fullmatch(version)
    return Driver(origin=capture.origin(line), vendor=vendor, version=version if known else "")


def _told(capture: Capture) -> dict[int, Told]:
    devices: dict[int, Told] = {}
    for line in capture.lines():
        if found := KEYED.match(line.text):
            pairs = [(found[2], found[3])]
            _keep(devices, int(found[1]), line, pairs)
    for member in MEMBER.finditer(capture.content):
        at = Line(capture.first + member.string.count("\n", 0, member.start()), member[0].split("\n")[0])
        _keep(devices, int(member[1]), at, PAIR.findall(member[2]))
    return devices


def _keep(devices: dict[int, Told], index: int, line: Line, pairs: list[tuple[str, str]]) -> None:
    told = devices.setdefault(index, Told(line, {}))
    for key, value in pairs:
        told.values.setdefault(key.lower(), value.strip())


def _devices(capture: Capture, devices: dict[int, Told], vendor: str) -> Iterator[Accelerator]:
    """The devices of which more than a passing value was told."""
    for index, (line, values) in devices.items():
        name, address = _name(values), values.get("pci bus", "").split(" ")[0]
        memory = _mebibytes(values, "vram total memory")
        architecture = values.get("gfx version", "")
        if name or memory or pci_address(address):
            yield Accelerator(
                origin=capture.origin(line),
                vendor=vendor,
                name=name,
                index=index,
                address=pci_address(address),
                memory_mib=memory,
                architecture=architecture if architecture.startswith("gfx") else "",
                seen_by="tool",
            )


def _name(values: dict[str, str]) -> str:
    names = (values.get(key, "") for key in ("card series", "device name"))
    return next((name for name in names if name and not name.startswith(("0x", "N/A"))), "")


def _mebibytes(values: dict[str, str], key: str) -> float | None:
    for unit, size in (("(mib)", 1), ("(b)", 2**20)):
        if NUMBER.fullmatch(value := values.get(f"{key} {unit}", "")):
            return float(value) / size or None
    return None


def _readings(capture: Capture, index: int, told: Told, vendor: str) -> Iterator[Reading]:
    for name, unit, keys in READINGS:
        for key in keys:
            value = _value(key, told.values.get(key, ""))
            if value:
                yield _reading(capture, told.line, (name, value, unit), vendor, index)
                break


def _value(key: str, text: str) -> str:
    if found := CLOCK.search(text):
        return found[1]
    if "clock" in key or not NUMBER.fullmatch(text):
        return ""
    return f"{float(text) / 2**20:.0f}" if key.endswith("(b)") else text


def _reading(capture: Capture, line: Line, told: tuple[str, str, str], vendor: str, index: int) -> Reading:
    name, value, unit = told
    return Reading(origin=capture.origin(line), name=name, value=value, unit=unit, vendor=vendor, index=index)


def _concise(capture: Capture, vendor: str, listed: set[int | None]) -> Iterator[Fact]:
    """The rows of the concise table; a name stands under its row in ROCm 6.0."""
    header: list[str] = []
    waiting: Accelerator | None = None
    for line in capture.lines():
        found = ROW.match(line.text) if header else None
        if waiting:
            named = not found and line.text.strip(" =-|")
            yield replace(waiting, name=line.text.strip() if named else "")
            waiting = None
        if HEADER.match(line.text):
            header = line.text.split()
        elif "End of " in line.text:
            header = []
        elif found and (readings := _row(header, line.text)) is not None:
            index = int(found[1])
            if index not in listed:
                listed.add(index)
                device = Accelerator(origin=capture.origin(line), vendor=vendor, index=index, seen_by="tool")
                waiting = device if "[0x" in line.text else None
                yield from () if waiting else (device,)
            yield from _partition(capture, line, vendor)
            yield from (_reading(capture, line, told, vendor, index) for told in readings)
    if waiting:
        yield waiting


def _row(header: list[str], text: str) -> list[tuple[str, str, str]] | None:
    """The readings of a row, None where it shows no device; the last columns are counted from the right.

    Of a device that does not answer its use alone is printed, as nought.
    """
    words = text.split()
    after = len(header) - header.index("VRAM%") if "VRAM%" in header else 0
    last = dict(zip(header[-after:], words[-after:], strict=False)) if after else {}
    before = words[1 : len(words) - after - ("PwrCap" in header)]
    limit = words[-after - 1] if after and len(words) > after else ""
    told = [
        ("temperature", _first("temperature", before), "C"),
        ("power", _first("power", before), "W"),
        ("power.limit", _first("power", [limit]), "W"),
        ("clock.sm", _first("clock", before), "MHz"),
        ("utilization", _first("percent", [last[key] for key in ("GPU%", "HCU%", "DCU%") if key in last]), "percent"),
    ]
    known = [one for one in told if one[1]]
    if not known[1:]:
        return [] if DEVICE_ID.search(text) else None
    return known


def _first(kind: str, words: list[str]) -> str:
    matches = (TOKENS[kind].fullmatch(word) for word in words)
    return next((found[1] for found in matches if found), "")


def _partition(capture: Capture, line: Line, vendor: str) -> Iterator[Partition]:
    if found := re.search(r"\bNPS[0-9], ([CDTQ]PX), [0-9]", line.text):
        yield Partition(origin=capture.origin(line), name=found[1], vendor=vendor)


def _links(capture: Capture, vendor: str) -> Iterator[Link]:
    """Each pair of the matrix once; its diagonal is a nought. JSON has the pairs themselves."""
    columns: list[str] | None = None
    for line in capture.lines():
        if pair := DRM.search(line.text):
            yield _link(capture, line, (f"GPU{pair[1]}", f"GPU{pair[2]}", pair[3]), vendor)
        elif LINKS.search(line.text):
            columns = []
        elif "====" in line.text:
            columns = None
        elif columns == []:
            columns = re.findall(r"\b(?:GPU|DCU|HCU)[0-9]{1,4}\b", line.text)[:256]
        elif columns and (found := MATRIX.match(line.text)) and found[1] in columns:
            kinds = dict(zip(columns, found[2].split(), strict=False))
            for second in columns[columns.index(found[1]) + 1 :]:
                if re.fullmatch(r"[A-Za-z]\w{1,15}", kinds.get(second, "")):
                    yield _link(capture, line, (found[1], second, kinds[second]), vendor)


def _link(capture: Capture, line: Line, pair: tuple[str, str, str], vendor: str) -> Link:
    return Link(origin=capture.origin(line), first=pair[0], second=pair[1], kind=pair[2], vendor=vendor)
