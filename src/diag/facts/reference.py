"""Public knowledge to compare with: rows of `kb/reference`, as facts with their source."""

from __future__ import annotations

from typing import Literal

from diag.facts.base import Fact


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


class Vendor(Reference, frozen=True, kw_only=True):
    """How a maker of accelerators is known: by the starts of its devices' names, and by what its software leaves.

    `pci` are vendor and class on the bus (`10de:03`: a vendor id, then how the class begins), `nodes` and `folders`
    patterns as of a shell, `modules` of the kernel, `packages` in PEP 503 form, `locals` words in the local part of a
    version (`+das.opt1.dtk2604`), `unified` words in the names of devices whose memory is the host's.
    `drivers` is a regular expression of the versions of its drivers, where they are numbered like no other's.
    `poses_as` is the vendor that tools and torch take it for. `called` is its word for a device (`npu`), `visible` are
    the variables that
    choose its devices for a process, the strongest first. `container_nodes` are patterns of device files, one of each
    of which a container must have, `container_mounts` folders of the host that it must have mounted.
    """

    vendor: str
    names: tuple[str, ...] = ()
    drivers: str = ""
    pci: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    locals: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    unified: tuple[str, ...] = ()
    poses_as: str = ""
    called: str = "gpu"
    visible: tuple[str, ...] = ()
    container_nodes: tuple[str, ...] = ()
    container_mounts: tuple[str, ...] = ()


class EngineFlag(Reference, frozen=True, kw_only=True):
    """A flag that an engine's command line takes: names without dashes, and what follows it.

    `takes` is `none`, `one`, `many` (all words up to the next flag) or `optional`; `negatable` flags have a form
    `--no-NAME`, too. `command` is empty for what starts a server, else the command that alone takes it (`bench`,
    `router`). `since` and `until` are the oldest and the newest of the compared versions that have it, empty where
    these are the ends of what was compared.
    """

    engine: str
    name: str
    aliases: tuple[str, ...] = ()
    takes: Literal["none", "one", "many", "optional"] = "one"
    negatable: bool = False
    command: str = ""
    since: str = ""
    until: str = ""


class EventCode(Reference, frozen=True, kw_only=True):
    """What a code that hardware reports means: the kind of event (`xid`), the vendor's name for it, and whose fault.

    `blames`: `application` (a kernel of the process), `driver`, `hardware`, `user` (somebody did it), or `either` where
    the vendor names several. `fatal`: the device cannot be used until something is done, which `action` names.
    """

    kind: str
    code: str
    name: str
    blames: Literal["application", "driver", "hardware", "user", "either"]
    fatal: bool = False
    action: Literal["none", "restart-application", "reset", "reboot", "service"] = "none"


class Variable(Reference, frozen=True, kw_only=True):
    """A variable that changes how an engine, a runtime or a collective library works, and what it costs when left on.

    `values` is a regular expression of the values that do so (the whole value must match). `purpose`: `debugging`
    (slows or floods), `fallback` (switches a fast path off), `cpu` (lets operators run on the CPU where they would
    raise), `override` (makes a device pose as another), `offline` (stops downloads). `effect` says in English and
    Chinese what happens.
    """

    name: str
    values: str
    purpose: Literal["debugging", "fallback", "cpu", "override", "offline"]
    effect: dict[str, str]
    vendor: str = ""


class Pin(Reference, frozen=True, kw_only=True):
    """What a release asks of another distribution, from its published metadata: `specifier` as PEP 440 has it."""

    package: str
    version: str
    name: str
    specifier: str


class EngineStep(Reference, frozen=True, kw_only=True):
    """A step from a model's last layer to the next token, or of a decoder, that diag can replay by itself.

    `step` is its name in `measure/steps.py`, `engines` those that do it so where no fused kernel does it for them.
    `title` says in English and Chinese what it is.
    """

    step: str
    part: Literal["sampler", "decode"]
    engines: tuple[str, ...]
    title: dict[str, str]


class EngineOperator(Reference, frozen=True, kw_only=True):
    """An operator of torch that such steps reach on a backend that plugs into torch, named by overload.

    One that `calls` others is a composite: torch's own kernel of it is made of those, unless the backend brings one.
    One that calls none is a leaf: the backend must bring the kernel, else the call raises, or goes to the CPU. `shape`
    is that of a leaf's largest tensor: B requests, V entries of the vocabulary, T = B*n draft tokens, N log
    probabilities, K of top-k, P and O tokens of prompt and answer, C of context, H the width, D a head's, F inside.
    `steps` lead to it, `parts` are theirs.
    """

    operator: str
    overload: str = ""
    calls: tuple[str, ...] = ()
    shape: str = ""
    parts: tuple[Literal["sampler", "decode"], ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Operator and overload as the dispatcher writes them: `aten::sort.values_stable`."""
        return f"{self.operator}.{self.overload}" if self.overload else self.operator
