"""Which rank of which world this process is, as the launcher that started it says in its variables.

Knows torchrun (and whoever sets what torch reads), srun, Open MPI, MPICH and others on Hydra, and PMIx. A launcher that
started one process alone, or the shell of a batch job, started no world. Where a launcher names no address the ranks
meet at the first host of its list, or here if all are here; the port is made from the job's name, so that all come to
the same. What this cannot know: whether that port is free, and whether the other ranks really were started.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from diag.errors import DiagError
from diag.text import cut

PORTS = range(20_000, 30_000)
"""Ports below those that Linux gives to outgoing connections."""
MOST, DIGITS, SHOWN = 65_535, 8, 40
"""The most that any of these numbers can be, a port or a rank."""
HERE = "127.0.0.1"
NODES = re.compile(r"([\w.-]+)(?:\[(\w+))?")
"""The first host of a list such as `gpu[01-04,07],login1`."""


class Rank(NamedTuple):
    """This process in its world: number, how many there are, number on this host, where they meet, who started it."""

    rank: int
    size: int
    local: int
    address: str
    port: int
    launcher: str

    def environment(self) -> dict[str, str]:
        """The variables that torch reads."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(self.local),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


class Launcher(NamedTuple):
    """The variables of a launcher; `job` are those that together name the job, `nodes` the list of its hosts."""

    name: str
    rank: str
    size: str
    local: str
    local_size: str = ""
    nodes: str = ""
    job: tuple[str, ...] = ()


LAUNCHERS = (
    Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", job=("TORCHELASTIC_RUN_ID",)),
    Launcher(
        *("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"),
        nodes="SLURM_STEP_NODELIST",
        job=("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ),
    Launcher(
        *("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
        local_size="OMPI_COMM_WORLD_LOCAL_SIZE",
        job=("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    Launcher("Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", job=("PMI_ID", "HYDI_CONTROL_FD")),
    Launcher("PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE", job=("PMIX_NAMESPACE",)),
)


def launched(environment: Mapping[str, str]) -> Rank | None:
    """The rank that this process was started as, None where it was started alone."""
    for one in LAUNCHERS:
        if one.rank in environment and one.size in environment:
            numbers = [_number(environment, name) for name in (one.rank, one.size)]
            if numbers[1] > 1:
                return _rank(one, environment, *numbers)
    return None


def _rank(launcher: Launcher, environment: Mapping[str, str], rank: int, size: int) -> Rank:
    if rank >= size:
        raise DiagError(f"{launcher.rank} is {rank}, but {launcher.size} is {size}")
    local = _number(environment, launcher.local) if launcher.local in environment else rank
    address = environment.get("MASTER_ADDR") or _address(launcher, environment, size)
    named = "MASTER_PORT" in environment
    port = _number(environment, "MASTER_PORT") if named else _port(launcher, environment)
    return Rank(rank, size, local, address, port, launcher.name)


def _number(environment: Mapping[str, str], name: str) -> int:
    value = environment[name]
    if not (value.isascii() and value.isdigit() and len(value) <= DIGITS and int(value) <= MOST):
        raise DiagError(f"{name} is {cut(value, SHOWN)!r}, not a number up to {MOST}")
    return int(value)


def _address(launcher: Launcher, environment: Mapping[str, str], size: int) -> str:
    if found := NODES.match(environment.get(launcher.nodes, "")):
        return "".join(part for part in found.groups() if part)
    if environment.get(launcher.local_size) == str(size):
        return HERE
    raise DiagError(f"{launcher.name} names no host to meet at: set MASTER_ADDR to that of rank 0")


def _port(launcher: Launcher, environment: Mapping[str, str]) -> int:
    job = "\0".join(environment.get(name, "") for name in launcher.job)
    return PORTS[zlib.crc32(job.encode("utf-8", "surrogateescape")) % len(PORTS)]
