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
    "block",
]
"""What of a launch decides over memory, whatever an engine calls it."""
State = Literal["config", "config-else-wide", "model", "wide"]
"""The type of a recurrent state: what the config states, or where it states none the model's or a wide one; the model's
in any case, or a wide one (float32)."""


class OfRelease(Reference, frozen=True, kw_only=True):
    """A row on some releases of an engine: `releases` as PEP 440 has it, `vendor` where it is about a plug-in's.

    `architectures` are the models that it is about, as their configs name them; `dense` ones have neither experts nor
    layers with a state. Where both are empty it is about all.
    """

    engine: str
    releases: str = ""
    vendor: str = ""
    architectures: tuple[str, ...] = ()
    dense: bool = False


class EngineLever(Reference, frozen=True, kw_only=True):
    """How an engine calls a lever: flags without dashes; `without` are those that switch it off."""

    engine: str
    lever: Lever
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class EngineDefault(OfRelease, frozen=True, kw_only=True):
    """What a lever has where it is not told: `value`, on devices from `from_gib` to below `below_gib`.

    `context` is how the subcommand begins; `ranks` those from which on it holds. `only` are patterns of the names of
    devices for which it holds, `unless` of those for which it does not.
    """

    lever: Lever
    value: float
    from_gib: float = 0.0
    below_gib: float | None = None
    context: str = ""
    ranks: int = 1
    only: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class EngineBudget(OfRelease, frozen=True, kw_only=True):
    """How releases that profile a step divide a device: see `estimate.profiled`.

    `fraction` of the whole is taken where none is asked for. `sampled_bytes` for each logit are taken in the profile,
    `late_sampled_bytes` beyond it; `sampled_origin` says whether they were read in the sampler's source or fitted to
    printed start-ups, as `alone_gib` and `together_gib` of what is not torch's are; `fitted` says that these releases
    printed them. With `whole_prompts` a step has the longest prompt whole, up to `chunked_above` tokens.
    `unprofiled_states` is a hypothesis. `cache` is whose type the KV cache has where none is asked for: the model's, or
    what the checkpoint's quantization states of it. `prints` says which tokens it prints as its size: those of one
    `group` of layers, or of as many longest `requests`. With `peak_with_graphs` its printed peak of activations has the
    estimate of its graphs in it.
    """

    fraction: float
    sampled_bytes: float
    alone_gib: float
    together_gib: float
    sampled_origin: Literal["fit", "src"] = "fit"
    late_sampled_bytes: float = 0.0
    graphs_charged: bool = False
    free_checked: bool = False
    states_checked: bool = False
    others_charged: bool = False
    whole_prompts: bool = False
    chunked_above: int = 0
    unprofiled_states: int = 0
    state: State = "config"
    cache: Literal["model", "checkpoint"] = "model"
    prints: Literal["group", "requests"] = "group"
    peak_with_graphs: bool = False
    fitted: bool = False


class EngineReserve(OfRelease, frozen=True, kw_only=True):
    """How releases that keep a reserve divide a device, of `from_gib` to below `below_gib`: see `estimate.reserved`.

    `prefill_mib` is for each size of which a graph of prompts is captured, `latent_mib` in its place with latent
    attention; neither is taken where attention is in groups, unless `grouped_prefill`. `exchange_mib` is for buffers of
    DeepEP. A request has `slots` of the states where prefixes are cached: only one of them serves it.
    """

    base_mib: float
    token_mib: float
    least_tokens: int
    graph_mib: float
    rank_mib: float
    replica_mib: float = 0.0
    crowded_mib: float = 0.0
    prefill_mib: float = 0.0
    latent_mib: float = 0.0
    grouped_prefill: bool = False
    grouped_mib: float = 0.0
    drafts_mib: float = 0.0
    exchange_mib: float = 0.0
    floor_mib: float = 0.0
    large_gib: float = 60.0
    from_gib: float = 0.0
    below_gib: float | None = None
    slots: int = 3
    state: State = "config"
    fitted: bool = False


R = TypeVar("R", bound=OfRelease)


def of_release(
    rows: Iterable[R],
    engine: str,
    version: str,
    vendors: Collection[str] = (),
    *,
    architecture: str = "",
    dense: bool = False,
) -> R | None:
    """The row on a release, one on a plug-in's of these vendors or on this model first; the first, which is the
    newest's, where no version is told or the rows begin above it."""
    return next(of_releases(rows, engine, version, vendors, architecture=architecture, dense=dense), None)


def of_releases(
    rows: Iterable[R],
    engine: str,
    version: str,
    vendors: Collection[str] = (),
    *,
    architecture: str = "",
    dense: bool = False,
) -> Iterator[R]:
    """All rows on a release; those on some models only where the model is told."""
    own = [one for one in rows if one.engine == engine and one.vendor in ("", *vendors)]
    meant = [one for one in own if not narrow(one) or architecture in one.architectures or (dense and one.dense)]
    for one in sorted(meant, key=lambda one: (not one.vendor, not narrow(one))):
        if not version or not one.releases or satisfies(version, one.releases):
            yield one


def narrow(one: OfRelease) -> bool:
    """Whether a row is about some models only."""
    return bool(one.architectures) or one.dense
