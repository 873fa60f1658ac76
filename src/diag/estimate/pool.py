"""The pool of a KV cache: what a token and a request take of it on one rank, and how many fit.

Bytes are per rank: heads of keys are divided by tensor parallelism and never below one, latent vectors and indexers are
on every rank whole. All kinds of layers get blocks of one size out of one pool: layers of a kind are put into groups of
equal size, each group's block holds the tokens of that many layers, and a linear layer's state is padded to a block of
its own. Engines that have a pool of tokens and one of states are in `slots`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diag.estimate.model import Keeps, Model

BLOCK = 16
"""Tokens of a block where nothing asks for more."""
SCALED, SCALE, EXACT = 128, 4, 2
"""Of a latent cache in 8 bits: numbers that share a scale, its bytes, and those of each number of the rotary part."""
ONE = 1
"""Bytes of a number in 8 bits."""
LONGEST = 2**27
"""Tokens that no request has."""
KEPT: tuple[Keeps, ...] = ("full", "sliding", "chunked", "linear")
"""What takes a place in the pool."""


@dataclass(frozen=True)
class Widths:
    """Bytes of a number: in the KV cache, in what a linear layer convolves, and in its state."""

    cache: int = 2
    convolved: int = 2
    state: int = 4


def token_bytes(model: Model, ranks: int, width: int) -> int:
    """Bytes of a token in a layer that keeps keys and values, on one of so many ranks."""
    if model.latent is None:
        return 2 * max(1, model.kv_heads // ranks) * model.head * width
    if width == ONE and model.indexer:
        latent = model.latent
        return latent.rank + latent.rank // SCALED * SCALE + latent.rope * EXACT
    return model.latent.width * width


def indexed_bytes(model: Model) -> int:
    """Bytes of a token's key in an indexer: in 8 bits, with scales."""
    return model.indexer.width + model.indexer.width // SCALED * SCALE if model.indexer else 0


def state_bytes(model: Model, ranks: int, widths: Widths, drafts: int = 0) -> int:
    """Bytes of a request in a linear layer."""
    one = model.state
    if one is None:
        return 0
    keys = one.keys
    if one.kind == "mamba2" and one.groups % ranks:
        # Each rank has a group of its own, although there are fewer.
        keys = one.keys // one.groups * ranks
    convolved = {"gdn": 2 * keys + one.values, "kda": 3 * keys, "mamba2": 2 * keys + one.values, "mamba1": one.values}
    held = convolved[one.kind] // ranks * (one.convolution - 1 + drafts) * widths.convolved
    return held + max(1, one.heads // ranks) * one.rows * one.columns * widths.state


@dataclass(frozen=True)
class Pool:
    """Blocks of `tokens` tokens and `bytes` bytes each; a request takes some of each of the `groups`."""

    blocks: int
    tokens: int
    bytes: int
    groups: dict[Keeps, int]
    window: int = 0
    states: int = 1

    def request(self, length: int, batched: int = 0) -> int:
        """Blocks of a request of so many tokens; `batched` are those of a step, which a window keeps besides."""
        kept: dict[Keeps, int] = {
            "full": ceil(length / self.tokens),
            "sliding": min(ceil((self.window - 1 + batched) / self.tokens) + 1, ceil(length / self.tokens)),
            "linear": self.states,
        }
        kept["chunked"] = kept["sliding"]
        return sum(count * kept[kind] for kind, count in self.groups.items())

    def concurrency(self, length: int, batched: int = 0) -> float:
        """Requests of that length that fit."""
        return self.blocks / self.request(length, batched)

    def share(self, requests: int, length: int, batched: int = 0) -> float:
        """The part of the pool that so many requests of that length need; above 1 some wait."""
        return requests / self.concurrency(length, batched) if self.blocks else float("inf")

    def longest(self, batched: int = 0) -> int:
        """Tokens of the longest request that fits; what is kept of a window alone never ends, and is cut here."""
        lengths = range(self.tokens, LONGEST, self.tokens)
        fit = bisect_right(lengths, self.blocks, key=lambda length: self.request(length, batched))
        return lengths[fit - 1] if fit else 0

    @property
    def places(self) -> int | None:
        """Blocks that a state may stand in; None where no layer keeps one."""
        return self.blocks if "linear" in self.groups else None

    @property
    def capacity(self) -> int:
        """Tokens as they are printed: those of one group."""
        return self.blocks // sum(self.groups.values()) * self.tokens


@dataclass(frozen=True)
class Shares:
    """How a model is divided: over ranks that share each layer, and stages of which each has some of the layers.

    Of the ranks, `replicas` groups may each have all of the attention, for requests of their own, and `experts` may
    divide the experts among them. `more` are layers of a draft model that keep keys and values beside it.
    """

    ranks: int = 1
    stages: int = 1
    more: int = 0
    replicas: int = 1
    experts: int = 1

    @property
    def attention(self) -> int:
        """The ranks that share the attention of a layer."""
        return max(self.ranks // self.replicas, 1)


def pool(model: Model, room: int, shares: Shares, widths: Widths, *, block: int = BLOCK, states: int = 1) -> Pool:
    """The blocks that a KV cache of so many bytes is cut into, on the stage that has most layers."""
    kept = model.kept[: ceil(model.layers / shares.stages)] + ("full",) * shares.more
    counts: dict[Keeps, int] = {kind: kept.count(kind) for kind in KEPT if kind in kept}
    per_token = token_bytes(model, shares.attention, widths.cache)
    if "linear" in counts:
        block = BLOCK * ceil(state_bytes(model, shares.attention, widths) / (BLOCK * per_token))
    page = block * per_token
    if len(counts) == 1:
        [(kind, count)] = counts.items()
        whole = count * page + (model.indexer.layers * block * indexed_bytes(model) if model.indexer else 0)
        return Pool(room // whole, block, whole, {kind: 1}, model.window, states)
    size = grouped(list(counts.values()))
    groups: dict[Keeps, int] = {kind: ceil(count / size) for kind, count in counts.items()}
    return Pool(room // (page * size), block, page * size, groups, model.window, states)


def grouped(counts: list[int]) -> int:
    """Layers of a group: as many as the rarest kind has, or as the commonest where that is hardly more."""
    return max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
