"""Versions that go together: what releases ask for, which sets are known to work, and the verdict on a set."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct, field

from diag.facts.base import Passing
from diag.facts.reference import Reference

Level = Literal["known-bad", "verified", "reported", "metadata-conflict", "allowed-by-metadata", "unknown"]
LEVELS: tuple[Level, ...] = (
    "known-bad",
    "verified",
    "reported",
    "metadata-conflict",
    "allowed-by-metadata",
    "unknown",
)
"""The verdicts on a set of versions; the first that applies holds."""
EXACT = re.compile(r"==([\w.]+)")


class ComponentName(Reference, frozen=True, kw_only=True):
    """A word for a part of a set that is no distribution, and what the part is.

    `kind`: `python`, `libc`, `driver` (the kernel driver), `build` (the runtime that torch was built for), `toolkit`
    (a local compiler toolkit), `runtime` (any other runtime of a vendor), `ranks` (tensor-parallel size), `model`,
    `device`. `runtime` names the runtime in facts where it has another name, `vendor` whose it is, `flags` are those of
    launches that set it.
    """

    name: str
    kind: Literal["python", "libc", "driver", "build", "toolkit", "runtime", "ranks", "model", "device"]
    runtime: str = ""
    vendor: str = ""
    flags: tuple[str, ...] = ()


class Component(Passing, frozen=True, kw_only=True):
    """A part of a set that somebody asks about in a word: `driver=570.26`, `gpu=8xH200` (which has a count)."""

    name: str
    version: str
    count: int | None = None


class Release(Reference, frozen=True, kw_only=True):
    """What a release of a distribution states: its pins, and what its default build was compiled for.

    `pins` are PEP 440 specifiers by name, `python` among them; `read` is False where the requirements were not read.
    `runtime` and `runtime_version` are those of the build that a plain installation gives, `builds` the versions of the
    runtime for which there are others, `image_version` that of the torch in its image, where it is another than torch's
    default. `architectures` are those of its machine code, `compute_NN` for PTX. `glibc` is
    that of the wheel's tag. `overrides` are pins of other distributions (`engine.torch`) that this one, a vendor's
    plug-in, breaks on purpose; `pairs` what it goes with that is no distribution.
    """

    package: str
    version: str
    released: str = ""
    pins: dict[str, str] = field(default_factory=dict)
    read: bool = True
    runtime: str = ""
    runtime_version: str = ""
    builds: tuple[str, ...] = ()
    image_version: str = ""
    architectures: tuple[str, ...] = ()
    glibc: str = ""
    overrides: tuple[str, ...] = ()
    pairs: dict[str, str] = field(default_factory=dict)
    doubt: str = ""

    def pinned(self, name: str) -> str:
        """The one version that it pins a distribution to; empty for a range, a local part or none."""
        found = EXACT.fullmatch(self.pins.get(name, ""))
        return found[1] if found else ""


class KnownSet(Reference, frozen=True, kw_only=True):
    """A set of versions that ran: `verified` where a document has a result row for it, else `reported`.

    `versions` must all be there, `beside` must not differ where told. `gpu` are patterns, as of a shell, of the names
    of devices without their maker's word. `install` are commands that give the set, `flags` those it was started with.
    """

    id: str
    level: Literal["verified", "reported"]
    vendor: str = ""
    gpu: tuple[str, ...] = ()
    count: int | None = None
    versions: dict[str, str]
    beside: dict[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    model: str = ""
    image: str = ""
    install: tuple[str, ...] = ()
    flags: str = ""
    result: str = ""
    note: dict[str, str] = field(default_factory=dict)


class Variant(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An image of its own for some devices: what stands behind its tag, from which release on, and their names."""

    suffix: str
    since: str
    gpu: tuple[str, ...]


class Published(Reference, frozen=True, kw_only=True):
    """How each release of a distribution is published beside its default wheel.

    `image` and the command `start` that starts it, for devices of `vendor`, its `variants` for other devices, and the
    parts that it `brings` itself; the command `build` that installs the build for another runtime, from release `since`
    on. `{version}`, `{image}`, `{build}` (`129` for 12.9) are to be filled. `image_since` is the release from which the
    image asks the host for the runtime that the wheel is built for.
    """

    package: str
    vendor: str
    image: str = ""
    variants: tuple[Variant, ...] = ()
    brings: tuple[str, ...] = ()
    start: str = ""
    build: str = ""
    since: str = ""
    image_since: str = ""


class DeviceModel(Reference, frozen=True, kw_only=True):
    """A model of accelerator: the names it goes by, its architecture, and its figures where known.

    `names` are patterns, as of a shell, of the whole name that the vendor's tool or torch prints, without the maker's
    word. `memory_gb` is what the maker states, `observed_mib` what tools print, `usable_gib` what torch calls its
    total; bandwidth in GB/s; rates in dense TFLOPS (TOPS). `data_center`: whether the maker counts it among its
    data-center devices. `machine` is the architecture of the host's processor, in the kernel's word, where the device
    is sold with one.
    """

    vendor: str
    name: str
    names: tuple[str, ...] = ()
    architecture: str = ""
    memory_gb: float | None = None
    observed_mib: float | None = None
    usable_gib: float | None = None
    bandwidth_gbps: float | None = None
    bf16_tflops: float | None = None
    fp8_tflops: float | None = None
    int8_tops: float | None = None
    link: str = ""
    data_center: bool | None = None
    machine: str = ""
    doubt: str = ""


class TorchWheel(Reference, frozen=True, kw_only=True):
    """What the wheel that a plain installation gives on a machine was built for, where that is not the usual.

    `torch` is a PEP 440 range, `backend` as in `TorchBuild`, `vendor` the maker whose devices it has no code for.
    `index` is the part of torch's own index that has the other build for these versions, where one was shown; from
    `until` on the plain wheel is as usual.
    """

    torch: str
    machine: str
    vendor: str
    backend: str
    until: str = ""
    index: str = ""


class TorchArchitectures(Reference, frozen=True, kw_only=True):
    """The architectures in PyTorch's own builds: `torch` is a PEP 440 range, `version` of the runtime, or `13.*`."""

    torch: str
    runtime: str
    version: str
    architectures: tuple[str, ...]
    machine: str = ""
    doubt: str = ""


class ForwardCompatibility(Reference, frozen=True, kw_only=True):
    """The branches of drivers that can run a newer major version of a runtime with the maker's compatibility package.

    `version` is the runtime's (its major, or the version of the package), `branches` as the first number of the driver;
    `brands` are those of devices that the maker's images of this version let in on these branches.
    """

    vendor: str
    runtime: str
    version: str
    branches: tuple[str, ...]
    brands: tuple[str, ...] = ()
    package: str = ""


class Reason(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What speaks for a verdict: the rule that decided, what it says, its source and the day that was checked."""

    rule: str
    verdict: Level
    severity: Literal["error", "warning", "info"]
    says: str
    source: str
    checked: str


class Suggestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A way to a set that works: what changes (`torch 2.9.1 -> 2.11.0`), the commands, and how well it is known."""

    changes: tuple[str, ...]
    commands: tuple[str, ...] = ()
    level: Level
    says: str = ""
    source: str = ""
    checked: str = ""


class MatrixVerdict(Passing, frozen=True, kw_only=True):
    """The verdict on the versions of one machine: what was judged, every reason, and what limits the answer.

    `components` are the parts by name; `notes` say what was not known, and how old the data is, `undecided`
    why nothing decides where there is no reason; `suggestions` lead to sets that work, the nearest first.
    """

    verdict: Level
    components: dict[str, str] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def deciding(self) -> tuple[Reason, ...]:
        """The reasons that stand behind the verdict."""
        return tuple(one for one in self.reasons if one.verdict == self.verdict)
