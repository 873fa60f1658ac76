"""What tensor parallelism costs and gains in a decode step: weights are divided by it, and calls are added.

A decoder whose layers are divided over ranks sums their results twice a layer (after attention, after the feed-forward
part) and once for its vocabulary, each time all tokens of the step; where a gather was timed the logits are counted,
too. A step is then `weights / (ranks · bandwidth) + calls · t(tokens · hidden · width)`, and no less: reading the KV
cache, matrix products of many tokens, sampling and the host come on top, so that the share of its calls is an upper
bound which holds for few tokens and falls with many.
"""

from __future__ import annotations

from dataclasses import dataclass

from diag.estimate.curve import Basis, Curve, Limit

MS = 1e-3
A_LAYER, ONCE = 2, 1
"""Sums of all ranks in a layer, and in a step beside that."""
RIVALS = (1, 2, 4, 8)
"""Numbers of ranks that weights are divided over."""
FEW = 8
"""Tokens up to which a step is little more than its weights and calls: beyond, one device gets slower, too."""


@dataclass(frozen=True)
class Decoder:
    """A model as a decode step sees it: `weights` are bytes that a step reads, `width` those of an element sent."""

    layers: int
    hidden: int
    weights: float | None = None
    width: int = 2
    vocabulary: int | None = None

    @property
    def calls(self) -> int:
        """Sums of all ranks in one step."""
        return A_LAYER * self.layers + ONCE

    def message(self, tokens: int) -> int:
        """Bytes of each of these sums."""
        return tokens * self.hidden * self.width

    def logits(self, tokens: int) -> int | None:
        """Bytes that are gathered at the end of a step."""
        return self.vocabulary and tokens * self.vocabulary * self.width


@dataclass(frozen=True)
class Step:
    """A step of some tokens on some ranks, in milliseconds; None where the weights or the bandwidth are not known.

    `gain` is how many times faster it is than on one device, `break_even_us` what one call may take at most for that to
    be more than 1; `limit` is what decides in a call, empty where no line explains the curve.
    """

    ranks: int
    tokens: int
    message: int = 0
    calls: int = 0
    call_us: float = 0.0
    basis: Basis = "measured"
    gather_ms: float | None = None
    weights_ms: float | None = None
    alone_ms: float | None = None
    limit: Limit | None = None

    @property
    def comm_ms(self) -> float:
        """What the ranks spend in exchanging data."""
        return self.calls * self.call_us * MS + (self.gather_ms or 0.0)

    @property
    def step_ms(self) -> float | None:
        """Weights and calls."""
        return None if self.weights_ms is None else self.weights_ms + self.comm_ms

    @property
    def share(self) -> float | None:
        """Of the calls in the step."""
        return share(self.comm_ms, self.step_ms)

    @property
    def gain(self) -> float | None:
        """Against one device."""
        return self.alone_ms / self.step_ms if self.alone_ms and self.step_ms else None

    @property
    def break_even_us(self) -> float | None:
        """What a call may take at most."""
        if self.alone_ms is None or self.weights_ms is None or not self.calls:
            return None
        return (self.alone_ms - self.weights_ms - (self.gather_ms or 0.0)) / self.calls / MS


def share(comm_ms: float, step_ms: float | None) -> float | None:
    """What part of a step the calls take, of one that was measured as well as of a model's."""
    return comm_ms / step_ms if step_ms else None


def reading_ms(weights: float | None, gbps: float | None, ranks: int = 1) -> float | None:
    """What reading the weights takes when each of these ranks reads its part."""
    return weights / (ranks * gbps) / 1e6 if weights and gbps else None


def step(
    decoder: Decoder,
    ranks: int,
    tokens: int,
    *,
    gbps: float | None,
    curve: Curve,
    gather: Curve | None = None,
) -> Step | None:
    """A step on these ranks; None where nothing tells what a call of that size takes.

    `curve` is that of the sums between as many ranks, `gather` that of the logits, `gbps` what a device reads
    its memory with.
    """
    weights_ms = reading_ms(decoder.weights, gbps, ranks)
    alone_ms = reading_ms(decoder.weights, gbps)
    if ranks == 1:
        return Step(1, tokens, weights_ms=weights_ms, alone_ms=alone_ms)
    message = decoder.message(tokens)
    call = curve.at(message)
    if call is None:
        return None
    logits = decoder.logits(tokens)
    gathered = gather.at(logits) if gather and logits else None
    return Step(
        ranks,
        tokens,
        message=message,
        calls=decoder.calls,
        call_us=call.us,
        basis=call.basis,
        gather_ms=gathered.us * MS if gathered else None,
        weights_ms=weights_ms,
        alone_ms=alone_ms,
        limit=None if curve.fit.refused else curve.fit.limit(message),
    )


def dense_weights(
    *,
    hidden: int,
    layers: int,
    intermediate: int,
    vocabulary: int,
    heads: tuple[int, int, int] | None = None,
) -> int:
    """Weights that a step of a dense decoder reads, of gated feed-forward parts and one output matrix.

    `heads` are those of queries, those of keys, and their width; without them attention is as wide as the model. What
    is not counted (norms, biases, positions) is less than a hundredth; of the input's matrix a step reads rows alone.
    """
    queries, keys, width = heads or (1, 1, hidden)
    attention = 2 * hidden * queries * width + 2 * hidden * keys * width
    return layers * (attention + 3 * hidden * intermediate) + vocabulary * hidden
