"""Collectives: what was measured between ranks, what the ranks were, and what is known of other machines."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from diag.facts.base import Passing
from diag.facts.reference import Reference

Mode = Literal["", "synchronised", "free-running", "graph"]
Standing = Literal["pass", "measured", "user", "vendor", "seed"]
Blame = Literal["device", "late", "node", "nic", "host", "rail", "link", "wrong", "configuration", "noise", "healthy"]
Direction = Literal["", "both", "out", "in"]
Lack = Literal["", "device", "model", "row"]
TroubleKind = Literal["refused", "stalled", "died", "unreachable", "failed"]
FACTORS = {
    "all_reduce": 2.0,
    "reduce_scatter": 1.0,
    "all_gather": 1.0,
    "all_to_all": 1.0,
    "gather": 1.0,
    "scatter": 1.0,
    "broadcast": 0.0,
    "reduce": 0.0,
    "sendrecv": 0.0,
}
"""Operations, and what busbw is of algbw in (n-1)/n; 0 where they are the same (nccl-tests' PERFORMANCE.md)."""


def bus_factor(op: str, ranks: int) -> float | None:
    """What busbw is of algbw: 2(n-1)/n for an all-reduce; None for an operation without one, or one rank."""
    if op not in FACTORS or ranks < 2:
        return None
    return FACTORS[op] * (ranks - 1) / ranks or 1.0


class Latency(Struct, frozen=True, kw_only=True):
    """Microseconds of a call of the slowest rank; a harness that tells one mean tells it as `mean` alone."""

    min: float | None = None
    p5: float | None = None
    p10: float | None = None
    median: float | None = None
    p95: float | None = None
    max: float | None = None
    mean: float | None = None

    @property
    def typical(self) -> float | None:
        """The median, or the mean where that is all that was told."""
        return self.mean if self.median is None else self.median


class Collective(Passing, frozen=True, kw_only=True):
    """An operation between ranks, timed.

    `bytes` are those of the tensor on one rank, of the whole one for all_gather, reduce_scatter and all_to_all. GB =
    10^9 bytes; `algbw_gbps` is bytes by the typical time of the slowest rank, `busbw_gbps` that times the factor of
    nccl-tests. `tool` is what measured: `diag`, or the program whose output was read. `wrong` counts elements that were
    not what they must be, `rank_us` are the medians of each rank, `interval90_us` half of the 90 % interval,
    `foreign_cpu` the share of the processors that others used meanwhile.
    """

    op: str
    bytes: int
    tool: str
    mode: Mode = ""
    in_place: bool | None = None
    backend: str = ""
    library: str = ""
    library_version: str = ""
    device: str = ""
    dtype: str = ""
    ranks: int | None = None
    nodes: int | None = None
    iterations: int | None = None
    latency_us: Latency = Latency()
    interval90_us: float | None = None
    rank_us: tuple[float, ...] = ()
    foreign_cpu: float | None = None
    algbw_gbps: float | None = None
    busbw_gbps: float | None = None
    correct: bool | None = None
    wrong: int | None = None
    noisy: bool | None = None

    def says(self) -> str:
        """The measurement in one line."""
        typical, bandwidth = self.latency_us.typical, self.busbw_gbps
        said = [f"{self.op} of {self.bytes} bytes", self.dtype, f"{self.ranks} ranks" if self.ranks else "", self.mode]
        said += [f"{typical:.1f} µs" if typical else "", f"busbw {bandwidth:.2f} GB/s" if bandwidth else ""]
        said += ["wrong results" if self.correct is False else ""]
        return ", ".join(filter(None, said))


class CollectiveEarlier(Collective, frozen=True, kw_only=True):
    """What an earlier run measured, to be compared with; `file` is the name of its report."""

    file: str = ""


class CollectiveCompared(Passing, frozen=True, kw_only=True):
    """What the results of an operation were compared with: how many of them, and the row that says most.

    `model` is that of the devices. The row is of `standing`, in GB/s of busbw or in microseconds; `value` is what the
    result of `bytes` has in the same unit, `ratio` what it reaches of the row, above 1 where it is better. `differs`
    names the one condition in which they are not the same. `lacks` says why nothing was compared: the `device` is not
    told, no `model` has its name, or no `row` of the model speaks of such ranks, nodes and sizes.
    """

    op: str
    tool: str
    results: int
    compared: int
    ranks: int | None = None
    nodes: int | None = None
    dtype: str = ""
    device: str = ""
    model: str = ""
    lacks: Lack = ""
    bytes: int | None = None
    value: float | None = None
    ratio: float | None = None
    differs: str = ""
    standing: Standing | None = None
    source: str = ""
    busbw_gbps: float | None = None
    latency_us: float | None = None

    @property
    def inferred(self) -> bool:
        """It is."""
        return True


class CollectiveRank(Passing, frozen=True, kw_only=True):
    """A rank of a world that was to measure, and where it stood when that was last known.

    `entered` and `finished` count calls, `phase` says in words what it did. `state` is the kernel's letter of its
    process, `ended` how that came to an end (`killed by SIGKILL`).
    """

    rank: int
    host: str = ""
    pid: int | None = None
    device: str = ""
    address: str = ""
    torch: str = ""
    library_version: str = ""
    cpus: int | None = None
    phase: str = ""
    entered: int | None = None
    finished: int | None = None
    state: str = ""
    ended: str = ""


class CollectiveWorld(Passing, frozen=True, kw_only=True):
    """A world of ranks: who started it (`launcher`), and what torch says stands behind the backend's name."""

    launcher: str
    ranks: int
    nodes: int
    device: str
    backend: str
    implementation: str = ""
    seconds: float | None = None


class CollectiveTrouble(Passing, frozen=True, kw_only=True):
    """Why ranks measured nothing, or not to the end.

    `refused`: they must not be measured together. `stalled`: nothing moved for `seconds`. `died`: a process ended.
    `unreachable`: they did not find each other. `failed`: a call raised. `suspects` are the ranks that it is about;
    `released` whether all their memory came back.
    """

    kind: TroubleKind
    reason: str
    suspects: tuple[int, ...] = ()
    seconds: float | None = None
    released: bool | None = None


class CollectivePair(Passing, frozen=True, kw_only=True):
    """A message from one rank to another and a short answer: the least microseconds of several passes.

    `base_us` is the lower quartile of its like (of one host, or between two). None where nothing arrived. `wrong` is
    whether what arrived was not what was sent.
    """

    source: int
    target: int
    bytes: int
    us: float | None = None
    base_us: float | None = None
    passes: int = 0
    wrong: bool = False


class RankTiming(Passing, frozen=True, kw_only=True):
    """A rank by itself: microseconds of the same work alone, and of its stay in a call, by passes."""

    rank: int
    alone_us: tuple[float, ...] = ()
    in_call_us: tuple[float, ...] = ()


class CollectiveVerdict(Passing, frozen=True, kw_only=True):
    """Who is to blame for slow exchanges.

    `device`: `ranks` are slow alone. `late`: the others wait for them. `node`: all that they exchange is slow; `nic`:
    all that they exchange with other hosts. `host`: the same of all ranks of a host; `rail`: of the same `place` on
    many hosts. `link`: between `ranks` and `peers`. `wrong`: data that arrived changed. `configuration`: pairs are
    healthy, these together are not. `noise`: what is slow makes no picture. `direction` is what leaves `ranks`, what
    reaches them, or both. `us` stands against `base_us` of their like, None where nothing arrived. `threshold` is from
    where on such a fault is found: a factor, for `late` a share of the call. Of `possible` ordered pairs `measured`
    were measured, those of every pass counted.
    """

    kind: Blame
    ranks: tuple[int, ...] = ()
    peers: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    place: int | None = None
    direction: Direction = ""
    bytes: int = 0
    us: float | None = None
    base_us: float | None = None
    threshold: float
    measured: int
    possible: int


class CollectiveBaseline(Reference, frozen=True, kw_only=True):
    """What an operation reaches on a kind of machine, in GB/s of busbw, or in microseconds.

    `device` is a model of `DeviceModel`. `link` is empty where the model alone says how its devices are joined; else
    the word by which the matrix of links joins every pair of them, as a pattern of a shell, or the network between
    nodes, which no fact tells. Holds from `bytes` up to `until` (the same size where that is 0): of a sweep up to the
    next size, as bandwidth grows with it. `standing` says who stands for the value: `pass` (somebody's threshold in
    production) and `measured` may fail a machine, `user`, `vendor` and `seed` may not. `mode` is that of the harness,
    empty for nccl-tests' own.
    """

    op: str
    vendor: str
    device: str
    ranks: int
    bytes: int
    standing: Standing
    until: int = 0
    nodes: int = 1
    link: str = ""
    dtype: str = ""
    mode: Mode = ""
    busbw_gbps: float | None = None
    latency_us: float | None = None
    note: str = ""
