"""What the work of an engine takes of a device's memory: activations, the sampler, experts, graphs; bytes on a rank."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diag.estimate.memory import Launch
    from diag.estimate.model import Model

GIB = 2**30
GATED = 3
"""Matrices of a feed-forward part with a gate."""
RESIDUAL = 4.25
"""Numbers of a token, for each of its hidden size, that are held beside the feed-forward part."""
BASE = 0.13
"""GiB that no layer is the cause of."""
GRAPH = 0.25 / 1024
"""GiB of a graph in a layer."""
SMALL, COARSE, FINE, TURN = 4, 8, 16, 256
"""Graphs are captured of batches of 1, 2 and 4, of each eighth up to 256, and of each sixteenth above."""


def layers_peak(model: Model, launch: Launch, tokens: int) -> float:
    """The widest layer on so many tokens."""
    one = GATED * dense_width(model) / launch.shares.ranks + RESIDUAL * model.hidden
    return tokens * one * launch.width


def sampler_peak(model: Model, launch: Launch, tokens: int, each: float) -> float:
    """The sampler on all requests, with so many bytes for each logit, and the experts' workspace that stays there."""
    # Two of the sampler's copies are in float32, whatever the model's type is.
    logits = launch.requests * model.vocabulary * (each + launch.width - 2)
    return logits + tokens * model.hidden * launch.width + experts_workspace(model, launch, tokens)


def dense_width(model: Model) -> int:
    """The width of the widest feed-forward part that all tokens take."""
    if model.experts is None:
        return model.intermediate
    return max(model.intermediate if model.experts.dense else 0, model.experts.shared)


def experts_workspace(model: Model, launch: Launch, tokens: int) -> float:
    """What the experts of a layer work in, for all tokens of a step."""
    one = model.experts
    if one is None:
        return 0.0
    inner = one.width // launch.shares.ranks
    return tokens * one.taken * (max(2 * inner, model.hidden) + inner) * launch.width


def graphs(largest: int) -> int:
    """How many are captured of batches up to this one."""
    small = sum(one <= largest for one in (1, 2, SMALL))
    coarse = max(min(largest, TURN - COARSE) // COARSE, 0)
    return small + coarse + max((largest - TURN) // FINE + 1, 0)


def captured(model: Model, launch: Launch) -> float:
    """The graphs: those of whole steps, and those in pieces around attention."""
    largest = launch.largest_graph
    count = graphs(largest) + graphs(min(largest, launch.requests))
    twice = 2 if model.latent else 1
    return count * ceil(model.layers / launch.shares.stages) * GRAPH * twice * GIB
