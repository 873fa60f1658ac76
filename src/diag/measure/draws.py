"""Whether the random numbers of a device are drawn from the distributions that they are named after.

The distance between the distribution functions, of the draws and of what they are to be, is beyond `bound` for sound
draws with a probability of at most `LEVEL`, whatever the distribution is (Dvoretzky, Kiefer and Wolfowitz, with
Massart's constant; no limit is taken). So is the share of rising pairs away from a half (Hoeffding). Of `DRAWS` with
eight rows a sound device fails by chance less than twice in 10^9 tests. Two calls that give the same, or one of which
fewer than half are distinct, and numbers that a distribution does not have, are no matter of chance.

What it cannot know: one wrong number that the distribution could have had, and dependence further apart than a pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

LEVEL = 1e-10
"""The probability with which each of the two bounds fails sound draws."""
COUNT = 2**19
ROWS = 2**16
"""Draws of a call; rows of which a sampler draws one token each."""
WEIGHTS = (0, 5, 1, 0, 3, 8, 2, 1, 0, 0, 4, 6, 1, 1, 0)
"""The chances of a row's tokens, out of 32: the first, the last and some between must never come."""
TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class Draw(NamedTuple):
    """A distribution: how it is drawn, its function of sorted float64 values, and which values it has."""

    operator: str
    types: tuple[str, ...]
    drawn: Callable[..., Any]
    function: Callable[..., Any]
    had: Callable[..., Any]
    continuous: bool = True


def judged(torch: Any, draw: Draw, name: str, device: str) -> dict[str, Any]:
    """Draw twice and judge the first; what the two have in common is told as well."""
    kind = getattr(torch, TYPES[name])
    first, second = (draw.drawn(torch, kind, device).cpu() for _ in range(2))
    told = {"operator": draw.operator, "type": name, **examined(torch, draw, first)}
    if not told["looks"] and torch.equal(first, second):
        told["looks"] = "repeated"
    return {**told, "correct": not told["looks"]}


def examined(torch: Any, draw: Draw, drawn: Any) -> dict[str, Any]:
    """One call's numbers: how many the distribution does not have, the distance, and what is wrong with them."""
    values, slack = drawn.double().sort().values, float(torch.finfo(drawn.dtype).eps) if draw.continuous else 0.0
    outside = int((~draw.had(values, slack)).sum())
    far = float(distance(torch, draw, values)) if not outside else 1.0
    allowed = bound(len(values)) + slack
    told = {"elements": len(values), "wrong": outside, "worst": float(f"{far:.5g}"), "allowed": float(f"{allowed:.5g}")}
    return {**told, "looks": looks(draw, drawn, values, (outside, far > allowed))}


def looks(draw: Draw, drawn: Any, values: Any, found: tuple[int, bool]) -> str:
    """What is wrong with numbers, sorted in `values`, of which some are outside or far; empty where nothing is."""
    outside, far = found
    if bool((values == values[0]).all()):
        return "constant"
    if outside:
        return "outside"
    if far:
        return "distribution"
    if draw.continuous and drawn.element_size() == 4 and 2 * int((values.diff() > 0).sum() + 1) < len(values):
        return "repeated"
    return "ordered" if abs(float(rising(drawn)) - 0.5) > pairs_bound(len(drawn)) else ""


def bound(count: int) -> float:
    """The distance that so many sound draws have with a probability of at most `LEVEL`."""
    return math.sqrt(math.log(2 / LEVEL) / (2 * count))


def pairs_bound(count: int) -> float:
    """The same for the share of rising pairs among neighbours, each number in one pair."""
    return math.sqrt(math.log(2 / LEVEL) / (2 * (count // 2)))


def rising(drawn: Any) -> Any:
    """The share of pairs of neighbours [..., n] of which the second is larger; equal ones count half."""
    one, other = drawn[..., 0::2].double(), drawn[..., 1::2].double()
    return ((one < other).double() + 0.5 * (one == other).double()).mean(-1)


def distance(torch: Any, draw: Draw, values: Any) -> Any:
    """The largest distance between the distribution functions, of sorted values [..., n]; of whole ones at each."""
    count = values.shape[-1]
    if not draw.continuous:
        points = torch.arange(len(WEIGHTS), dtype=torch.float64)
        return (torch.searchsorted(values, points, right=True) / count - draw.function(torch, points)).abs().amax(-1)
    share, function = torch.arange(count + 1, dtype=torch.float64) / count, draw.function(torch, values)
    return torch.maximum(share[1:] - function, function - share[:-1]).amax(-1)


def tokens(torch: Any, kind: Any, device: str) -> Any:
    """A token of each row, as samplers that leave the draw to torch have it."""
    weights = torch.tensor(WEIGHTS, dtype=torch.float32)
    return torch.multinomial((weights / weights.sum()).to(kind).to(device).repeat(ROWS, 1), 1).flatten().float()


def chances(torch: Any, points: Any) -> Any:
    """The distribution function of the tokens."""
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)
    return (weights / weights.sum()).cumsum(0)[points.long()]


def possible(values: Any, slack: float) -> Any:
    """Which tokens have a chance."""
    known = values.new_tensor(WEIGHTS) > 0
    inside = (values >= 0) & (values < len(WEIGHTS))
    return inside & known[values.clamp(0, len(WEIGHTS) - 1).nan_to_num(0).long()]


def empty(torch: Any, kind: Any, device: str) -> Any:
    """Where the numbers come, and zero until then."""
    return torch.zeros(COUNT, dtype=kind, device=device)


DRAWS = (
    Draw(
        "uniform draws",
        ("fp32", "bf16", "fp16"),
        lambda torch, kind, device: empty(torch, kind, device).uniform_(),
        lambda torch, values: values,
        # A type of few digits rounds to one what lies just below.
        lambda values, slack: (values >= 0) & ((values < 1) | ((values == 1) & (slack > 1e-4))),
    ),
    Draw(
        "normal draws",
        ("fp32", "bf16", "fp16"),
        lambda torch, kind, device: empty(torch, kind, device).normal_(),
        lambda torch, values: torch.special.ndtr(values),
        lambda values, slack: values.isfinite(),
    ),
    Draw(
        "exponential draws",
        ("fp32",),
        lambda torch, kind, device: empty(torch, kind, device).exponential_(),
        lambda torch, values: -torch.expm1(-values),
        lambda values, slack: (values > 0) & values.isfinite(),
    ),
    Draw("multinomial draws", ("fp32",), tokens, chances, possible, continuous=False),
)
