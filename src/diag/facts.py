"""What can be known of a machine: typed facts, each with the place it was read.

The vocabulary is neutral: a vendor or an engine is a value, never a class. Several sources may tell parts of one thing
(a `Host` from the kernel, another from a pasted report): every part is a fact of its own and nothing is merged behind
the reader's back. A field that was not told is empty or None, which never means "none".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from diag.versions import public

if TYPE_CHECKING:
    from typing_extensions import Self


How = Literal["missing", "failed", "silent"]
RuntimeKind = Literal["toolkit", "library", "loaded"]
SeenBy = Literal["tool", "torch", "pci", ""]


class Origin(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a fact was read: capture, line (from 1; 0 = the capture as a whole), the line itself, and its scope."""

    capture: str
    line: int = 0
    quote: str = ""
    scope: str = ""


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something known, and where from."""

    origin: Origin

    def identity(self) -> tuple[str, str] | None:
        """What one machine has once, as (name, value): texts that differ in it are about different machines."""
        return None

    def told(self) -> dict[str, Any]:
        """The fields that were told, without the origin."""
        return {
            name: value
            for name, value in asdict(self).items()
            if value is not None and value != "" and value != () and not isinstance(value, Origin)
        }

    def of(self, scope: str) -> Self:
        """The fact as one about this machine."""
        origins = {name: value for name, value in asdict(self).items() if isinstance(value, Origin)}
        return replace(self, **{name: replace(origin, scope=scope) for name, origin in origins.items()})

    def says(self) -> str:
        """The fact in one line for evidence: its kind and the fields told."""
        fields = ", ".join(f"{name}={_short(value)}" for name, value in self.told().items())
        return f"{type(self).__name__} {fields}"


def _short(value: object) -> str:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 80 else text[:79] + "…"


class Host(Fact, frozen=True, kw_only=True):
    """The machine and its operating system; memory in bytes, `libc` as `glibc-2.36`."""

    name: str = ""
    os: str = ""
    kernel: str = ""
    machine: str = ""
    libc: str = ""
    cpu: str = ""
    cpus: int | None = None
    memory_bytes: int | None = None
    virtual: str = ""

    def identity(self) -> tuple[str, str] | None:
        """A machine has one name."""
        return ("host", self.name) if self.name else None


class Mount(Fact, frozen=True, kw_only=True):
    """A mounted file system: its size and what is free, in bytes."""

    path: str
    kind: str = ""
    size_bytes: int | None = None
    free_bytes: int | None = None


class Setting(Fact, frozen=True, kw_only=True):
    """A named value that somebody can change: an environment variable, a kernel parameter, a limit."""

    name: str
    value: str
    kind: Literal["environment", "kernel", "limit"] = "environment"


class Container(Fact, frozen=True, kw_only=True):
    """The text was taken inside a container of this runtime (`docker`, `podman`, `kubernetes`, …)."""

    runtime: str = ""


class Python(Fact, frozen=True, kw_only=True):
    """An interpreter: its version, and its path where known."""

    version: str
    executable: str = ""
    prefix: str = ""


class Package(Fact, frozen=True, kw_only=True):
    """An installed Python distribution; `name` in PEP 503 form, `location` the folder it was found in."""

    name: str
    version: str
    location: str = ""
    installer: str = ""

    def identity(self) -> tuple[str, str] | None:
        """An environment has one version of a distribution; the local part is not printed everywhere."""
        return (f"package {self.name}", public(self.version))


class PackageList(Fact, frozen=True, kw_only=True):
    """The packages told are all there are: one that is not among them is not installed."""

    count: int


class TorchBuild(Fact, frozen=True, kw_only=True):
    """The torch that was imported or read: version, and the runtime it was built for.

    `backend` is `cuda`, `rocm`, `xpu` or `cpu` (torch's words), empty where not told; `available` is what
    `torch.cuda.is_available()` answered, `answered` where; `architectures` as in `torch.cuda.get_arch_list()`.
    """

    version: str = ""
    backend: str = ""
    backend_version: str = ""
    debug: bool | None = None
    available: bool | None = None
    answered: Origin | None = None
    architectures: tuple[str, ...] = ()

    def identity(self) -> tuple[str, str] | None:
        """The same torch as the distribution of that name."""
        return ("package torch", public(self.version)) if self.version else None


def torch_backend(words: Mapping[str, Any]) -> tuple[str, str]:
    """The runtime a torch was built for, and its version, from the words of `torch.version`."""
    for word, name in (("hip", "rocm"), ("cuda", "cuda"), ("xpu", "xpu")):
        if words.get(word):
            return name, str(words[word])
    return "cpu", ""


class Accelerator(Fact, frozen=True, kw_only=True):
    """One device: its number as the tool prints it, name, PCI address with domain, memory in MiB, architecture.

    `vendor` is empty where the text does not tell it; a name that ends in `...` was cut by the tool. `architecture` is
    the vendor's own word (`sm_90`, `gfx942`). `seen_by` says what told it: the vendor's tool (`tool`), torch (`torch`),
    or the bus (`pci`), which needs no driver.
    """

    vendor: str = ""
    name: str = ""
    index: int | None = None
    address: str = ""
    memory_mib: float | None = None
    architecture: str = ""
    seen_by: SeenBy = ""


class Driver(Fact, frozen=True, kw_only=True):
    """A vendor's driver: the loaded version, and the newest runtime version it offers where told.

    `refused`: torch's own words were that it is too old for the runtime it was built for.
    """

    vendor: str
    version: str = ""
    offers: str = ""
    refused: bool | None = None

    def identity(self) -> tuple[str, str] | None:
        """A machine runs one driver of a vendor."""
        return (f"driver {self.vendor}", self.version) if self.version else None


class Runtime(Fact, frozen=True, kw_only=True):
    """A vendor runtime or toolkit on the machine: `name` (`cuda`, `rocm`, …) and what kind of copy it is."""

    name: str
    version: str
    kind: RuntimeKind = "library"


class Engine(Fact, frozen=True, kw_only=True):
    """An inference engine: installed, running, or planned (asked about)."""

    name: str
    version: str = ""
    role: Literal["installed", "running", "planned"] = "installed"


class LaunchArguments(Fact, frozen=True, kw_only=True):
    """What an engine is or will be started with; flags without their dashes, in the order given."""

    engine: str
    model: str = ""
    flags: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()


class Platform(Fact, frozen=True, kw_only=True):
    """Which vendors' accelerators a machine has: those known to be there, and those known not to be."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class MemoryBandwidth(Fact, frozen=True, kw_only=True):
    """A measured copy bandwidth in GB/s (10^9 bytes read and written per second, counted once)."""

    subject: str
    gbps: float
    bytes: int
    seconds: float


class Text(Fact, frozen=True, kw_only=True):
    """A window of a longer text around lines that some entry asks about; `kinds` says what texts they stand in."""

    content: str
    kinds: tuple[str, ...] = ()


class Unavailable(Fact, frozen=True, kw_only=True):
    """A probe was tried and told nothing: the reason is evidence of absence, which silence is not.

    `what` is the probe's key. `missing`: its program, file or module is not there; `failed`: it is there and did not
    do its work; `silent`: it ended well and nothing in its text was understood.
    """

    what: str
    reason: str
    how: How = "failed"
    tells: tuple[str, ...] = ()


class Reference(Fact, frozen=True, kw_only=True):
    """A row of public knowledge to compare with: its source and the day it was checked."""

    source: str
    checked: str


class RuntimeDriver(Reference, frozen=True, kw_only=True):
    """The driver a runtime needs: the version it shipped with, and the oldest of the same major that still runs it."""

    vendor: str
    runtime: str
    version: str
    driver: str
    compatible_driver: str = ""


F = TypeVar("F", bound=Fact)


class Facts:
    """An immutable bag of facts, asked by kind."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._facts = tuple(facts)
        self._by_kind: dict[type[Fact], list[Fact]] = {}
        self._by_scope: dict[str, list[Fact]] | None = None
        for fact in self._facts:
            self._by_kind.setdefault(type(fact), []).append(fact)

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def all(self, kind: type[F]) -> tuple[F, ...]:
        """Every fact of exactly this kind, in the order they were learnt."""
        return tuple(self._by_kind.get(kind, ()))  # type: ignore[arg-type]

    def first(self, kind: type[F]) -> F | None:
        """The first fact of this kind, or None."""
        found = self._by_kind.get(kind)
        return found[0] if found else None  # type: ignore[return-value]

    def field(self, kind: type[F], name: str) -> Any:
        """The first value told for a field of this kind, or None."""
        return next((fact.told()[name] for fact in self.all(kind) if name in fact.told()), None)

    def package(self, name: str) -> Package | None:
        """The installed distribution of this name (PEP 503 form), or None where none was told."""
        return next((package for package in self.all(Package) if package.name == name), None)

    def adding(self, more: Iterable[Fact]) -> Facts:
        """A new bag that holds these facts and more."""
        return Facts((*self._facts, *more))

    def scopes(self) -> tuple[str, ...]:
        """The scopes to judge one by one: those named, or the one unnamed scope."""
        named = dict.fromkeys(fact.origin.scope for fact in self._facts if fact.origin.scope)
        return tuple(named) or ("",)

    def within(self, scope: str) -> Facts:
        """The facts of one scope, with those that belong to every scope (what was asked, what is reference)."""
        if self._by_scope is None:
            self._by_scope = {}
            for fact in self._facts:
                self._by_scope.setdefault(fact.origin.scope, []).append(fact)
        shared = self._by_scope.get("", ())
        return Facts((*shared, *self._by_scope.get(scope, ())) if scope else shared)


def devices(facts: Facts) -> tuple[Accelerator, ...]:
    """One accelerator for each device, although several sources told of it.

    Each source lists the machine's devices in its own way: the one that lists most is taken as the list, and what the
    others know of the device with the same number is filled in.
    """
    sources: dict[tuple[str, str], list[Accelerator]] = {}
    for device in facts.all(Accelerator):
        listed = sources.setdefault((device.origin.capture, device.seen_by), [])
        same = next((place for place, one in enumerate(listed) if _same(one, device)), None)
        if same is None:
            listed.append(device)
        else:
            listed[same] = _filled(listed[same], device)
    ranked = sorted(sources.values(), key=lambda listed: -len(listed))
    if not ranked:
        return ()
    others = {(device.vendor, device.index): device for listed in reversed(ranked[1:]) for device in listed}
    return tuple(_filled(device, others.get((device.vendor, device.index))) for device in ranked[0])


def _same(one: Accelerator, other: Accelerator) -> bool:
    """Whether two lines of one source are about one device: a table that is printed twice, or two tables."""
    if one.address and other.address:
        return one.address == other.address
    return one.index is not None and (one.vendor, one.index) == (other.vendor, other.index)


def _filled(device: Accelerator, other: Accelerator | None) -> Accelerator:
    if other is None or device.index is None:
        return device
    missing = {name: value for name, value in other.told().items() if name not in device.told()}
    return replace(device, **missing)
