"""A decoder of the Llama kind, a token for each request of a batch, step by step, in plain torch operators.

B are the requests of a batch, V the entries of the vocabulary, H the width, D the width of one head. Attention goes
request by request, as it does where an engine has no kernel for its cache; only a few are replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

EPSILON = 1e-6
ATTENDED = 4
"""Requests whose attention is replayed: that of each is a call of its own, all alike."""


def embedding(torch: Any, ids: Any, table: Any) -> Any:
    """The vectors of the last tokens, [B, H]."""
    return torch.nn.functional.embedding(ids, table)


def normed(torch: Any, x: Any, weight: Any) -> Any:
    """Root mean square norm, computed in float32."""
    wide = x.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + EPSILON)
    return (wide.to(weight.dtype) * weight).to(x.dtype)


def residual_norm(torch: Any, x: Any, residual: Any, weight: Any) -> Any:
    """The sum with what went around a layer, its norm and the sum itself."""
    total = x.to(torch.float32) + residual.to(torch.float32)
    return normed(torch, total, weight).to(x.dtype), total.to(x.dtype)


def attention_inputs(torch: Any, x: Any, qkv: Any, norm: Any, heads: tuple[int, int]) -> Any:
    """Query, key and value, [B, heads, D] each, every head of the first two normed; `heads` of query and cache."""
    product = torch.nn.functional.linear(x, qkv)
    head = norm.shape[0]
    parts = product.split([count * head for count in (*heads, heads[1])], dim=-1)
    query, key, value = (part.view(x.shape[0], -1, head) for part in parts)
    return normed(torch, query, norm), normed(torch, key, norm), value


def rotated(torch: Any, x: Any, cosine: Any, sine: Any) -> Any:
    """Both halves of each head [B, heads, D] turned against each other."""
    cosine, sine = cosine.unsqueeze(-2).to(x.dtype), sine.unsqueeze(-2).to(x.dtype)
    first, second = torch.chunk(x, 2, dim=-1)
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), dim=-1)


def rotary(torch: Any, query: Any, key: Any, positions: Any, angles: Any) -> Any:
    """Query and key turned by the place of the token; `angles` [places, D] are cosines, then sines."""
    cosine, sine = angles.index_select(0, positions.flatten()).chunk(2, dim=-1)
    return rotated(torch, query, cosine, sine), rotated(torch, key, cosine, sine)


def cache_write(torch: Any, cache: Any, slots: Any, key: Any) -> Any:
    """The new keys (and so the values), each into its slot."""
    cache[slots] = key
    return cache


def attention(torch: Any, query: Any, cache: Any, contexts: Any, out: Any) -> Any:
    """Each request's query over its cache, several heads sharing one of the cache, and the product that follows."""
    attended = torch.empty_like(query)
    shared = query.shape[1] // cache.shape[1]
    for row in range(min(ATTENDED, query.shape[0])):
        kept = cache[contexts[row]].movedim(0, 1).unsqueeze(0)
        kept = kept.repeat_interleave(shared, dim=1)
        one = query[row : row + 1].movedim(0, 1).unsqueeze(0)
        done = torch.nn.functional.scaled_dot_product_attention(one, kept, kept)
        attended[row : row + 1] = done.squeeze(0).movedim(1, 0)
    return torch.nn.functional.linear(attended.view(query.shape[0], -1), out)


def feed_forward(torch: Any, x: Any, gate_and_up: Any, down: Any) -> Any:
    """SwiGLU between two products."""
    both = torch.nn.functional.linear(x, gate_and_up)
    half = both.shape[-1] // 2
    return torch.nn.functional.linear(torch.nn.functional.silu(both[..., :half]) * both[..., half:], down)


def logits(torch: Any, x: Any, places: Any, table: Any) -> Any:
    """The logits [B, V] of the tokens that are wanted."""
    return torch.nn.functional.linear(x[places], table)


STEPS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "embedding": (embedding, ("ids", "embedding")),
    "residual-norm": (residual_norm, ("hidden", "residual", "norm")),
    "attention-inputs": (attention_inputs, ("hidden", "qkv", "head norm", "heads")),
    "rotary": (rotary, ("query", "key", "positions", "angles")),
    "cache-write": (cache_write, ("cache", "slots", "key")),
    "attention": (attention, ("query", "cache", "contexts", "out")),
    "feed-forward": (feed_forward, ("hidden", "gate and up", "down")),
    "logits": (logits, ("hidden", "all rows", "embedding")),
}
