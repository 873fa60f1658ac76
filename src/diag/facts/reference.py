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
    version (`+das.opt1.dtk2604`), `unified` words in the names of devices whose memory is the host's. `poses_as` is the
    vendor that tools and torch take it for.
    """

    vendor: str
    names: tuple[str, ...] = ()
    pci: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    locals: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    unified: tuple[str, ...] = ()
    poses_as: str = ""


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
