"""What comes of a launch: how an engine will divide the memory of each device, from the model's config and its flags.

It concludes a plan where a launch, a whole `config.json` and a device are told. Where the weights cannot be computed
(an unknown way of quantizing), and no bytes are given, there is no plan.

What it cannot know: what a model's own code does, adapters, memory that a connector takes, and how much a device has
beyond what its maker states where neither torch nor the table of devices tells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from diag.api import (
    Accelerator,
    Case,
    Change,
    Demand,
    Device,
    DeviceModel,
    Division,
    Engine,
    EngineBudget,
    EngineDefault,
    EngineLever,
    EngineReserve,
    EngineState,
    Fact,
    Facts,
    Launch,
    LaunchArguments,
    Levers,
    MemoryChange,
    MemoryPlan,
    MemoryTerm,
    MemoryWish,
    ModelConfig,
    ModelLayers,
    Package,
    Platform,
    Profiled,
    Reading,
    Reserved,
    Shares,
    Surroundings,
    Term,
    Unavailable,
    Vendor,
    advice,
    deduction,
    launch_of,
    model_of,
    named,
    of_release,
    parts_named,
    plan,
    present_makers,
    safest,
    said,
    weights,
)
from diag.api import replace as retold

GIB, MIB = 2**30, 2**20
SEEN, STATED = 0.994, 0.985
"""Of what a vendor's tool prints, and of what a maker states, the part that torch calls its total."""
FITTED = ("H100*", "H200*")
"""Devices on which the constants were fitted, or tell the same."""
ASKING = ("bench serve", "router", "bench_serving", "chat", "complete")
"""Subcommands that start no engine, but ask one that runs."""
EARLIER = {"vllm": ("VLLM_USE_V1", "0", "0.7.3")}
"""The variable with which releases that have two engines start the earlier one, and a release that had that alone."""
EVEN, IDLE = 0.01, 1024.0
"""The part by which ranks may differ where all bytes are known, and MiB in use that are nobody's."""
TERMS = {
    "memory.weights": "weights",
    "memory.activation": "activation",
    "memory.non-torch": "other",
    "memory.graphs": "graphs",
}
"""What an engine prints of itself, and the term that it is."""
POOL, UNEXPLAINED = "memory.kv-cache", "unexplained"
UNITS = {"GiB": GIB, "GB": GIB, "MiB": MIB}


class Sized(NamedTuple):
    """A device: its bytes as torch tells them, its name, whether that is known, and whether the constants are its."""

    bytes: float
    name: str = ""
    exact: bool = True
    fitted: bool = False


class Asked(NamedTuple):
    """What a plan is made of, beside the case: the launch, the version of its engine, the device, and the wish."""

    arguments: LaunchArguments
    version: str
    sized: Sized
    wish: MemoryWish | None
    config: Mapping[str, Any]


@deduction(
    needs=(LaunchArguments, ModelConfig),
    uses=(
        *(Accelerator, DeviceModel, Engine, EngineBudget, EngineDefault, EngineLever, EngineReserve, EngineState),
        *(MemoryWish, Package, Platform, Reading, Vendor),
    ),
    tells=(MemoryPlan, Unavailable),
)
def memory_plan(facts: Facts) -> Iterator[Fact]:
    """The plan of each launch of the one model that is told, or why there is none."""
    configs = {one.text: one for one in facts.all(ModelConfig)}
    if len(configs) != 1:
        return
    (config,) = configs.values()
    launches = [one for one in facts.all(LaunchArguments) if one.subcommand not in ASKING]
    if not launches:
        yield untold(config, "the command starts no engine")
        return
    document, wish, sized = json.loads(config.text), facts.first(MemoryWish), size(facts)
    if sized is None:
        yield untold(config, "how much memory a device has is not known")
        return
    for one in launches:
        version = next((part.version for part in parts_named(facts, one.engine)), one.version)
        variable, value, older = EARLIER.get(one.engine, ("", "", ""))
        version = older if variable and (variable, value) in one.environment else version
        found = planned(facts, Asked(one, version, sized, wish, document))
        yield untold(config, found) if isinstance(found, str) else found


def free(facts: Facts) -> float | None:
    """Bytes that are free on the fullest device before the engine starts; None where nothing tells, or it runs."""
    refused = {one.name: number(one.value) for one in facts.all(EngineState) if one.unit == "GiB"}
    if {"memory.available", "memory.total"} <= refused.keys():
        return refused["memory.available"] * GIB
    if facts.first(EngineState) or any(one.role == "running" for one in facts.all(Engine)):
        return None
    used = {
        one.index: number(one.value) for one in facts.all(Reading) if one.name == "memory.used" and one.unit == "MiB"
    }
    left = [
        (one.memory_mib - used[one.index]) * MIB
        for one in facts.devices()
        if one.memory_mib and used.get(one.index, 0.0) > IDLE
    ]
    return min(left, default=None)


def untold(config: ModelConfig, reason: str) -> Unavailable:
    """Why there is no plan."""
    return Unavailable(origin=config.origin, what="memory/plan", reason=reason, tells=(MemoryPlan.__name__,))


def size(facts: Facts) -> Sized | None:
    """The smallest device that is told, in bytes."""
    wish = facts.first(MemoryWish)
    if wish and wish.device_bytes:
        return Sized(wish.device_bytes)
    found = [one for device in facts.devices() if (one := sized_device(facts, device))]
    return min(found, key=lambda one: one.bytes, default=None)


def sized_device(facts: Facts, device: Accelerator) -> Sized | None:
    """One device: as torch tells it, as its model is known to be told, by its tool, by its maker."""
    model = model_of(facts, device, tells="name")
    fitted = bool(named(facts, device, FITTED))
    by_torch = [one.memory_mib for one in facts.all(Accelerator) if one.seen_by == "torch" and one.memory_mib]
    if by_torch:
        return Sized(min(by_torch) * MIB, device.name, fitted=fitted)
    if model and model.usable_gib:
        return Sized(model.usable_gib * GIB, device.name, fitted=fitted)
    if seen := device.memory_mib or (model.observed_mib if model else None):
        return Sized(seen * SEEN * MIB, device.name, exact=False, fitted=fitted)
    stated = model.memory_gb if model else None
    return Sized(stated * STATED * GIB, device.name, exact=False) if stated else None


def planned(facts: Facts, asked: Asked) -> MemoryPlan | str:
    """The plan of a launch, or why there is none."""
    engine, version = asked.arguments.engine, asked.version
    vendors = present_makers(facts) | {device.vendor for device in facts.devices()}
    budget = of_release(facts.all(EngineBudget), engine, version, vendors)
    gib = asked.sized.bytes / GIB
    meant = [one for one in facts.all(EngineReserve) if one.from_gib <= gib < (one.below_gib or gib + 1)]
    reserve = of_release(meant, engine, version, vendors)
    row = budget or reserve
    if row is None:
        return f"what {engine} {version} does with memory is not known"
    try:
        model = ModelLayers.of(asked.config)
    except ValueError as error:
        return f"the config is no decoder's: {error}"
    around = Surroundings(version, vendors, gib, asked.sized.name)
    launch = launch_of(facts, asked.arguments, model, around, state=row.state)
    weighed = weigher(model, asked, launch.width)
    if weighed is None:
        return "the bytes of the weights are not known: their way of quantizing is not (--weights-bytes)"
    device = Device(asked.sized.bytes, free(facts), asked.sized.fitted)
    rules = profiled(row) if isinstance(row, EngineBudget) else reserved(row)
    case = calibrated(facts, asked.arguments, Case(model, launch, device, rules, weighed))
    made = told(facts, asked, case)
    if budget and budget.prints == "requests" and model.count("linear") and made.concurrency:
        made = retold(made, tokens=int(made.concurrency * made.length))
    return made


def profiled(row: EngineBudget) -> Profiled:
    """The rules of a row."""
    return Profiled(
        fraction=row.fraction,
        sampled=row.sampled_bytes,
        alone=row.alone_gib,
        together=row.together_gib,
        graphs_charged=row.graphs_charged,
        free_checked=row.free_checked,
        states_checked=row.states_checked,
        others_charged=row.others_charged,
        unprofiled=row.unprofiled_states,
        whole_prompts=row.whole_prompts,
        fitted=row.fitted,
    )


def reserved(row: EngineReserve) -> Reserved:
    """The rules of a row."""
    return Reserved(
        base=row.base_mib,
        token=row.token_mib,
        least=row.least_tokens,
        graph=row.graph_mib,
        rank=row.rank_mib,
        replicated=row.replica_mib,
        crowded=row.crowded_mib,
        latent=row.latent_mib,
        grouped=row.grouped_mib,
        drafts=row.drafts_mib,
        floor=row.floor_mib,
        large=row.large_gib,
        fitted=row.fitted,
    )


def weigher(model: ModelLayers, asked: Asked, width: int) -> Callable[[Shares], Term] | None:
    """The weights of a rank by how the model is divided: as given, divided as the config says; or as it says."""
    quantization = dict(asked.arguments.flags).get("quantization", "")
    computed = weights(model, asked.config, quantization, width)
    given = asked.wish.weights_bytes if asked.wish else None
    if computed is None and given is None:
        return None

    def weighed(shares: Shares) -> Term:
        if computed is None:
            return Term("weights", (given or 0.0) / (shares.ranks * shares.stages), "given")
        share = computed.rank(model, shares)
        if given is not None and asked.wish:
            return Term("weights", share * given / computed.total, asked.wish.weights_from, share * EVEN)
        return Term("weights", share, "config", share * computed.off)

    return weighed


def calibrated(facts: Facts, arguments: LaunchArguments, case: Case) -> Case:
    """A case with what the engine printed of itself in place of what is estimated, the pool with what is left over."""
    printed = {name: max(values) for name, values in sizes(facts, arguments.engine).items() if name in TERMS}
    # One that keeps states beside its tokens prints the size of the tokens alone.
    apart = isinstance(case.rules, Reserved) and case.model.count("linear")
    pools = [] if apart else sizes(facts, arguments.engine).get(POOL, [])
    if not (printed or pools):
        return case
    estimated = {one.name: one.bytes for one in case.rules.divide(case).terms}
    corrections = {
        TERMS[name]: value - estimated[TERMS[name]] for name, value in printed.items() if TERMS[name] in estimated
    }
    case = replace(case, corrections=corrections, printed=case.launch)
    if pools:
        left = case.rules.divide(case).room - min(pools)
        case = replace(case, corrections={**corrections, UNEXPLAINED: left})
    return case


def sizes(facts: Facts, engine: str) -> dict[str, list[float]]:
    """Bytes that an engine printed of itself, by name: a value for each rank that did."""
    found: dict[str, list[float]] = {}
    for one in facts.all(EngineState):
        if one.engine == engine and one.unit in UNITS:
            found.setdefault(one.name, []).append(number(one.value) * UNITS[one.unit])
    return found


def told(facts: Facts, asked: Asked, case: Case) -> MemoryPlan:
    """The plan as a fact."""
    wish, launch = asked.wish, case.launch
    demand = Demand(wish.requests, wish.length) if wish and wish.requests and wish.length else None
    made = plan(case, demand)
    division = made.division
    devices = (wish.devices if wish else None) or len(facts.devices()) or launch.shares.ranks * launch.shares.stages
    doubts = (*made.doubts, *(() if asked.sized.exact else ("size",)), *(() if asked.version else ("version",)))
    return MemoryPlan(
        origin=asked.arguments.origin,
        engine=asked.arguments.engine,
        version=asked.version,
        model=asked.arguments.model,
        device=asked.sized.name,
        ranks=launch.shares.ranks,
        stages=launch.shares.stages,
        engines=launch.engines,
        **{name: getattr(division, name) for name in ("total", "asked", "fraction", "free", "room", "spare")},
        terms=tuple(
            MemoryTerm(one.name, one.bytes, one.origin, one.off, one in division.inside) for one in division.terms
        ),
        outcome=made.outcome,
        confidence="medium" if made.confidence == "high" and doubts else made.confidence,
        doubts=doubts,
        demand=(demand.requests, demand.length) if demand else None,
        used=made.used,
        capacity_limited=made.capacity_limited,
        safest=safest(case),
        calibrated=tuple(case.corrections),
        advice=tuple(changes(Levers.of(facts, asked.arguments), advice(case, demand, devices))),
        **held(launch, division),
    )


def held(launch: Launch, division: Division) -> dict[str, Any]:
    """What fits into the pool of a launch."""
    pool = division.pool
    figures: dict[str, Any] = {"length": launch.length, "requests": launch.requests, "batched": launch.tokens}
    if pool is None:
        return figures
    figures |= {"tokens": pool.capacity, "places": pool.places, "longest": pool.longest(launch.tokens)}
    return figures | {"concurrency": pool.concurrency(launch.length, launch.tokens) if launch.length else None}


def changes(levers: Levers, found: Iterable[Change]) -> Iterator[MemoryChange]:
    """Each change with its flags as the engine has them."""
    for one in found:
        pool = one.plan.division.pool
        flags = tuple(said(levers, dict(one.levers)))
        yield MemoryChange(flags, one.plan.outcome, pool.capacity if pool else 0, one.plan.used)


def number(text: str) -> float:
    """A number as printed."""
    return float(text.replace(",", ""))
