"""What samplers do with logits, step by step, in plain torch operators: those that run where no fused kernel does it.

B are the requests of a batch, V the entries of the vocabulary, T the draft tokens of a batch. Many steps change in
place what they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LEAST_TEMPERATURE = 1e-5
SEEDED = 2
"""Requests of a batch that bring their own seed: each has a generator, and costs draws of its own."""
NO_TOKEN = -1


def generators(torch: Any, device: Any) -> dict[int, Any]:
    """A generator for each request that brought a seed; a backend that has none of its own raises here."""
    return {row: torch.Generator(device=device).manual_seed(row) for row in range(SEEDED)}


def logits_to_float32(torch: Any, logits: Any) -> Any:
    """What the model gave, [B, V], in the type that samplers compute in."""
    return logits.to(torch.float32)


def allowed_tokens(torch: Any, logits: Any, refused: Any) -> Any:
    """All but the tokens that a request or its grammar allows, out of question."""
    return logits.masked_fill_(refused, float("-inf"))


def bad_words(torch: Any, logits: Any) -> Any:
    """The last token of a forbidden word whose beginning was said, request by request."""
    for row in range(SEEDED):
        logits[row][row : row + 1] = float("-inf")
    return logits


def min_tokens(torch: Any, logits: Any, rows: Any, tokens: Any, never: Any) -> Any:
    """No end before the least number of tokens; `never` is minus infinity."""
    return logits.index_put_((rows, tokens), never)


def logit_bias(torch: Any, logits: Any, rows: Any, tokens: Any, biases: Any) -> Any:
    """What requests add to single tokens."""
    logits[rows, tokens] += biases
    return logits


def counted(torch: Any, tokens: Any, vocabulary: int) -> tuple[Any, Any]:
    """How often each token was said, int64 [B, V], and whether at all; a column more takes the padding."""
    counts = torch.zeros((tokens.shape[0], vocabulary + 1), dtype=torch.long, device=tokens.device)
    counts.scatter_add_(1, tokens, torch.ones_like(tokens))
    counts = counts[:, :vocabulary]
    return counts, counts > 0


def penalties(torch: Any, logits: Any, prompt: Any, output: Any, penalty: Any) -> Any:
    """Repetition, frequency and presence, counted anew from all tokens of each request."""
    vocabulary = logits.shape[1]
    output.masked_fill_(output == NO_TOKEN, vocabulary)
    _, prompted = counted(torch, prompt, vocabulary)
    counts, said = counted(torch, output, vocabulary)
    repetition = torch.where(prompted | said, penalty.unsqueeze(dim=1).repeat(1, vocabulary), 1.0)
    logits *= torch.where(logits > 0, 1.0 / repetition, repetition)
    logits -= penalty.unsqueeze(dim=1) * counts
    logits -= penalty.unsqueeze(dim=1) * said
    return logits


def cumulated_penalties(torch: Any, logits: Any, ids: Any, penalty: Any, lengths: Any) -> Any:
    """The same, kept as one float32 [B, V] for each, to which each step adds its token; and the least length."""
    frequency, presence, ends = (torch.zeros_like(logits) for _ in range(3))
    repetition = torch.ones_like(logits)
    column, ids = penalty.unsqueeze(1), ids.unsqueeze(1)
    frequency.scatter_add_(dim=1, index=ids, src=column)
    presence.scatter_(dim=1, index=ids, src=column)
    repetition.scatter_(dim=1, index=ids, src=column)
    lengths += 1
    logits.sub_(frequency)
    logits.sub_(presence)
    logits[:] = torch.where(logits < 0, logits * repetition, logits / repetition)
    logits.add_(torch.where(lengths < 2, ends, 0.0))
    return logits


def temperature(torch: Any, logits: Any, temperatures: Any) -> Any:
    """Each request's temperature; 0 means the likeliest token, and must not be divided by."""
    return logits.div_(torch.where(temperatures < LEAST_TEMPERATURE, 1.0, temperatures).unsqueeze(dim=1))


def greedy(torch: Any, logits: Any) -> Any:
    """The likeliest token."""
    return logits.argmax(dim=-1).view(-1)


def min_p(torch: Any, logits: Any, min_ps: Any) -> Any:
    """Tokens at least so likely, beside the likeliest."""
    probabilities = torch.nn.functional.softmax(logits, dim=-1)
    least = torch.amax(probabilities, dim=-1, keepdim=True).mul_(min_ps)
    return logits.masked_fill_(probabilities < least, -float("inf"))


def top_k_top_p(torch: Any, logits: Any, ks: Any, ps: Any) -> Any:
    """The k likeliest tokens, and of these the fewest that reach p: sorts the whole vocabulary."""
    ordered, places = logits.sort(dim=-1, descending=False)
    least = ordered.gather(1, (ordered.size(1) - ks.to(torch.long)).unsqueeze(dim=1))
    ordered.masked_fill_(ordered < least, -float("inf"))
    probabilities = ordered.softmax(dim=-1)
    unlikely = torch.cumsum(probabilities, dim=-1, out=probabilities) <= 1 - ps.unsqueeze(dim=1)
    unlikely[:, -1] = False
    ordered.masked_fill_(unlikely, -float("inf"))
    return logits.scatter_(dim=-1, index=places, src=ordered)


def top_k(torch: Any, logits: Any, ks: Any) -> Any:
    """The k likeliest tokens without sorting all; the host reads the largest k."""
    everything = ks == logits.shape[1]
    ks = ks.masked_fill(everything, 1)
    most = ks.max()
    places = ks.sub_(1).unsqueeze(1)
    least = logits.topk(most, dim=1).values.gather(1, places.long())
    least.masked_fill_(everything.unsqueeze(1), -float("inf"))
    return logits.masked_fill_(logits < least, -float("inf"))


def exponential_draw(torch: Any, logits: Any) -> Any:
    """A random token by a race of exponential clocks: one number for every token of the vocabulary and request."""
    return raced(torch, logits, {})


def seeded_exponential_draw(torch: Any, logits: Any) -> Any:
    """The same with requests that brought a seed: a draw of their own for each."""
    return raced(torch, logits, generators(torch, logits.device))


def raced(torch: Any, logits: Any, own: dict[int, Any]) -> Any:
    """Tokens int64 [B] drawn from logits."""
    probabilities = logits.softmax(dim=-1, dtype=torch.float32)
    clocks = torch.empty(probabilities.shape, dtype=probabilities.dtype, device=probabilities.device)
    clocks.exponential_()
    for row, generator in own.items():
        clocks[row].exponential_(generator=generator)
    return probabilities.div_(clocks).argmax(dim=-1).view(-1)


def mixed_ids(torch: Any, temperatures: Any, likeliest: Any, drawn: Any) -> Any:
    """The likeliest token where the temperature is 0, else the drawn one, int32 [B, 1]."""
    ids = torch.where(temperatures < LEAST_TEMPERATURE, likeliest, drawn, out=likeliest)
    return ids.long().to(torch.int32).unsqueeze(-1)


def log_probabilities(torch: Any, logits: Any, ids: Any, wanted: int) -> Any:
    """The likeliest tokens with their logarithms, the token itself with its own, and its rank."""
    logprobs = logits.log_softmax(dim=-1, dtype=torch.float32)
    values, indices = torch.topk(logprobs, wanted, dim=-1)
    ids = ids.unsqueeze(-1)
    own = logprobs.gather(-1, ids)
    ranks = (logprobs >= own).sum(-1)
    return torch.cat((ids, indices), dim=1).to(torch.int32), torch.cat((own, values), dim=1), ranks


def not_a_number(torch: Any, logits: Any) -> Any:
    """Whether there is a NaN, and numbers instead of what is none."""
    seen = torch.isnan(logits).any().to(torch.int32)
    return seen, torch.nan_to_num_(logits, nan=-1e30, posinf=1e30, neginf=-1e30)


def softmax_in_place(torch: Any, logits: Any, temperatures: Any) -> Any:
    """Probabilities, written where the logits were."""
    logits.div_(temperatures.unsqueeze(1))
    logits[:] = torch.softmax(logits, dim=-1)
    return logits


def sorted_draw(torch: Any, probabilities: Any, ks: Any, ps: Any, min_ps: Any) -> Any:
    """Top-k, top-p and min-p on all probabilities in order, then one draw, int32 [B]."""
    return filtered(torch, probabilities.sort(dim=-1, descending=True), ks, ps, min_ps)


def top_k_draw(torch: Any, probabilities: Any, ks: Any, ps: Any, min_ps: Any, most: int) -> Any:
    """The same on as many as the largest k of the batch alone."""
    return filtered(torch, torch.topk(probabilities, k=most, dim=-1, sorted=True), ks, ps, min_ps)


def filtered(torch: Any, found: Any, ks: Any, ps: Any, min_ps: Any) -> Any:
    """A token int32 [B] out of probabilities in descending order and the tokens that have them."""
    ordered, tokens = found
    sums = torch.cumsum(ordered, dim=-1)
    ordered[torch.arange(0, ordered.shape[-1], device=ordered.device).view(1, -1) >= ks.view(-1, 1)] = 0.0
    ordered[(sums - ordered) > ps.view(-1, 1)] = 0.0
    least = ordered[:, 0] * min_ps.view(-1)
    ordered[ordered < least.view(-1, 1)] = 0.0
    place = torch.multinomial(ordered, num_samples=1)
    return torch.gather(tokens.to(torch.int32), dim=1, index=place).view(-1)


def multinomial_draw(torch: Any, probabilities: Any) -> Any:
    """A random token by the operator made for it, which reads on the host whether the numbers are sound."""
    return torch.multinomial(probabilities, num_samples=1).view(-1).to(torch.int32)


def gumbel_draw(torch: Any, probabilities: Any) -> Any:
    """The race of exponential clocks again, in another spelling."""
    clocks = torch.empty_like(probabilities, dtype=torch.float32).exponential_(1.0)
    clocks.clamp_min_(torch.finfo(torch.float32).tiny)
    return (probabilities.float() / clocks).argmax(dim=-1, keepdim=True).view(-1).to(torch.int32)


def hashed_draw(torch: Any, probabilities: Any, hashes: Any) -> Any:
    """The draw of requests with a seed: noise from hashes of seed, place and token [B, V], in float64."""
    noise = hashes.to(torch.float64) / (2**32 - 1)
    noise.log_().clamp_(min=torch.finfo(noise.dtype).min, max=-(2.0**-32)).neg_()
    noise.log_().neg_()
    noise.add_(probabilities.to(torch.float64).log_())
    return torch.argmax(noise, dim=1, keepdim=True)


def clamped_log_probabilities(torch: Any, probabilities: Any, ids: Any, wanted: int) -> Any:
    """Logarithms of probabilities, the likeliest of them, and the token's own."""
    logprobs = torch.log(probabilities)
    logprobs.clamp_(min=torch.finfo(logprobs.dtype).min)
    values, indices = logprobs.topk(wanted, dim=-1)
    return values, indices, logprobs[torch.arange(len(ids), device=ids.device), ids]


def draft_logits(torch: Any, logits: Any, places: Any, requests: Any, refused: Any) -> Any:
    """Of the logits [T + B, V] those of draft tokens, with what was refused to each one's request."""
    wanted = logits[places].to(torch.float32)
    return wanted.clone().masked_fill_(refused[requests], float("-inf"))


def draft_draws(torch: Any, target: Any, temperatures: Any, drafts: Any) -> Any:
    """What is drawn to accept or replace draft tokens: a float64 for each, and exponential clocks [B, V]."""
    return drafted(torch, target, temperatures, drafts, {})


def seeded_draft_draws(torch: Any, target: Any, temperatures: Any, drafts: Any) -> Any:
    """The same with requests that brought a seed."""
    return drafted(torch, target, temperatures, drafts, generators(torch, target.device))


def drafted(torch: Any, target: Any, temperatures: Any, drafts: Any, own: dict[int, Any]) -> Any:
    """Chances, probabilities and inverse clocks, of which the tokens are taken; `target` are logits [T, V]."""
    batch, tokens = temperatures.shape[0], target.shape[0]
    each = tokens // batch
    taken = torch.full((batch, each + 1), NO_TOKEN, dtype=torch.int32, device=target.device)
    chances = torch.rand((tokens,), dtype=torch.float64, device=target.device)
    for row, generator in own.items():
        chances[row * each : (row + 1) * each].uniform_(generator=generator)
    probabilities = target.softmax(dim=-1, dtype=torch.float32)
    likeliest = target.argmax(dim=-1)
    clocks = torch.empty((batch, target.shape[-1]), dtype=torch.float32, device=target.device)
    clocks.exponential_()
    for row, generator in own.items():
        clocks[row].exponential_(generator=generator)
    replaced = torch.empty_like(drafts)
    return taken, temperatures == 0, chances, probabilities, likeliest, clocks.reciprocal(), replaced


def draft_acceptance(torch: Any, target: Any, proposed: Any, drafts: Any, each: Any) -> Any:
    """Where there is no Triton: which draft tokens are what the model says itself, and the tokens taken instead.

    `target` and `proposed` are probabilities [T, V], `each` the number int64 [B] of draft tokens of a request.
    """
    batch, most = each.shape[0], drafts.shape[0] // each.shape[0]
    likeliest = target.argmax(dim=-1)
    starts = torch.cumsum(each, dim=0) - each
    owner = torch.repeat_interleave(torch.arange(batch, device=target.device), each)
    place = torch.arange(drafts.shape[0], device=target.device) - starts[owner]
    places = torch.full((batch, most), NO_TOKEN, dtype=torch.long, device=target.device)
    places[owner, place] = place
    differs = torch.full((batch, most), False, dtype=torch.bool, device=target.device)
    differs[owner, place] = drafts != likeliest
    first, _ = torch.min(torch.where(differs, places, most * 2), dim=1)
    same = first == most * 2
    first[same] = each[same]
    index = torch.arange(most, device=target.device).expand(batch, -1)
    copied = (index < torch.minimum(first + 1, each).unsqueeze(1)) & (each > 0).unsqueeze(1)
    taken = torch.full((batch, most + 1), NO_TOKEN, dtype=torch.int32, device=target.device)
    taken[:, :most][copied] = likeliest[(starts.unsqueeze(1) + index)[copied]].to(torch.int32)
    more = torch.maximum(target[0] - proposed[0], torch.tensor(0.0, device=target.device))
    return taken, torch.any(first >= each), torch.argmax(more / target[0]).item()


def draft_log_probabilities(torch: Any, logits: Any, places: Any, target: Any, taken: Any) -> Any:
    """The logits of all that was taken, gathered again, and their logarithms; `taken` are tokens int32 [B, n + 1]."""
    logits = torch.zeros_like(logits, dtype=torch.float32)
    logits[places] = target.to(torch.float32)
    ends = torch.zeros_like(taken[:, 0])
    ends[1:] = taken[:-1, 0]
    offsets = torch.arange(taken.shape[-1], device=taken.device, dtype=ends.dtype)
    indices = (ends.unsqueeze(1) + offsets.unsqueeze(0)).flatten()
    indices.clamp_(max=logits.shape[0] - 1)
    tokens = taken.clone().flatten()
    tokens[tokens == NO_TOKEN] = 0
    logprobs = logits[indices].log_softmax(dim=-1, dtype=torch.float32)
    return logprobs.gather(-1, tokens.to(torch.int64).unsqueeze(-1))


STEPS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "logits-to-float32": (logits_to_float32, ("logits16",)),
    "allowed-tokens": (allowed_tokens, ("logits", "mask")),
    "bad-words": (bad_words, ("logits",)),
    "min-tokens": (min_tokens, ("logits", "few rows", "few tokens", "never")),
    "logit-bias": (logit_bias, ("logits", "few rows", "few tokens", "biases")),
    "penalties": (penalties, ("logits", "prompt", "output", "penalty")),
    "cumulated-penalties": (cumulated_penalties, ("logits", "ids", "penalty", "lengths")),
    "temperature": (temperature, ("logits", "temperatures")),
    "greedy": (greedy, ("logits",)),
    "min-p": (min_p, ("logits", "min ps")),
    "top-k-top-p": (top_k_top_p, ("logits", "ks", "ps")),
    "top-k": (top_k, ("logits", "ks")),
    "exponential-draw": (exponential_draw, ("logits",)),
    "seeded-exponential-draw": (seeded_exponential_draw, ("logits",)),
    "mixed-ids": (mixed_ids, ("temperatures", "ids", "ids")),
    "log-probabilities": (log_probabilities, ("logits", "ids", "logprobs")),
    "not-a-number": (not_a_number, ("logits",)),
    "softmax-in-place": (softmax_in_place, ("logits", "temperatures above 0")),
    "sorted-draw": (sorted_draw, ("probabilities", "ks", "ps", "min ps")),
    "top-k-draw": (top_k_draw, ("probabilities", "ks", "ps", "min ps", "top k")),
    "multinomial-draw": (multinomial_draw, ("probabilities",)),
    "gumbel-draw": (gumbel_draw, ("probabilities",)),
    "hashed-draw": (hashed_draw, ("probabilities", "hashes")),
    "clamped-log-probabilities": (clamped_log_probabilities, ("probabilities", "ids", "logprobs")),
    "draft-logits": (draft_logits, ("all logits", "draft places", "draft requests", "mask")),
    "draft-draws": (draft_draws, ("draft logits", "temperatures", "drafts")),
    "seeded-draft-draws": (seeded_draft_draws, ("draft logits", "temperatures", "drafts")),
    "draft-acceptance": (draft_acceptance, ("draft probabilities", "draft probabilities", "drafts", "draft counts")),
    "draft-log-probabilities": (draft_log_probabilities, ("all logits", "draft places", "draft logits", "taken")),
}
