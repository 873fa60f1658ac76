"""Software: interpreters, distributions, torch, drivers, runtimes and libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from diag.facts.base import Fact, Origin, Passing
from diag.versions import public

RuntimeKind = Literal["toolkit", "library", "loaded", "compiled"]
"""Installed with its compiler; installed to be used; in the memory of a process; what another was compiled against."""


class Python(Fact, frozen=True, kw_only=True):
    """An interpreter: its version, and its path where known."""

    version: str
    executable: str = ""
    prefix: str = ""


class Package(Fact, frozen=True, kw_only=True):
    """An installed Python distribution; `name` in PEP 503 form, `location` the folder it was found in.

    `tag` is that of the wheel it came in (`cp312-cp312-manylinux_2_28_x86_64`).
    """

    name: str
    version: str
    location: str = ""
    installer: str = ""
    tag: str = ""

    def identity(self) -> tuple[str, str] | None:
        """An environment has one version of a distribution; the local part is not printed everywhere."""
        return (f"package {self.name}", public(self.version))


class PackageFault(Passing, frozen=True, kw_only=True):
    """A distribution that is not as an installer leaves it.

    `leftover`: a folder that pip renamed and did not remove (`~orch`); `no-metadata`: its metadata cannot be read;
    `twice`: another version of it stands in the same folder; `unimportable`: its files are gone.
    """

    name: str
    problem: Literal["leftover", "no-metadata", "twice", "unimportable"]
    location: str = ""


class Requirement(Fact, frozen=True, kw_only=True):
    """What an installed distribution's own metadata asks for: a PEP 440 specifier, empty for any version.

    `package` and `name` in PEP 503 form; `name` is `python` for the interpreter. Those of extras, and those whose
    marker does not hold here, are not told.
    """

    package: str
    version: str
    name: str
    specifier: str = ""


class PackageList(Fact, frozen=True, kw_only=True):
    """The packages told are all there are: one that is not among them is not installed."""

    count: int


class TorchBuild(Fact, frozen=True, kw_only=True):
    """The torch that was imported or read: version, and the runtime it was built for.

    `backend` is `cuda`, `rocm`, `xpu` or `cpu` (torch's words), empty where not told; `available` is what
    `torch.cuda.is_available()` answered, `answered` where; `architectures` as in `torch.cuda.get_arch_list()`;
    `collectives` are the back ends of `torch.distributed` it was built with. `basis` says what the runtime was
    concluded from where no text tells it.
    """

    version: str = ""
    backend: str = ""
    backend_version: str = ""
    debug: bool | None = None
    available: bool | None = None
    answered: Origin | None = None
    architectures: tuple[str, ...] = ()
    cxx11_abi: bool | None = None
    collectives: tuple[str, ...] = ()
    basis: str = ""

    @property
    def inferred(self) -> bool:
        """Whether its runtime was concluded."""
        return bool(self.basis)

    def identity(self) -> tuple[str, str] | None:
        """The same torch as the distribution of that name."""
        return ("package torch", public(self.version)) if self.version else None


def torch_backend(words: Mapping[str, Any]) -> tuple[str, str]:
    """The runtime a torch was built for, and its version, from the words of `torch.version`."""
    for word, name in (("hip", "rocm"), ("cuda", "cuda"), ("xpu", "xpu")):
        if words.get(word):
            return name, str(words[word])
    return "cpu", ""


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


class Library(Fact, frozen=True, kw_only=True):
    """A shared library in the memory of a process: its base name without what follows `.so`, its file and version.

    `process` says whose memory: `torch` for a child that had imported it.
    """

    name: str
    path: str
    version: str = ""
    process: str = ""
