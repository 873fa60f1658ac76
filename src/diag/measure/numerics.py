"""Whether the operators of a device answer as the host does in double precision, element by element.

`CASES` is a table: the next operator is a row. Each case makes what is given from a fixed seed in the type, lets the
device answer, and compares each element with a bound of its own. A bound is never a share of the largest element, so
that one wrong element among a million is seen. Most inputs are such that each order of summing, each split of it and
each rounding on the way is exact (whole numbers, products of one term, values that are only moved): the bound is zero.
Else it is unit roundoff times growth, as the standard model of rounding has it: a sum of n terms in any order errs by
at most n u times the sum of the sizes. Sums are taken to be in float32, also for types of 16 bits, and `FLOAT32` is
twice its roundoff, as some units cut off. Numbers are given in bfloat16's digits: a product in TF32 rounds nothing.

What it cannot know: errors below these bounds, of other shapes, and those that come once an hour.
"""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

TYPES = {
    "fp32": ("float32",),
    "bf16": ("bfloat16",),
    "fp16": ("float16",),
    "int8": ("int8",),
    "fp8": ("float8_e4m3fn", "float8_e4m3fnuz"),
}
"""Types by torch's names: of several the first that a device takes."""
USUAL = ("fp32", "bf16", "fp16")
FLOAT32, TF32, FLOAT8 = 2.0**-23, 2.0**-11, 2.0**-13
"""Roundoff of sums in float32 cut off, of TF32's digits, and of sums of products of 8 bits: 14 bits are known."""
PARTS = 4
"""Parts of a sum that may be rounded to a type of 16 bits before they are added ("reduced precision reduction")."""
ROUNDINGS = 4
"""Roundings to the type of the answer between the steps of a kernel: into it, of two steps, and one to spare."""
VOCABULARY = 152_064
KEPT = 50
RUN = 61
"""Of running sums: no multiple of it is near a power of two, so what is carried between blocks is seldom zero."""
EPSILON = 1e-5
SEED = 1
CLOSE, FEW = 0.01, 8
"""The share by which numbers that look alike may differ, and so many of one factor are no chance."""

Piece = tuple[Any, Any, Any]
"""What was found, what is wanted and by how much it may differ, float64 of one shape."""


class Case(NamedTuple):
    """An operator: its types and shapes, what is given, what the device does, and the pieces of what it answered."""

    operator: str
    types: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    given: Callable[..., tuple[Any, ...]]
    run: Callable[..., Any]
    pieces: Callable[..., Iterator[Piece]]


def steps(torch: Any, device: str, seconds: float) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """All cases of a device by name, `softmax in bf16`; one for which no time is left raises.

    A device computes them in a second or two; some compile each kernel at its first use.
    """
    ends: list[float] = []

    def bounded(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        ends.append(time.monotonic() + seconds)
        if time.monotonic() > ends[0]:
            raise TimeoutError("no time was left for it")
        return ask()

    told = [
        (f"{one.operator} in {name}", partial(bounded, partial(judged, torch, one, name, device)))
        for one in CASES
        for name in one.types
    ]
    draws = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "draws.py"))
    return told + [
        (f"{one.operator} in {name}", partial(bounded, partial(draws["judged"], torch, one, name, device)))
        for one in draws["DRAWS"]
        for name in one.types
    ]


def judged(torch: Any, case: Case, name: str, device: str) -> dict[str, Any]:
    """What a case found on a device in a type: elements, how many are wrong, the worst, and how that looks."""
    kinds = [getattr(torch, one) for one in TYPES[name] if hasattr(torch, one)]
    if not kinds:
        raise TypeError(f"this torch has no {name}")
    for kind in kinds[:-1]:
        try:
            return compared(torch, case, name, kind, device)
        except (RuntimeError, ValueError):
            continue
    return compared(torch, case, name, kinds[-1], device)


def compared(torch: Any, case: Case, name: str, kind: Any, device: str) -> dict[str, Any]:
    """All shapes of a case in one type."""
    told: dict[str, Any] = {"operator": case.operator, "type": name, "elements": 0, "wrong": 0, "worst": 0.0}
    told["allowed"] = 0.0
    for shape in case.shapes:
        given = case.given(torch, torch.Generator().manual_seed(SEED), kind, *shape)
        answer = case.run(torch, *(one.to(device) for one in given))
        host = [one.cpu() for one in (answer if isinstance(answer, (tuple, list)) else (answer,))]
        for found, wanted, allowed in case.pieces(torch, kind, given, host):
            add(told, seen(torch, found.double(), wanted.double(), allowed), shape)
    return {**told, "correct": not told["wrong"]}


def add(told: dict[str, Any], piece: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Add a piece: the worst of what is right, or the first that is wrong by more than digits, says how it looks."""
    first = bool(piece["wrong"]) and told.get("looks", "imprecise") == "imprecise"
    told["elements"] += piece.pop("elements")
    told["wrong"] += piece.pop("wrong")
    if first:
        told.update(piece, shape=list(shape))
    elif not told["wrong"] and piece["worst"] * told["allowed"] >= told["worst"] * piece["allowed"]:
        told.update(worst=piece["worst"], allowed=piece["allowed"])


def seen(torch: Any, found: Any, wanted: Any, allowed: Any) -> dict[str, Any]:
    """The elements that differ by more than they may, and the one that does so most; what is no number never may."""
    off = torch.where(found == wanted, torch.zeros_like(found), (found - wanted).abs())
    allowed = torch.zeros_like(off) + allowed
    wrong = ~(off <= allowed)
    count = int(wrong.sum())
    most = off - allowed if count else (off / allowed).nan_to_num(0.0)
    at = int(most.nan_to_num(float("inf")).argmax())
    worst, limit = float(off.flatten()[at]), float(allowed.flatten()[at])
    told = {"elements": wrong.numel(), "wrong": count, "worst": finite(worst), "allowed": finite(limit)}
    if count:
        told.update(looks=looks(torch, found[wrong], wanted[wrong], bool((allowed[wrong] > 0).all())), **extent(wrong))
    return told


def finite(value: float) -> float | None:
    """A number in five digits, None for what is none: JSON has no word for it."""
    return float(f"{value:.5g}") if abs(value) < float("inf") else None


def looks(torch: Any, found: Any, wanted: Any, rounded: bool) -> str:
    """What the wrong elements have in common; only what may be `rounded` can be imprecise."""
    if found.isnan().any():
        return "nan"
    if found.isinf().any():
        return "infinite"
    if not found.any():
        return "zero"
    if rounded and torch.allclose(found, wanted, rtol=CLOSE, atol=0.0):
        return "imprecise"
    if len(found) == 1:
        return "other"
    if bool((found == found[0]).all()):
        return "constant"
    if torch.allclose(found.sort().values, wanted.sort().values, rtol=CLOSE, atol=0.0):
        return "permuted"
    ratio = found / wanted
    same = len(found) >= FEW and torch.allclose(ratio, ratio.median(), rtol=CLOSE, atol=0.0)
    return "scaled" if same else "other"


def extent(wrong: Any) -> dict[str, Any]:
    """Where they are: `one`, a `block` that is full of them, `all`, or `scattered`; rows and columns, the last too."""
    flat = wrong.reshape(-1, wrong.shape[-1])
    rows, columns = (flat.any(one).nonzero().flatten() for one in (1, 0))
    spans = [[int(one[0]), int(one[-1])] for one in (rows, columns)]
    count, size = int(flat.sum()), (spans[0][1] - spans[0][0] + 1) * (spans[1][1] - spans[1][0] + 1)
    whole = 2 * count > flat.numel()
    how = "one" if count == 1 else "all" if whole else "block" if 2 * count > size else "scattered"
    return {"extent": how, "rows": spans[0], "columns": spans[1]}


def normal(torch: Any, chance: Any, *shape: int) -> Any:
    """Normal numbers, float32 in bfloat16's digits; none so small that its product is subnormal, which some flush."""
    drawn = torch.randn(*shape, generator=chance).to(torch.bfloat16).float()
    return drawn.sign() * drawn.abs().clamp(min=2.0**-6)


def logits(torch: Any, chance: Any, kind: Any, *shape: int) -> tuple[Any]:
    """What a sampler gets: normal numbers, each eighth token out of question."""
    told = 4.0 * normal(torch, chance, *shape)
    return (told.masked_fill(torch.rand(shape, generator=chance) < 0.125, float("-inf")).to(kind),)


def roundoff(torch: Any, kind: Any) -> float:
    """The unit roundoff of a type: half the distance from one to the next number."""
    return float(torch.finfo(kind).eps) / 2


def sixteen(torch: Any, kind: Any) -> float:
    """What roundings to a type of 16 bits may add, as a share; float32 is in the growth of sums."""
    return 0.0 if kind == torch.float32 else ROUNDINGS * roundoff(torch, kind)


# Products: the first half of the rows and the first quarter of the columns hold -1, 0 and 1, of which 256 add up
# exactly even in bfloat16; the second quarter of the columns picks one element of a row, times a power of two.
def matrices(torch: Any, chance: Any, kind: Any, *shape: int) -> tuple[Any, Any]:
    """Matrices [rows, inner] and [columns, inner], as weights lie."""
    rows, inner, columns = shape
    if kind == torch.int8:
        both = torch.randint(-128, 128, (rows + columns, inner), generator=chance).to(kind)
        return both[:rows], both[rows:]
    one, other = normal(torch, chance, rows, inner), normal(torch, chance, columns, inner)
    half, quarter = rows // 2, columns // 4
    few = torch.randint(-1, 2, (half + quarter, inner), generator=chance).float()
    one[:half], other[:quarter] = few[:half], few[half:]
    picked = torch.arange(quarter)
    other[quarter : 2 * quarter] = 0.0
    other[quarter + picked, (7 * picked) % inner] = 2.0 ** (picked % 3 - 1).float() * (1 - 2 * (picked % 2)).float()
    return one.to(kind), other.to(kind)


def multiplied(torch: Any, one: Any, other: Any) -> Any:
    """The product as engines call it in each type."""
    if one.dtype == torch.int8:
        return torch._int_mm(one, other.t())
    if one.dtype.itemsize == 1:
        scale = torch.ones((), device=one.device)
        told = torch._scaled_mm(one, other.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
        return told[0] if isinstance(told, tuple) else told
    return torch.nn.functional.linear(one, other)


def product_pieces(torch: Any, kind: Any, given: Any, host: Any) -> Iterator[Piece]:
    """The exact part, and the rest by its growth; in float32 the digits of TF32 are left everywhere."""
    one, other = (part.double() for part in given)
    wanted, size = one @ other.t(), one.abs() @ other.abs().t()
    terms, quarter = one.shape[1], other.shape[0] // 4
    if kind == torch.int8:
        allowed = torch.zeros_like(size)
    elif kind == torch.float32:
        allowed = size * (2 * TF32 + terms * FLOAT32)
    elif kind.itemsize == 1:
        allowed = size * terms * FLOAT8 + wanted.abs() * roundoff(torch, torch.bfloat16)
    else:
        parts = (one.reshape(len(one), PARTS, -1), other.reshape(len(other), PARTS, -1))
        sums = torch.einsum("mpk,npk->mnp", *parts).abs().sum(-1)
        allowed = size * terms * FLOAT32 + (wanted.abs() + PARTS * sums) * roundoff(torch, kind)
    # A part of the sum that was rounded is still a whole number, or the only term.
    if kind not in (torch.int8, torch.float32):
        allowed[: len(one) // 2, :quarter] = 0.0
        allowed[:, quarter : 2 * quarter] = 0.0
    yield host[0], wanted, allowed


def softmax_pieces(torch: Any, kind: Any, given: Any, host: Any) -> Iterator[Piece]:
    """Exponents err by their argument's rounding, their sum by its terms; all are positive, so shares add up."""
    told = given[0].double()
    spread = (told.masked_fill(told.isinf(), 0.0) - told.amax(-1, keepdim=True)).abs().amax()
    growth = (told.shape[-1] + 6 * float(spread) + 16) * FLOAT32 + sixteen(torch, kind)
    wanted = told.softmax(-1)
    yield host[0], wanted, wanted * growth


def even(torch: Any, chance: Any, kind: Any, *shape: int) -> tuple[Any]:
    """Numbers between -1 and 1: no share of a thousand of them is subnormal in any type."""
    return ((2.0 * torch.rand(shape, generator=chance) - 1.0).to(kind),)


def ordered_pieces(torch: Any, kind: Any, given: Any, host: Any, kept: int | None = None) -> Iterator[Piece]:
    """Values in order; what the places point at, which says nothing of the order of equal ones; no place twice."""
    told, (values, places) = given[0].double(), host
    wanted = told.sort(-1, descending=True).values[..., :kept]
    yield values, wanted, 0.0
    inside = (places >= 0) & (places < told.shape[-1])
    pointed = told.gather(-1, places.clamp(0, told.shape[-1] - 1))
    yield torch.where(inside, pointed, torch.full_like(pointed, float("nan"))), wanted, 0.0
    again = places.sort(-1).values.diff() == 0
    yield again, torch.zeros_like(again), 0.0


def whole(torch: Any, chance: Any, kind: Any, *shape: int) -> tuple[Any]:
    """Whole numbers whose sums over any stretch are exact: in float32 below 2^24, else runs and their negatives."""
    rows, columns = shape
    if kind == torch.float32:
        return (torch.randint(0, 65, shape, generator=chance).to(kind),)
    most = int(1 / roundoff(torch, kind)) // (2 * RUN)
    runs = torch.randint(-most, most + 1, (rows, columns // (2 * RUN) + 1, RUN), generator=chance)
    return (torch.cat([runs, -runs], -1).reshape(rows, -1)[:, :columns].to(kind),)


def summed_pieces(torch: Any, kind: Any, given: Any, host: Any) -> Iterator[Piece]:
    """Running sums, exact."""
    yield host[0], given[0].double().cumsum(-1), 0.0


def normed(torch: Any, chance: Any, kind: Any, *shape: int) -> tuple[Any, Any, Any]:
    """What is normalised, and weight and bias."""
    drawn = normal(torch, chance, shape[0] + 2, shape[1])
    return (drawn[2:] + 0.5).to(kind), (drawn[0] / 8 + 1.0).to(kind), (drawn[1] / 8).to(kind)


def layer_norm(torch: Any, told: Any, weight: Any, bias: Any) -> Any:
    """Layer norm over the last dimension."""
    return torch.nn.functional.layer_norm(told, told.shape[-1:], weight, bias, EPSILON)


def rms_norm(torch: Any, told: Any, weight: Any, bias: Any) -> Any:
    """RMS norm over the last dimension; in parts, as engines have it, where torch has none."""
    if hasattr(torch.nn.functional, "rms_norm"):
        return torch.nn.functional.rms_norm(told, told.shape[-1:], weight, EPSILON)
    wide = told.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)).to(told.dtype) * weight


def normed_pieces(torch: Any, kind: Any, given: Any, host: Any, centred: bool) -> Iterator[Piece]:
    """Mean and mean square err by their terms: the one shifts all elements, the other scales them.

    Where no kernel does it all, both are kept in the type for a moment: the mean is rounded, and its difference.
    """
    told, weight, bias = (one.double() for one in given)
    mean = told.mean(-1, keepdim=True) if centred else torch.zeros(len(told), 1, dtype=torch.float64)
    share = torch.rsqrt((told - mean).pow(2).mean(-1, keepdim=True) + EPSILON)
    wanted = (told - mean) * share * weight
    moved = (mean * share * weight).abs()
    size = wanted.abs() + (bias.abs() if centred else 0.0)
    growth, rounded = (told.shape[-1] + 16) * FLOAT32, sixteen(torch, kind)
    allowed = 2 * growth * (size + weight.abs()) + rounded * (size + moved / 2)
    yield host[0], wanted + (bias if centred else 0.0), allowed


def last(what: str, **more: Any) -> Callable[..., Any]:
    """A method over the last dimension."""
    return lambda torch, told: getattr(told, what)(dim=-1, **more)


# Rows of odd lengths, just beyond a power of two, as kernels change there.
SHORT = ((129, 257), (65, 513), (33, 1025))
NORMS = ((65, 1025), (33, 4096))
CASES = (
    Case(
        "matmul",
        (*USUAL, "int8", "fp8"),
        ((264, 256, 784), (24, 256, 1040)),
        matrices,
        multiplied,
        product_pieces,
    ),
    Case("softmax", USUAL, SHORT, even, last("softmax"), softmax_pieces),
    Case("softmax of logits", ("fp32",), ((4, VOCABULARY),), logits, last("softmax"), softmax_pieces),
    Case("sort", USUAL, ((2, VOCABULARY), (65, 513)), logits, last("sort", descending=True), ordered_pieces),
    Case(
        "topk",
        USUAL,
        ((4, VOCABULARY), (129, 257)),
        logits,
        last("topk", k=KEPT),
        partial(ordered_pieces, kept=KEPT),
    ),
    Case("cumsum", USUAL, ((2, VOCABULARY), (33, 1025)), whole, last("cumsum"), summed_pieces),
    Case("layer norm", USUAL, NORMS, normed, layer_norm, partial(normed_pieces, centred=True)),
    Case("RMS norm", USUAL, NORMS, normed, rms_norm, partial(normed_pieces, centred=False)),
)
