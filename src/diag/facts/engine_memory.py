"""What releases of engines do with a device's memory: rows of `kb/reference/engines`, and the one for a launch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, TypeVar

from diag.facts.reference import Reference
from diag.versions import satisfies

Lever = Literal[
    "ranks",
    "stages",
    "engines",
    "replicas",
    "experts",
    "fraction",
    "length",
    "requests",
    "tokens",
    "cache",
    "eager",
    "prefixes",
    "captured",
    "dtype",
    "state",
    "slots",
    "bytes",
    "drafts",
]
"""What of a launch decides over memory, whatever an engine calls it."""


class OfRelease(Reference, frozen=True, kw_only=True):
    """A row on some releases of an engine: `releases` as PEP 440 has it, `vendor` where it is about a plug-in's."""

    engine: str
    releases: str = ""
    vendor: str = ""


class EngineLever(Reference, frozen=True, kw_only=True):
    """How an engine calls a lever: flags without dashes; `without` are those that switch it off."""

    engine: str
    lever: Lever
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class EngineDefault(OfRelease, frozen=True, kw_only=True):
    """What a lever has where it is not told: `value`, on devices from `from_gib` to below `below_gib`.

    `context` is how the subcommand begins; `ranks` those from which on it holds. `unless` are patterns of names of
    devices for which it does not.
    """

    lever: Lever
    value: float
    from_gib: float = 0.0
    below_gib: float | None = None
    context: str = ""
    ranks: int = 1
    unless: tuple[str, ...] = ()


class EngineBudget(OfRelease, frozen=True, kw_only=True):
    """How releases that profile a step divide a device: see `estimate.profiled`.

    `fraction` of the whole is taken where none is asked for. `sampled_bytes` for each logit, `alone_gib` and
    `together_gib` of what is not torch's are fitted to printed start-ups, and `fitted` says whether to these releases'.
    `state` is the type of a recurrent state: as the config states, or the model's. `unprofiled_states` is a hypothesis.
    `prints` says which tokens it prints as its size: those of one `group` of layers, or of as many longest `requests`.
    """

    fraction: float
    sampled_bytes: float
    alone_gib: float
    together_gib: float
    graphs_charged: bool = False
    free_checked: bool = False
    states_checked: bool = False
    others_charged: bool = False
    whole_prompts: bool = False
    unprofiled_states: int = 0
    state: Literal["config", "model"] = "config"
    prints: Literal["group", "requests"] = "group"
    fitted: bool = False


class EngineReserve(OfRelease, frozen=True, kw_only=True):
    """How releases that keep a reserve divide a device, of `from_gib` to below `below_gib`: see `estimate.reserved`."""

    base_mib: float
    token_mib: float
    least_tokens: int
    graph_mib: float
    rank_mib: float
    replica_mib: float = 0.0
    crowded_mib: float = 0.0
    latent_mib: float = 0.0
    grouped_mib: float = 0.0
    drafts_mib: float = 0.0
    floor_mib: float = 0.0
    large_gib: float = 60.0
    from_gib: float = 0.0
    below_gib: float | None = None
    state: Literal["config", "model"] = "config"
    fitted: bool = False


R = TypeVar("R", bound=OfRelease)


def of_release(rows: Iterable[R], engine: str, version: str, vendors: Collection[str] = ()) -> R | None:
    """The row on a release, one on a plug-in's of these vendors first; the first, which is the newest's, where no
    version is told or the rows begin above it."""
    return next(of_releases(rows, engine, version, vendors), None)


def of_releases(rows: Iterable[R], engine: str, version: str, vendors: Collection[str] = ()) -> Iterator[R]:
    """All rows on a release."""
    own = [one for one in rows if one.engine == engine and one.vendor in ("", *vendors)]
    for one in sorted(own, key=lambda one: not one.vendor):
        if not version or not one.releases or satisfies(version, one.releases):
            yield one
