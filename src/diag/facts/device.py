"""Accelerators: which there are, how they are joined, and what they say of themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec.structs import replace

from diag.facts.base import Fact, Passing
from diag.facts.reference import Reference

Direction = Literal["to-device", "from-device"]
SeenBy = Literal["tool", "torch", "pci", "node", "asked", ""]


class Accelerator(Fact, frozen=True, kw_only=True):
    """One device: its number as the tool prints it, name, PCI address with domain, memory in MiB, architecture.

    `vendor` is empty where the text does not tell it; a name that ends in `...` was cut by the tool. `architecture` is
    the vendor's own word (`sm_90`, `gfx942`). `seen_by` says what told it: the vendor's tool (`tool`), torch (`torch`),
    the bus (`pci`), which needs no driver, a device file (`node`), or who asks about a set of versions (`asked`).
    """

    vendor: str = ""
    name: str = ""
    index: int | None = None
    address: str = ""
    memory_mib: float | None = None
    architecture: str = ""
    seen_by: SeenBy = ""


PCI_ADDRESS = re.compile(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")


def pci_address(text: str) -> str:
    """A PCI address in lower case, its domain of four digits where four are enough; empty where the text is none."""
    found = PCI_ADDRESS.fullmatch(text)
    return f"{int(found[1] or '0', 16):04x}:{found[2].lower()}" if found else ""


def distinct(told: Iterable[Accelerator]) -> tuple[Accelerator, ...]:
    """One accelerator for each device, although several sources told of it.

    Each source lists a maker's devices in its own way: of the sources that know more than the bus, the one that lists
    most is taken as the list, and what the others know of the device with the same address or number is filled in.
    """
    makers: dict[str, dict[tuple[str, str], list[Accelerator]]] = {}
    for device in told:
        listed = makers.setdefault(device.vendor, {}).setdefault((device.origin.capture, device.seen_by), [])
        same = next((place for place, one in enumerate(listed) if _same(one, device)), None)
        if same is None:
            listed.append(device)
        else:
            listed[same] = _filled(listed[same], device)
    if len(makers) == 2 and "" in makers:
        unnamed = makers.pop("")
        makers[next(iter(makers))] |= unnamed
    return tuple(device for sources in makers.values() for device in _joined(sources.values()))


def _joined(sources: Iterable[list[Accelerator]]) -> Iterator[Accelerator]:
    """The devices of the best list, with what the others know of them."""
    best, *others = sorted(sources, key=lambda listed: (listed[0].seen_by in ("pci", "node"), -len(listed)))
    known = [device for listed in others for device in listed]
    for device in best:
        for other in known:
            device = _filled(device, other) if _same(device, other) else device
        yield device


def _same(one: Accelerator, other: Accelerator) -> bool:
    """Whether two lines are about one device: those of a table that is printed twice, or of two tables."""
    numbered = one.index is not None and other.index is not None
    if one.address and other.address and one.address != other.address:
        return False
    return one.index == other.index if numbered else bool(one.address and other.address)


def _filled(device: Accelerator, other: Accelerator) -> Accelerator:
    missing = {name: value for name, value in other.told().items() if name not in device.told()}
    return replace(device, **missing)


class Link(Fact, frozen=True, kw_only=True):
    """How two parts of a machine are joined, in the vendor's own word (`NV18`, `PIX`, `SYS`, `XGMI`, `HCCS`).

    `first` and `second` are as the table names them (`GPU0`, `NIC3`, `mlx5_0`). A matrix gives each pair once, with the
    first named first.
    """

    first: str
    second: str
    kind: str
    vendor: str = ""


class Reading(Passing, frozen=True, kw_only=True):
    """A named value that a device or its tool shows: `value` as printed, without its unit.

    `name` is dotted and the same for all vendors where the thing is the same: see `READINGS`. `index` and `address` say
    which device, neither where it is about all.
    """

    name: str
    value: str
    unit: str = ""
    vendor: str = ""
    index: int | None = None
    address: str = ""


READINGS = {
    "memory.used": "MiB in use",
    "memory.free": "MiB free",
    "utilization": "percent of the time something ran",
    "temperature": "degrees Celsius",
    "temperature.memory": "degrees Celsius of its memory",
    "power": "watts drawn",
    "power.limit": "watts it may draw",
    "power.limit.default": "watts it may draw as it was delivered",
    "clock.sm": "MHz, now",
    "clock.sm.max": "MHz, at most",
    "clock.memory": "MHz, now",
    "health": "the tool's own word for its state",
    "persistence": "whether the driver stays loaded (On, Off)",
    "compute.mode": "who may use it (Default, Exclusive_Process, Prohibited)",
    "mig.mode": "whether it is divided (Enabled, Disabled; with a star where that waits for a reset)",
    "ecc.mode": "whether memory errors are corrected",
    "ecc.uncorrected": "errors since the driver was loaded that could not be corrected",
    "ecc.corrected": "errors since the driver was loaded that were corrected",
    "ecc.uncorrected.total": "errors ever that could not be corrected",
    "ecc.corrected.total": "errors ever that were corrected",
    "retired.pending": "whether memory waits for a reset to be retired or remapped",
    "remapped.failure": "whether a row could not be remapped",
    "throttle": "a reason why the clock is lowered that is active now, one reading each",
    "pcie.generation": "generation of the link, now",
    "pcie.generation.max": "generation of the link, at most",
    "pcie.width": "lanes of the link, now",
    "pcie.width.max": "lanes of the link, at most",
    "link.inactive": "a link to its peers that is down, by its number, one reading each",
    "link.errors": "errors that its links have counted",
    "fabric.state": "state of its registration with the switch fabric",
    "firmware": "version of its firmware",
}


class Partition(Fact, frozen=True, kw_only=True):
    """A part of a device that poses as a device (MIG, vGPU): its profile and memory, and the device it is a part of."""

    index: int | None = None
    name: str = ""
    memory_mib: float | None = None
    vendor: str = ""


class DeviceProcess(Passing, frozen=True, kw_only=True):
    """A process that holds memory of a device, in MiB."""

    index: int | None = None
    pid: int | None = None
    name: str = ""
    memory_mib: float | None = None
    vendor: str = ""


class DeviceTrial(Passing, frozen=True, kw_only=True):
    """Whether a kernel over one element really ran on a device of torch, and what torch said where not."""

    backend: str
    index: int
    ok: bool
    error: str = ""
    seconds: float | None = None


class Expected(Passing, frozen=True, kw_only=True):
    """What the user says the machine must have: a number of devices, and words that stand in the name of each."""

    count: int
    name: str = ""


class Platform(Fact, frozen=True, kw_only=True):
    """Which vendors' accelerators a machine has: those known to be there, and those known not to be.

    `poses_as` are the vendors that one of those present is taken for by tools and by torch. `traits` are what sets the
    machine apart: `wsl`, `virtual`, `container`, `unified-memory`, `partitioned`.
    """

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    poses_as: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()


class MemoryBandwidth(Passing, frozen=True, kw_only=True):
    """A measured copy bandwidth in GB/s (10^9 bytes read and written per second, counted once)."""

    subject: str
    gbps: float
    bytes: int
    seconds: float


class DeviceTest(Passing, frozen=True, kw_only=True):
    """What became of a device's self-test: `device` as torch calls it (`cuda:0`), with its name and address on the bus.

    `error` says how the test ended where not by itself (`killed by SIGSEGV`), `phase` what it was about then. `done`
    counts the steps that were done, `untold` are those that raised, each with what was said. `free_bytes` is its free
    memory at the start, `after_bytes` that after the test was killed.
    """

    device: str
    name: str = ""
    address: str = ""
    memory_bytes: int | None = None
    phase: str = ""
    error: str = ""
    done: int = 0
    untold: tuple[str, ...] = ()
    seconds: float | None = None
    free_bytes: int | None = None
    after_bytes: int | None = None


class DeviceMeasure(Passing, frozen=True, kw_only=True):
    """A step of a self-test: `value` by the median of its calls, `best` by the fastest; none may be wrong.

    GB/s are 10^9 bytes per second, TFLOPS 10^12 operations. Others that use the device only slow it: `best` is what it
    can at least.
    """

    device: str
    name: str = ""
    value: float
    best: float
    seconds: float
    samples: int | None = None
    correct: bool | None = None


class DeviceMemory(DeviceMeasure, frozen=True, kw_only=True):
    """The memory of a device in GB/s, bytes read and written both counted, as makers do; by `copy` or `kernel`."""

    how: str
    bytes: int


class HostLink(DeviceMeasure, frozen=True, kw_only=True):
    """The way between host and device in GB/s: its direction, and whether from or into pinned memory."""

    direction: Direction
    pinned: bool
    bytes: int


class MatrixProduct(DeviceMeasure, frozen=True, kw_only=True):
    """A product of matrices of `size` by `size` in TFLOPS; of a verified one `wrong` elements are not the host's."""

    dtype: str
    size: int
    wrong: int = 0


Looks = Literal[
    "", "nan", "infinite", "zero", "constant", "permuted", "scaled", "imprecise", "other",
    "outside", "repeated", "ordered", "distribution",
]  # fmt: skip
"""What wrong answers have in common; the last four are of random numbers only."""


class DeviceNumerics(Passing, frozen=True, kw_only=True):
    """What an operator answered on a device in a type, beside the host in double precision, each element by its bound.

    `wrong` of the `elements` are beyond it; `worst` is the largest difference and `allowed` the bound there, None where
    it is no number. Of the first answer that was wrong: its `shape`, where in it the wrong ones are (`extent`), and the
    first and last of their `rows` and `columns`. Of random numbers `worst` is the distance of distribution functions.
    """

    device: str
    name: str = ""
    operator: str
    dtype: str
    elements: int
    wrong: int = 0
    worst: float | None = None
    allowed: float | None = None
    looks: Looks = ""
    extent: Literal["", "one", "block", "scattered", "all"] = ""
    shape: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    correct: bool

    @property
    def near(self) -> bool:
        """Whether all that is wrong is right to two digits."""
        return self.looks == "imprecise"


class DeviceBaseline(Reference, frozen=True, kw_only=True):
    """What a model of device reaches: `measure` is `memory`, `host-link` (GB/s), or the type of a product (TFLOPS).

    `standing` says who stands for it: somebody's threshold in production (`pass`), or one measurement (`measured`).
    """

    vendor: str
    device: str
    measure: Literal["memory", "host-link", "bf16", "fp16", "fp32"]
    value: float
    standing: Literal["pass", "measured"]
    note: str = ""
