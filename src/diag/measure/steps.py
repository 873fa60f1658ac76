"""What engines do between a model's last layer and the next token, and one layer of a decoder, with plain torch alone.

`STEPS` names each, so that they can be run one by one: `prepared(torch, "penalties", "cuda:0", Sizes())` puts what the
step works on on the device, and returns what does the step, once: many change in place what they are given. Whose
step it is, and where that was read, stands in `kb/reference/operator_steps.yaml`; what each needs of a backend in
`kb/reference/operators.yaml`. The steps themselves are in the files that `FILES` names.

All rows of a batch hold the same numbers, made on the host: the work does not depend on them.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

FILES = {"sampler.py": "sampler", "decoder.py": "decode"}
"""The files beside this one that hold steps, and which part of an engine theirs are."""
FEW = 4
"""Entries of the lists that only some requests bring: biases, tokens that must not come yet."""


class Sizes(NamedTuple):
    """How large it all is: requests, entries of the vocabulary, tokens, and the widths of a small decoder.

    `prompt` and `output` are tokens of a request's prompt and of its answer so far, `logprobs` and `top_k` entries
    wanted of each request, `drafts` tokens that were proposed for each, `context` tokens in its cache.
    """

    batch: int = 256
    vocabulary: int = 152_064
    prompt: int = 512
    output: int = 128
    logprobs: int = 20
    top_k: int = 50
    drafts: int = 1
    context: int = 1024
    hidden: int = 1024
    heads: int = 16
    kv_heads: int = 8
    head: int = 128
    feed_forward: int = 3072


class Step(NamedTuple):
    """What does a step, on torch and what `given` names of `INPUTS`; `part` is `sampler` or `decode`."""

    run: Callable[..., Any]
    given: tuple[str, ...]
    part: str


def prepared(torch: Any, name: str, device: str, sizes: Sizes) -> Callable[[], Any]:
    """What does a step once, on inputs that lie on the device; preparing asks nothing of the device but copies."""
    step = STEPS[name]
    given = (INPUTS[one](torch, sizes) for one in step.given)
    return partial(step.run, torch, *(one.to(device) if isinstance(one, torch.Tensor) else one for one in given))


def numbers(torch: Any, *shape: int) -> Any:
    """Normal float32 numbers, the same in every process."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def rows(torch: Any, count: int, sizes: Sizes) -> Any:
    """Logits float32 [count, V]."""
    return numbers(torch, 1, sizes.vocabulary).mul(4.0).repeat(count, 1)


def spread(torch: Any, count: int, below: int) -> Any:
    """Whole numbers int64 [count] from 0 to below a bound, evenly."""
    return torch.arange(count) * below // count


def few(torch: Any, below: int) -> Any:
    """The places int32 of a few requests or tokens."""
    return spread(torch, FEW, below).to(torch.int32)


def weights(torch: Any, *shape: int) -> Any:
    """What a layer multiplies with, bfloat16."""
    return (numbers(torch, 1, shape[-1]) / shape[-1] ** 0.5).to(torch.bfloat16).repeat(*shape[:-1], 1)


def drafted(sizes: Sizes) -> int:
    """Draft tokens of a batch: T."""
    return sizes.batch * sizes.drafts


INPUTS: dict[str, Callable[[Any, Sizes], Any]] = {
    "logits": lambda torch, n: rows(torch, n.batch, n),
    "logits16": lambda torch, n: rows(torch, n.batch, n).to(torch.bfloat16),
    "probabilities": lambda torch, n: rows(torch, 1, n).softmax(-1).repeat(n.batch, 1),
    "hashes": lambda torch, n: spread(torch, n.vocabulary, 2**32).repeat(n.batch, 1).to(uint32(torch)),
    "mask": lambda torch, n: (torch.arange(n.vocabulary) % 8 == 0).repeat(n.batch, 1),
    "temperatures": lambda torch, n: (torch.arange(n.batch) % 2).to(torch.float32),
    "temperatures above 0": lambda torch, n: torch.full((n.batch,), 0.7),
    "ks": lambda torch, n: torch.full((n.batch,), n.top_k, dtype=torch.int32),
    "ps": lambda torch, n: torch.full((n.batch,), 0.9),
    "min ps": lambda torch, n: torch.full((n.batch, 1), 0.05),
    "top k": lambda torch, n: n.top_k,
    "logprobs": lambda torch, n: n.logprobs,
    "ids": lambda torch, n: spread(torch, n.batch, n.vocabulary),
    "few rows": lambda torch, n: few(torch, n.batch),
    "few tokens": lambda torch, n: few(torch, n.vocabulary),
    "never": lambda torch, n: torch.tensor(float("-inf")),
    "biases": lambda torch, n: torch.ones(FEW),
    "prompt": lambda torch, n: spread(torch, n.prompt, n.vocabulary).repeat(n.batch, 1),
    "output": lambda torch, n: spread(torch, n.output, n.vocabulary).repeat(n.batch, 1),
    "penalty": lambda torch, n: torch.full((n.batch,), 1.1),
    "lengths": lambda torch, n: torch.zeros((n.batch, 1), dtype=torch.int32),
    "all logits": lambda torch, n: rows(torch, n.batch + drafted(n), n).to(torch.bfloat16),
    "draft logits": lambda torch, n: rows(torch, drafted(n), n),
    "draft probabilities": lambda torch, n: rows(torch, 1, n).softmax(-1).repeat(drafted(n), 1),
    "drafts": lambda torch, n: spread(torch, drafted(n), n.vocabulary).to(torch.int32),
    "draft places": lambda torch, n: spread(torch, drafted(n), n.batch + drafted(n)),
    "draft requests": lambda torch, n: spread(torch, drafted(n), n.batch),
    "draft counts": lambda torch, n: torch.full((n.batch,), n.drafts),
    "taken": lambda torch, n: spread(torch, n.batch * (n.drafts + 1), n.vocabulary).to(torch.int32).view(n.batch, -1),
    "hidden": lambda torch, n: weights(torch, n.batch, n.hidden),
    "residual": lambda torch, n: weights(torch, n.batch, n.hidden),
    "norm": lambda torch, n: torch.ones(n.hidden, dtype=torch.bfloat16),
    "head norm": lambda torch, n: torch.ones(n.head, dtype=torch.bfloat16),
    "embedding": lambda torch, n: weights(torch, n.vocabulary, n.hidden),
    "qkv": lambda torch, n: weights(torch, (n.heads + 2 * n.kv_heads) * n.head, n.hidden),
    "out": lambda torch, n: weights(torch, n.hidden, n.heads * n.head),
    "gate and up": lambda torch, n: weights(torch, 2 * n.feed_forward, n.hidden),
    "down": lambda torch, n: weights(torch, n.hidden, n.feed_forward),
    "heads": lambda torch, n: (n.heads, n.kv_heads),
    "all rows": lambda torch, n: torch.arange(n.batch),
    "angles": lambda torch, n: weights(torch, n.context, n.head),
    "positions": lambda torch, n: spread(torch, n.batch, n.context),
    "query": lambda torch, n: weights(torch, n.batch, n.heads, n.head),
    "key": lambda torch, n: weights(torch, n.batch, n.kv_heads, n.head),
    "cache": lambda torch, n: weights(torch, n.batch * n.context, n.kv_heads, n.head),
    "slots": lambda torch, n: spread(torch, n.batch, n.batch * n.context),
    "contexts": lambda torch, n: torch.arange(n.batch * n.context).view(n.batch, n.context),
}


def uint32(torch: Any) -> Any:
    """The type of hashes; int64 in versions of torch that cannot fill one."""
    return getattr(torch, "uint32", torch.int64)


def found() -> dict[str, Step]:
    """The steps of all files, in the order in which an engine does them."""
    here = os.path.dirname(os.path.abspath(__file__))
    told = {part: runpy.run_path(os.path.join(here, file))["STEPS"] for file, part in FILES.items()}
    return {name: Step(run, given, part) for part, one in told.items() for name, (run, given) in one.items()}


STEPS = found()
