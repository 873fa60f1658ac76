"""The kernel's log: what hardware, drivers and the kernel itself reported.

It is read as `dmesg` prints it (seconds since boot, `-T`, `--time-format iso`, `--decode`, `/dev/kmsg`), as journal and
syslog print it, or bare. Live it is `dmesg`, not the journal: it needs no systemd, ends at once, is bounded by the
kernel's ring, and refuses in so many words, where a journal that may not be read looks empty.

| kind | what it is, `code` in brackets |
|---|---|
| `xid`, `sxid` | NVIDIA's own number of a fault of a device, of a switch [the number] |
| `gpu-lost`, `pci-inaccessible` | the device no longer answers on the bus |
| `driver-init`, `driver-mismatch` | the driver could not start a device [its numbers]; library and module differ |
| `gsp-timeout`, `peermem` | a processor of the device is silent; GPUDirect RDMA lost a context |
| `ras` | errors of memory or logic that the device counts [correctable, uncorrectable, deferred, aca] |
| `ring-timeout`, `gpu-hang`, `gpu-reset` | a job did not end, the device stands, it is reset [ring, ecode, engine] |
| `page-fault`, `iommu-fault` | a device reached for memory it may not [hub; event or reason] |
| `aer` | PCI Express reports an error [corrected, nonfatal, fatal] |
| `aer-unrecovered` | a device that such an error stopped, as its driver takes no part in the recovery |
| `mce`, `edac`, `ghes` | processor, memory or firmware report one [bank; CE, UE; severity] |
| `oom-killer` | a process was killed for want of memory, one event a kill [memcg, global, cpuset, …] |
| `segfault`, `trap` | a process was ended for an access [the library] or an instruction [which] |
| `hung-task`, `cpu-throttled` | a task stands in the kernel; a processor is too hot [core, package] |
| `link-down`, `port-module` | a network adapter lost its link; its module is bad [what] |
| `slot-power`, `nic-health` | it has too little power [watts]; its firmware is silent |

A `process` is `name[pid]`, as far as told. What names no fault tells no event, nor what the ring has lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Literal, NamedTuple

from diag.api import (
    Capture,
    Fact,
    HardwareEvent,
    Line,
    Recognise,
    Text,
    Unavailable,
    cut,
    expression,
    pci_address,
    probe,
    replace,
)

Role = Literal["event", "opens", "names", "adds", "part", "repeats"]
"""A line is an event; opens one that a line near it completes; names the device of one to come, or the process of the
one before; is a part of one, which stands for it where the text has none of its other lines; or repeats one in other
words."""

BUS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
AT = rf"(?:PCI:)?(?P<address>{BUS})"
PID = r"(?P<pid>[0-9]{1,9})"
PROCESS = r"(?P<name>[^,()\[\]]{0,64}?)"
ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,]{0,10}(?:Z|[+-]\d\d:?\d\d)?"
STAMP = rf"\[\s{{0,12}}(?P<at>\+?\d{{1,9}}\.\d{{3,9}}|[^\[\]]{{3,20}}\d\d:\d\d(?::\d\d \d{{4}})?|{ISO})\]"
HEADS = (
    expression(
        rf"^\W{{0,40}}(?:<\d{{1,3}}>|(?:[\w.]{{1,60}}\s{{0,4}}:\s{{0,4}}){{1,3}})?{STAMP}(?:\[\s*[TC]\d+\])?:?\s*"
    ),
    expression(rf"^\W{{0,40}}(?:kern\s*:\w+\s*:\s*)?(?P<at>{ISO})\s+"),
    expression(r"^\W{0,40}\d{1,3},\d{1,9},(?P<at>\d{1,18}),[-c][^;]{0,20};"),
)
SYSLOG = expression(r"^(?P<head>.{0,120}?)\bkernel:\s*")
TIME = expression(rf"{ISO}|[^\W\d_]{{2,9}}\.?\s{{1,2}}\d{{1,2}} \d\d:\d\d:\d\d|\d\d:\d\d:\d\d")
DEVICE = expression(rf"(?P<driver>[a-zA-Z][\w\-]{{1,30}}) (?P<address>{BUS})(?: [\w.\-]{{1,20}})?: (?:amdgpu: )?\s*")
GRAPHICS = expression(r"(?:\[drm(?::\w{1,60} \[(?P<driver>\w{1,20})\])?\] )?(?:\*ERROR\* )?")
LOG = (
    r"^\W*\[\s*\d+\.\d{6}\]\s|^\W*\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\]\s|^\W*kern\s*:\w+\s*: \d{4}-|\bkernel:\s"
)
"""What only lines of this log begin with."""
MARKS = ("[    0.000000]", "kernel:", "NVRM:", "amdgpu", "pcieport ", "mce:", "mlx5_core ", "i915 ", "[drm] ")
"""What the log of nearly every machine with an accelerator holds."""
REFUSED = "read kernel buffer failed"

NEAR = 8
"""Lines within which one line completes another."""
CAP = 200
"""Events of one kind that are told."""
MESSAGE_CAP = 240
MAKERS = {"nvidia": "nvidia", "amdgpu": "amd", "xe": "intel", "i915": "intel"}
UNKNOWN = ("", "<unknown>")
CODES = {
    **dict.fromkeys(("Corrected", "Correctable"), "corrected"),
    **dict.fromkeys(("Uncorrected (Non-Fatal)", "Uncorrectable (Non-Fatal)"), "nonfatal"),
    **dict.fromkeys(("Uncorrected (Fatal)", "Uncorrectable (Fatal)"), "fatal"),
    **dict.fromkeys(("NONE", "Out of memory"), "global"),
    **dict.fromkeys(("MEMCG", "Memory cgroup out of memory"), "memcg"),
    "Accelerator Check Architecture": "aca",
    "CPUSET": "cpuset",
    "MEMORY_POLICY": "memory-policy",
    "Core": "core",
    "Package": "package",
}
"""Our words for those of the kernel; any other code is told as printed, with hyphens for spaces."""
XIDS = {"119": "gsp-timeout", "120": "gsp-timeout"}
"""NVIDIA's numbers of faults whose parts are told as another kind."""
SEVERITY = r"(?P<code>Correct(?:ed|able)|Uncorrect(?:ed|able) \((?:Non-)?Fatal\))"
KILLED = r"(?P<code>Memory cgroup out of memory|Out of memory)[^:]{0,40}: "
VICTIM = r"(?P<pid>[0-9]{1,9})(?:, UID \d{1,9},)? \((?P<name>[^)]{1,64})\)"
SWITCH = rf"nvidia-nvswitch\d{{0,3}}: SXid \({AT}\): (?P<code>\d{{1,6}}),"
PLACE = r"(?:\S{1,60}(?:\(pid \d{1,9}\):)? )?"
NVRM = r"NVRM: [^:]{1,60}"
"""The driver's mark, and its function that wrote the line."""
JOB = rf" in {PROCESS} \[{PID}\]"
TILE = r"(?:Tile\d: )?GT\d: "


class Shape(NamedTuple):
    """How a line of one kind is known: by a plain string in it, then by its words from the first on."""

    kind: str
    sign: str
    pattern: str
    vendor: str = ""
    driver: str = ""
    role: Role = "event"


SHAPES = (
    Shape(
        "xid",
        "NVRM: Xid (",
        rf"NVRM: Xid \({AT}[^)]{{0,20}}\): (?P<code>\d{{1,4}}),?"
        rf"(?: pid='?(?P<pid>[^,']{{1,20}})'?,?)?(?: name={PROCESS},)?",
        "nvidia",
    ),
    Shape("sxid", ": SXid (", rf"{SWITCH} (?!Severity \d|Data \{{)", "nvidia"),
    Shape("sxid", ": SXid (", rf"{SWITCH} (?:Severity \d|Data \{{)", "nvidia", role="repeats"),
    Shape("gpu-lost", "has fallen off the bus", rf"NVRM: GPU (?:at )?{AT}: GPU has fallen off", "nvidia"),
    Shape("gpu-lost", "NVRM: The NVIDIA GPU ", rf"NVRM: The NVIDIA GPU {AT}", "nvidia", role="names"),
    Shape("gpu-lost", "NVRM: fallen off the bus", r"NVRM: fallen off the bus and is not resp", "nvidia"),
    Shape(
        "driver-init",
        "RmInitAdapter failed!",
        rf"NVRM: (?:GPU {AT}: )?RmInitAdapter failed!(?: \((?P<code>[0-9a-fx:]{{1,30}})\))?",
        "nvidia",
    ),
    Shape("driver-init", "NVRM: The NVIDIA probe", r"NVRM: The NVIDIA probe routine failed", "nvidia"),
    Shape("driver-init", "NVRM: No NVIDIA", r"NVRM: No NVIDIA (?:GPU|graphics adapter) found", "nvidia"),
    Shape("driver-mismatch", "NVRM: API mismatch", r"NVRM: API mismatch: the client", "nvidia"),
    Shape("gsp-timeout", "GSP RM heartbeat timed out", rf"{NVRM}: GSP RM heartbeat timed out", "nvidia"),
    Shape("gsp-timeout", "Heartbeat timed out", rf"{NVRM}: Heartbeat timed out, ", "nvidia", role="part"),
    Shape("gsp-timeout", "* GSP Timeout *", rf"{NVRM}: \*{{5,60}} GSP Timeout \*", "nvidia", role="part"),
    Shape("gsp-timeout", "rpcRecvPoll timedout", rf"{NVRM}: rpcRecvPoll timedout for fn ", "nvidia", role="part"),
    Shape("gsp-timeout", "GSP RPC timeout", rf"{NVRM}: .{{0,40}}Back to back GSP RPC timeout", "nvidia", role="part"),
    Shape("peermem", "nvidia-peermem nv_", r"nvidia-peermem nv_\S{1,60} ERROR", "nvidia"),
    Shape(
        "ras",
        "hardware errors detected in",
        r"(?:\{\d+\})?(?:socket: \d+, die: \d+,?\s{1,2})?[1-9]\d{0,18} (?:new )?(?P<code>(?:un)?correctable|deferred) ",
        driver="amdgpu",
    ),
    Shape("ras", "hardware error(", r"(?:\{\d+\})?(?P<code>uncorrectable) hardware error\(", driver="amdgpu"),
    Shape("ras", "Accelerator Check", r"\{\d+\}\[Hardware Error\]: (?P<code>Accelerator \w+ \w+)", driver="amdgpu"),
    Shape("ring-timeout", " timeout, ", r"ring (?P<code>\S{1,30}) timeout, ", driver="amdgpu"),
    Shape("gpu-reset", "GPU reset begin", r"GPU reset begin", driver="amdgpu"),
    Shape("driver-init", "Fatal error during GPU init", r"(?:amdgpu: )?Fatal error during GPU init", "amd"),
    Shape(
        "page-fault",
        "page fault (src_id",
        r"\[(?P<code>gfxhub|mmhub)\d?\] [\w \-]{0,20}page fault \([^,]{1,80}"
        rf"(?:, for process {PROCESS} pid {PID})?",
        driver="amdgpu",
        role="opens",
    ),
    Shape("page-fault", "VM fault (0x", r"VM fault \(0x", driver="amdgpu", role="opens"),
    Shape("page-fault", " thread ", rf"Process {PROCESS} pid {PID} thread ", driver="amdgpu", role="adds"),
    Shape("page-fault", " thread ", rf"(?:for|in) process {PROCESS} pid {PID} thread ", driver="amdgpu", role="part"),
    Shape("page-fault", "in page starting at", r"in page starting at address 0x", driver="amdgpu", role="part"),
    Shape("page-fault", "at page 0x", r"at page 0x[0-9a-f]{1,16} from ", driver="amdgpu", role="part"),
    Shape("page-fault", "VM_L2_PROTECTION_FAULT_", r"\w{0,4}VM_L2_PROTECTION_FAULT_STATUS: ?0x", "amd", role="part"),
    Shape("page-fault", "Faulty UTCL2 client ID", r"Faulty UTCL2 client ID: ", "amd", role="part"),
    *(
        Shape("page-fault", f"{name}: 0x", rf"{name}: 0x[0-9a-f]{{1,4}}\b", driver="amdgpu", role="part")
        for name in ("MORE_FAULTS", "WALKER_ERROR", "PERMISSION_FAULTS", "MAPPING_ERROR")
    ),
    Shape("gpu-hang", "GPU HANG: ecode", rf"GPU HANG: ecode (?P<code>[0-9a-fx:]{{1,40}})(?:,{JOB})?", "intel"),
    Shape("gpu-reset", "Engine reset: engine_class", rf"{TILE}Engine reset: engine_class=(?P<code>\w+)", driver="xe"),
    Shape("ring-timeout", "Timedout job: seqno", rf"{TILE}Timedout job: [^\[\]]{{1,200}}{JOB}", driver="xe"),
    Shape("aer", "AER: ", rf"AER: (?:Multiple )?{SEVERITY} error (?:message )?received(?: from|:) {AT}", role="opens"),
    Shape("aer", "AER: ", rf"AER: (?:Multiple )?{SEVERITY} error received: id=", role="opens"),
    Shape("aer", "PCIe Bus Error: severity=", rf"(?:AER: )?PCIe Bus Error: severity={SEVERITY}"),
    Shape("aer-unrecovered", "no error_detected callback", r"(?:AER: )?can't recover \(no error_detected"),
    Shape("aer-unrecovered", "no AER-aware driver", r"(?:AER: )?device has no AER-aware driver"),
    Shape("pci-inaccessible", "inaccessible", r"(?:Unable to|can't) change power state from \w+ to \w+.{1,40}inacc"),
    Shape(
        "iommu-fault", "AMD-Vi: Event logged", rf"AMD-Vi: Event logged \[(?P<code>[A-Z_]{{1,40}})(?: device={AT})?[ \]]"
    ),
    Shape(
        "iommu-fault",
        "DMAR: [",
        r"DMAR: \[[^\]]{1,40}\] Request [dD]evice \[(?P<address>(?:0x)?[0-9a-f]{2}:(?:0x)?[0-9a-f]{2}\.[0-9a-f])\]"
        r"[^\[]{1,80}\[fault reason (?P<code>0x[0-9a-f]{1,4}|\d{1,4})\]",
    ),
    Shape("mce", "Machine check events logged", r"mce: \[Hardware Error\]: Machine check events", role="opens"),
    Shape("mce", ": Machine Check: ", r"(?:mce: )?\[Hardware Error\]: CPU \d+: Machine Check: \S+ Bank (?P<code>\d+)"),
    Shape("edac", "EDAC MC", r"EDAC MC\d{1,3}: \d{1,9} (?P<code>CE|UE) "),
    Shape("ghes", "event severity: ", r"\{\d{1,9}\}\[Hardware Error\]: event severity: (?P<code>[\w ]{1,30})"),
    Shape(
        "oom-killer",
        "oom-kill:constraint=",
        r"oom-kill:constraint=CONSTRAINT_(?P<code>[A-Z_]{1,30})"
        rf"(?:,.{{1,4000}},task={PROCESS},pid={PID})?",
        role="opens",
    ),
    Shape("oom-killer", ": Kill process ", rf"{KILLED}Kill process {VICTIM}", role="opens"),
    Shape("oom-killer", "Killed process ", rf"(?:{KILLED})?Killed process {VICTIM}"),
    Shape(
        "segfault",
        "]: segfault at ",
        rf"(?P<name>.{{1,32}}?)\[{PID}\]: segfault at \w{{1,18}} ip [^\[\]]{{1,80}}?error \w+"
        r"(?: in (?P<code>[^\[ ]{1,80})\[)?",
    ),
    Shape(
        "trap",
        "traps: ",
        rf"traps: (?P<name>.{{1,32}}?)\[{PID}\] (?:trap )?(?P<code>[a-z][a-z ]{{2,30}}?)(?: fault)? r?ip:",
    ),
    Shape(
        "hung-task", "blocked for more than", r"INFO: task (?P<name>.{1,40}):(?P<pid>[0-9]{1,9}) blocked for more than"
    ),
    Shape("cpu-throttled", "clock throttled", r"(?:mce: )?CPU\d{1,5}: (?P<code>Core|Package) temperature above thresh"),
    Shape("link-down", "Link down", r"Link down", driver="mlx5_core"),
    Shape("link-down", "Link DOWN", r"Port: \d+ Link DOWN", driver="mlx5_core"),
    Shape("port-module", "Port module event[", rf"{PLACE}Port module event\[error\]: module \d+, (?P<code>.{{1,80}})"),
    Shape(
        "slot-power", "Detected insufficient power", rf"{PLACE}Detected insufficient power .{{1,30}}\((?P<code>\d+W)\)"
    ),
    Shape("nic-health", "health compromised", rf"{PLACE}device's health compromised", driver="mlx5_core"),
)
SIGNS = tuple(dict.fromkeys(shape.sign for shape in SHAPES if shape.sign not in (" timeout, ", " thread ")))
ANY = expression("|".join(re.escape(sign) for sign in dict.fromkeys(shape.sign for shape in SHAPES)))


class Found(NamedTuple):
    """An event read in one line, and what that line is to it."""

    event: HardwareEvent
    role: Role

    @property
    def place(self) -> tuple[str, str, str]:
        """The fault, without the moment."""
        return self.event.kind, self.event.code, self.event.address

    def near(self, other: Found) -> bool:
        """Whether a later line may tell of the same fault."""
        return self.event.kind == other.event.kind and other.event.origin.line - self.event.origin.line <= NEAR


@probe(
    "kernel-log",
    tells=(HardwareEvent, Text),
    command=("dmesg",),
    timeout=10.0,
    recognise=Recognise(
        (*MARKS, REFUSED, *SIGNS),
        "|".join((LOG, r"amdgpu [0-9a-f]{4}:|\[amdgpu\]\] \*ERROR\*", REFUSED, *map(re.escape, SIGNS))),
        each=True,
        lines=50,
    ),
)
def kernel_log(capture: Capture) -> Iterator[Fact]:
    """The kernel's log: each fault it names, and a mark that such a text was there."""
    told: Counter[str] = Counter()
    for line in capture.lines():
        if re.search(LOG, line.text) and any(mark in line.text for mark in (*MARKS, *SIGNS)):
            yield Text(origin=capture.origin(line), kinds=("kernel-log",))
            break
    for line in capture.lines():
        if REFUSED in line.text and line.text.strip().startswith("dmesg:"):
            reason = line.text.strip()
            yield Unavailable(origin=capture.origin(line), what="kernel-log", reason=reason, tells=("HardwareEvent",))
            break
    for event in _whole(_completed(found for line in capture.lines() for found in _found(capture, line))):
        told[event.kind] += 1
        if told[event.kind] <= CAP:
            yield event


def _found(capture: Capture, line: Line) -> Iterator[Found]:
    """The event of a line, by the first shape it has."""
    if not ANY.search(line.text):
        return
    at, message = _split(line.text)
    device = DEVICE.match(message)
    words = message[device.end() :] if device else message
    graphics = GRAPHICS.match(words)
    words = words[graphics.end() :] if graphics else words
    driver = device["driver"] if device else (graphics and graphics["driver"]) or ""
    for shape in SHAPES:
        if (
            shape.sign in line.text
            and shape.driver in ("", driver)
            and (match := _compiled(shape.pattern).match(words))
        ):
            read = match.groupdict()
            event = HardwareEvent(
                origin=capture.origin(line),
                kind=shape.kind,
                vendor=shape.vendor or MAKERS.get(driver, ""),
                code=_code(read.get("code") or ""),
                address=_address(read.get("address") or (device["address"] if device else "")),
                process=_process(read.get("name") or "", read.get("pid") or ""),
                at=at,
                message=cut(message.strip(), MESSAGE_CAP),
            )
            yield Found(event, shape.role)
            return


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return expression(pattern)


def _split(text: str) -> tuple[str, str]:
    """A line's stamp and its message, without what journal, syslog or `dmesg` put before it."""
    at = ""
    if found := SYSLOG.match(text):
        moment = TIME.search(found["head"])
        at, text = moment[0] if moment else "", text[found.end() :]
    for head in HEADS:
        if found := head.match(text):
            return at or found["at"].strip(), text[found.end() :]
    return at, text.lstrip(" \t>|*-\u2502\u2503")


def _whole(found: Iterable[Found]) -> Iterator[HardwareEvent]:
    """Each event; and of a fault of which a device shows parts alone, one event."""
    told: set[tuple[str, str]] = set()
    parts: dict[tuple[str, str], HardwareEvent] = {}
    for event, role in found:
        place = XIDS.get(event.code, event.kind) if event.kind == "xid" else event.kind, event.address
        if role == "part":
            parts[place] = _joined(event, parts.get(place, event))
        else:
            told |= {place, (place[0], "")}
            yield event
    yield from (event for place, event in parts.items() if place not in told)


def _completed(found: Iterable[Found]) -> Iterator[Found]:
    """Events, each once: what one line opens another near it completes."""
    held: Found | None = None
    seen: set[tuple[str, str, str]] = set()
    for one in found:
        if one.role in ("adds", "part"):
            if held and held.near(one) and held.event.address == one.event.address:
                held = held._replace(event=_joined(one.event, held.event))
            elif one.role == "part":
                yield one
            continue
        if held and not held.near(one):
            yield from _alone(held)
            held = None
        if one.role == "repeats" and one.place in seen:
            continue
        seen.add(one.place)
        if one.role in ("opens", "names"):
            same = held and one.event.kind == "oom-killer" and held.event.process in ("", one.event.process)
            if held and not same:
                yield from _alone(held)
            held = Found(_joined(held.event, one.event), "opens") if held and same else one
        else:
            yield one._replace(event=_joined(held.event, one.event)) if held else one
            held = None
    if held:
        yield from _alone(held)


def _alone(held: Found) -> Iterator[Found]:
    if held.role == "opens":
        yield held


def _joined(first: HardwareEvent, last: HardwareEvent) -> HardwareEvent:
    """The last line's event, with what only the first told."""
    return replace(last, **{name: value for name, value in first.told().items() if name not in last.told()})


def _code(words: str) -> str:
    return CODES.get(words, words.strip().replace(" ", "-"))


def _process(name: str, pid: str) -> str:
    number = f"[{pid}]" if re.fullmatch("[0-9]{1,9}", pid) and int(pid) else ""
    return ("" if name.strip() in UNKNOWN else name.strip()) + number


def _address(address: str) -> str:
    """A PCI address with its domain, and with a function, which some lines leave out."""
    bare = address.lower().replace("0x", "")
    return pci_address(bare if "." in bare else f"{bare}.0")
