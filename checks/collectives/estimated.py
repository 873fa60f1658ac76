"""What measured collectives mean: the line that each curve follows, and the decode steps of a model that is told.

Steps are concluded from the times of torch's (or a benchmark's) all_reduce. Where an engine sends through kernels of
its own, these are an upper bound, and where it calls the library they are what it gets. A noisy result counts with its
fastest call, for what is disturbed is slower, never faster: then the calls take at least that.

What it cannot know: the weights of a mixture of experts that a step reads, and those of most quantized models, unless
they are given; what a call takes between fewer ranks than were measured, which it takes to be the same and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from diag.api import (
    FEW,
    RIVALS,
    Accelerator,
    Collective,
    CollectiveModel,
    ComponentName,
    Curve,
    Decoder,
    DecodeStep,
    DecodeWish,
    DeviceMemory,
    DeviceModel,
    Fact,
    Facts,
    LaunchArguments,
    ModelShape,
    Package,
    Platform,
    Step,
    Vendor,
    best_memory,
    best_placed,
    bus_factor,
    deduction,
    dense_weights,
    measured_model,
    share,
    step,
)

MODES = ("graph", "free-running", "", "synchronised")
"""The nearest first to how an engine calls: captured, queued, and one after the other."""
WIDTHS = {"": 2, "bfloat16": 2, "float16": 2, "half": 2, "float32": 4, "float": 4}
"""Bytes of an element by the word for its type."""
QUANTIZED = {"fp8": 1}
"""Bytes of a weight by the method, of methods that have but one width."""
BATCHES = (1, 256)
LIMITS = ("max-num-seqs", "max-running-requests")
"""Flags that say how many requests run at once."""
HOST = "cpu"
DIGITS = 7


class Timed(NamedTuple):
    """One sweep: its results by size, and the curve of their times."""

    rows: Sequence[Collective]
    curve: Curve

    @property
    def first(self) -> Collective:
        """What all of them have in common is told by each."""
        return self.rows[0]

    @property
    def noisy(self) -> bool | None:
        """Whether a result was; None where that is not told."""
        told = [one.noisy for one in self.rows if one.noisy is not None]
        return any(told) if told else None

    def nearest(self, size: float) -> Collective:
        """The result of the nearest size."""
        return min(self.rows, key=lambda one: abs(one.bytes - size))


class Memory(NamedTuple):
    """What the slowest device reads its memory with and who says so, and how much there is of it."""

    gbps: float | None = None
    origin: Literal["", "table", "measured"] = ""
    bytes: float | None = None


def sweeps(facts: Facts) -> tuple[Timed, ...]:
    """The results of each operation, mode and world, of those that are right."""
    told: dict[tuple[object, ...], list[Collective]] = {}
    for one in best_placed(facts.all(Collective)):
        if one.correct is not False and _us(one):
            world = (one.origin.capture, one.tool, one.ranks, one.nodes, one.backend, one.dtype)
            told.setdefault((*world, one.op, one.mode), []).append(one)
    rows = (sorted(group, key=lambda one: one.bytes) for group in told.values())
    return tuple(Timed(group, Curve((one.bytes, _us(one)) for one in group)) for group in rows)


def _us(one: Collective) -> float:
    """Microseconds of a call; zero where they are not told."""
    taken = one.latency_us.min if one.noisy else one.latency_us.typical
    return taken or (one.bytes / one.algbw_gbps / 1e3 if one.algbw_gbps else 0.0)


@deduction(needs=(Collective,), tells=(CollectiveModel,))
def collective_models(facts: Facts) -> Iterator[Fact]:
    """The line of each sweep, also where it explains nothing."""
    for timed in facts.concluded(sweeps):
        first, fit = timed.first, timed.curve.fit
        factor = bus_factor(first.op, first.ranks or 0)
        figures: dict[str, Any] = {}
        if fit.lines:
            figures = {"fit_error": _short(fit.error), "worst_bytes": fit.worst, "break_bytes": fit.broken}
            figures |= {"alpha_us": _short(fit.alpha)}
        if fit.lines and fit.lines[-1].each > 0:
            figures |= {"bandwidth_gbps": _short(fit.bandwidth), "knee_bytes": float(round(fit.knee))}
            figures |= {"busbw_gbps": _short(fit.bandwidth * factor) if factor else None}
        yield CollectiveModel(
            origin=first.origin,
            accepted=not fit.refused,
            refused=fit.refused,
            sizes=len(timed.curve.points),
            noisy=timed.noisy,
            **{name: getattr(first, name) for name in ("op", "tool", "mode", "ranks", "nodes", "dtype", "backend")},
            **figures,
        )


def _short(value: float) -> float:
    return float(f"{value:.6g}")


@deduction(
    needs=(Collective, ModelShape),
    uses=(
        *(Accelerator, ComponentName, DecodeWish, DeviceMemory, DeviceModel, LaunchArguments, Package, Platform),
        Vendor,
    ),
    tells=(DecodeStep,),
)
def decode_steps(facts: Facts) -> Iterator[Fact]:
    """A step for each number of tokens and of ranks that a measurement speaks of, on the one model that is told."""
    measured, asked = _by_ranks(facts, "all_reduce"), _asked(facts)
    if asked is None or not measured:
        return
    gathers = _by_ranks(facts, "all_gather")
    for ranks in sorted({*RIVALS, *measured, asked.planned or 1}):
        between = min((one for one in measured if one >= ranks), default=None)
        if between is None:
            continue
        timed, gather = measured[between], gathers.get(ranks)
        memory = _memory(facts, timed.first)
        chosen = ranks == asked.planned if asked.planned else ranks in measured
        for tokens in sorted(set(asked.batches)):
            logits = gather.curve if gather else None
            found = step(asked.decoder, ranks, tokens, gbps=memory.gbps, curve=timed.curve, gather=logits)
            if found and (ranks > 1 or found.weights_ms):
                yield _told(found, timed, asked, memory, chosen=chosen)


def _by_ranks(facts: Facts, op: str) -> dict[int, Timed]:
    """Of each number of ranks the sweep that is nearest to how an engine calls."""
    told = [one for one in facts.concluded(sweeps) if one.first.op == op and (one.first.ranks or 0) > 1]
    told = [one for one in told if one.first.mode in MODES]
    return {one.first.ranks or 0: one for one in sorted(told, key=lambda one: -MODES.index(one.first.mode))}


class Asked(NamedTuple):
    """Which steps of which model: `planned` ranks of a launch, and measured steps in milliseconds by tokens."""

    decoder: Decoder
    weights_from: Literal["", "given", "estimated"]
    batches: Sequence[int]
    planned: int | None
    steps: Mapping[int, float]


def _asked(facts: Facts) -> Asked | None:
    """What is asked of the one model that is told; None where there are several, or its size is not told."""
    (shape, *others) = {(one.hidden_size, one.layers): one for one in reversed(facts.all(ModelShape))}.values()
    if others or not (shape.hidden_size and shape.layers):
        return None
    wish = facts.first(DecodeWish)
    given = wish.weights_bytes if wish else None
    weights = given or _estimated(shape)
    width = (wish and wish.width) or WIDTHS.get(shape.dtype, WIDTHS[""])
    flags = dict(flag for one in facts.all(LaunchArguments) for flag in one.flags)
    ranks = [name for one in facts.all(ComponentName) if one.kind == "ranks" for name in one.flags]
    running = _number(flags, LIMITS) or BATCHES[1]
    return Asked(
        Decoder(shape.layers, shape.hidden_size, weights, width, shape.vocabulary),
        "given" if given else "estimated" if weights else "",
        (wish and wish.batches) or (BATCHES[0], running),
        _number(flags, ranks),
        dict(wish.steps) if wish else {},
    )


def _number(flags: Mapping[str, str], names: Iterable[str]) -> int | None:
    """The first of these flags that is a number above zero."""
    told = (flags.get(name, "") for name in names)
    return next((int(one) for one in told if one.isdecimal() and len(one) < DIGITS and int(one)), None)


def _estimated(shape: ModelShape) -> float | None:
    """Bytes of the weights of a dense model; None where its shape does not tell them."""
    width = QUANTIZED.get(shape.quantization) if shape.quantization else WIDTHS.get(shape.dtype)
    sizes = (shape.hidden_size, shape.layers, shape.intermediate_size, shape.vocabulary)
    if shape.experts or not width or not all(sizes):
        return None
    hidden, layers, intermediate, vocabulary = (one or 0 for one in sizes)
    queries = shape.attention_heads
    heads = (queries, shape.kv_heads or queries, shape.head_dim or hidden // queries) if queries else None
    told = {"hidden": hidden, "layers": layers, "intermediate": intermediate, "vocabulary": vocabulary}
    return float(width * dense_weights(**told, heads=heads))


def _memory(facts: Facts, one: Collective) -> Memory:
    """The memory of the devices between which was measured: as a self-test found it, else as their maker states it."""
    if one.device == HOST:
        return Memory()
    model = measured_model(facts, one)
    held = min((device.memory_mib * 2**20 for device in facts.devices() if device.memory_mib), default=None)
    held = held or (model.memory_gb * 1e9 if model and model.memory_gb else None)
    tested = [memory.best for memory in best_memory(facts) if memory.name == one.device]
    if tested:
        return Memory(min(tested), "measured", held)
    return Memory(model.bandwidth_gbps, "table", held) if model and model.bandwidth_gbps else Memory(bytes=held)


def _told(found: Step, timed: Timed, asked: Asked, memory: Memory, *, chosen: bool) -> DecodeStep:
    """The step as a fact, which stands where the call of the nearest size was told."""
    first, weights = timed.first, asked.decoder.weights
    few = found.tokens <= FEW
    measured = asked.steps.get(found.tokens) if chosen and found.ranks > 1 else None
    figures = {name: getattr(found, name) for name in ("gather_ms", "weights_ms", "step_ms", "share")}
    figures |= {"gain": found.gain if few else None, "break_even_us": found.break_even_us if few else None}
    figures |= {"measured_share": share(found.comm_ms, measured), "call_us": found.call_us or None}
    return DecodeStep(
        origin=timed.nearest(found.message).origin,
        ranks=found.ranks,
        batch=found.tokens,
        bytes=found.message,
        calls=found.calls,
        comm_ms=_short(found.comm_ms),
        limit=found.limit or "",
        basis="" if found.ranks == 1 else found.basis if found.ranks == first.ranks else "assumed",
        measured_ranks=first.ranks,
        measured_ms=measured,
        chosen=chosen,
        mode=first.mode,
        noisy=timed.noisy,
        device=first.device,
        bandwidth_gbps=memory.gbps,
        bandwidth_from=memory.origin,
        weights_bytes=weights,
        weights_from=asked.weights_from,
        fits_one=weights <= memory.bytes if weights and memory.bytes else None,
        **{name: None if value is None else _short(value) for name, value in figures.items()},
    )
