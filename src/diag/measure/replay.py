"""What engines do step by step, run on a device under torch's profiler: which operators of it go over the CPU.

Each step runs once to build what it needs, once with the profiler, which draws the tree that `tree.py` reads, and some
times without, for the seconds that it takes to its end. What is printed meanwhile, and each warning, which torch is
told to repeat, stands with the step: some backends say there what they hand to the CPU. Operators that no step has are
called by themselves.

A step that raises is an answer: a backend may refuse to draw with a request's own generator. The microseconds of an
operator contain what the device had to do before it.
"""

from __future__ import annotations

import os
import re
import runpy
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULTS = {"parts": [], "steps": [], "operators": [], "budget": 6.0, "memory": 3 * 2**30, "elements": 4096}
"""Of a request: parts of an engine and steps (all where none are named), operators, seconds for all that is timed,
bytes that may be held on the host, numbers of a tensor of an operator by itself. Names of `Sizes` size the steps."""
RUNS = 5
TENSORS = 16
"""Tensors [B, V] float32 that a step may need, inputs and copies included."""
NAMED = re.compile(r"\baten::\w+(?:\.\w+)?")
SURVIVE, STEPS, TREE, ARGUMENTS, OVERLOADS = (
    runpy.run_path(os.path.join(HERE, f"{name}.py")) for name in ("survive", "steps", "tree", "arguments", "overloads")
)
guarded, brief, said = SURVIVE["guarded"], SURVIVE["brief"], SURVIVE["said"]
free_memory = SURVIVE["FORKS"]["free_memory"]


class Run(NamedTuple):
    """A call under the profiler: its tree, seconds, warnings, what it raised, and the function of C that did."""

    tree: list[Any]
    seconds: float
    warnings: list[str]
    error: str
    raised: str


def replayed(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The operators that copy to the CPU, and what was seen of each step."""
    request, start = {**DEFAULTS, **request}, time.perf_counter()
    names = [f"step {one}" for one in steps(request)] + [f"operator {one}" for one in request["operators"]]
    told = list(SURVIVE["outlived"](partial(looked, torch, request, len(names)), names, request))
    operators: dict[tuple[str, str], dict[str, Any]] = {}
    rows = []
    for name, answer in told:
        kind, _, which = name.partition(" ")
        host = dict[str, int]()
        for one in answer.pop("operators", []):
            merged(operators, one, which if kind == "step" else "")
            host[f"{one['name']}.{one['overload']}".rstrip(".")] = one["microseconds"]
        rows.append({kind: which, **answer, "host": host})
    found = sorted(operators.values(), key=lambda one: (one["placement"] == "native", -one["microseconds"]))
    return {"operators": found, "steps": rows, "seconds": round(time.perf_counter() - start, 2)}


def steps(request: dict[str, Any]) -> Iterator[str]:
    """The steps that are wanted: those that are named, else those of the parts, and none where operators are named."""
    known = STEPS["STEPS"]
    if unknown := [one for one in request["steps"] if one not in known]:
        raise LookupError(f"there is no step {unknown[0]}")
    if not request["steps"] and request["operators"]:
        return
    for name, one in known.items():
        if name in request["steps"] if request["steps"] else one.part in (request["parts"] or (one.part,)):
            yield name


def merged(operators: dict[tuple[str, str], dict[str, Any]], one: dict[str, Any], step: str) -> None:
    """Put what a step saw of an operator to what others did."""
    row = operators.setdefault(
        (one["name"], one["overload"]), {**TREE["blank"](one["name"], one["overload"]), "steps": []}
    )
    ranks = TREE["RANKS"]
    if one.get("bytes_down", 0) + one.get("bytes_up", 0) > row["bytes_down"] + row["bytes_up"]:
        row.update({name: one[name] for name in ("shape", "dtype", "elements", "evidence") if name in one})
    row["placement"] = max(row["placement"], one["placement"], key=ranks.index)
    for name in TREE["NUMBERS"]:
        row[name] += one[name]
    if step:
        row["steps"].append(step)


def looked(torch: Any, request: dict[str, Any], count: int, names: list[str], printed: Any) -> Iterator[dict[str, Any]]:
    """In a fork: each step or operator in turn, with what it is about before it."""
    yield {"at": ""}
    device, share = request["device"], request["budget"] / count
    guarded(lambda: torch.set_warn_always(True), None)
    warnings.simplefilter("ignore")
    with torch.no_grad():
        profiled(torch, device, lambda: torch.zeros(1, device=device))
        usual = {unnumbered(line) for line in printed.more()}
        sizes = fitting(torch, device, request)
        for name in names:
            printed.more()
            yield {"at": name}
            answer = one(torch, name, (device, sizes, request["elements"]), share)
            lines = [line for line in printed.more() if unnumbered(line) not in usual]
            yield {"answer": {**answer, **({"printed": lines} if lines else {})}}


def unnumbered(line: str) -> str:
    """A line without its numbers: what the profiler itself prints differs in these alone."""
    return re.sub("[0-9]+", "", line)


def fitting(torch: Any, device: str, request: dict[str, Any]) -> Any:
    """The sizes that are wanted, with as many requests as the memory of device and host has room for."""
    wanted = STEPS["Sizes"]()
    sizes = wanted._replace(**{name: request[name] for name in wanted._fields if name in request})
    kind = device.partition(":")[0]
    free = [guarded(lambda: int(getattr(torch, kind).mem_get_info()[0]), 0), free_memory(torch, "cpu")]
    room = min([request["memory"], *filter(None, free)])
    while sizes.batch > 1 and TENSORS * sizes.batch * sizes.vocabulary * 4 > room:
        sizes = sizes._replace(batch=sizes.batch // 2)
    return sizes


def one(torch: Any, name: str, where: tuple[str, Any, int], share: float) -> dict[str, Any]:
    """The answer of a step or of an operator."""
    kind, _, which = name.partition(" ")
    device, sizes, elements = where
    if kind == "operator":
        call = guarded(lambda: ARGUMENTS["made"](torch, which, device, elements), None)
        if call is None:
            return {"error": "not run: no arguments are known that it takes"}
        return seen(torch, device, call, 0.0)
    sized = {"part": STEPS["STEPS"][which].part, "batch": sizes.batch, "vocabulary": sizes.vocabulary}
    try:
        call = STEPS["prepared"](torch, which, device, sizes)
        synchronise(torch, device)
    except Exception as error:
        return {**sized, "error": f"its tensors: {said(error)}"}
    return {**sized, **seen(torch, device, call, share)}


def seen(torch: Any, device: str, call: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """What a call did under the profiler, and how long it takes without; the first one may build its kernels."""
    guarded(partial(timed, torch, device, call), None)
    run = profiled(torch, device, call)
    composite = partial(made_of_others, torch, dispatch_key(torch, device))
    told = TREE["judged"](run.tree, torch.device(device).type, composite)
    if run.warnings:
        told["warnings"] = run.warnings
    if run.error:
        return {**told, "error": run.error, "operator": blamed(torch, run)}
    taken: list[float] = []
    end = time.monotonic() + seconds
    while seconds and len(taken) < RUNS and (not taken or time.monotonic() < end):
        taken.append(timed(torch, device, call))
    if taken:
        told |= {"seconds": round(statistics.median(taken), 6), "runs": len(taken)}
    return {**told, "profiled_seconds": round(run.seconds, 6)}


def timed(torch: Any, device: str, call: Callable[[], Any]) -> float:
    """Seconds of a call to its end."""
    synchronise(torch, device)
    start = time.perf_counter()
    call()
    synchronise(torch, device)
    return time.perf_counter() - start


def synchronise(torch: Any, device: str) -> None:
    """Wait until the device has done all that it was told."""
    wait = getattr(getattr(torch, device.partition(":")[0], None), "synchronize", None)
    if wait and device.partition(":")[0] != "cpu":
        wait()


def profiled(torch: Any, device: str, call: Callable[[], Any]) -> Run:
    """Run a call once under the profiler; the function of C that raised is known by its name alone."""
    raised: list[str] = []

    def noted(frame: Any, event: str, function: Any) -> None:
        if event == "c_exception":
            raised[:] = [getattr(function, "__name__", "")]

    profiler, error, start = watching(torch), "", time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with profiler:
            sys.setprofile(noted)
            try:
                start = time.perf_counter()
                call()
                synchronise(torch, device)
            except Exception as reason:
                error = said(reason)
            finally:
                sys.setprofile(None)
            seconds = time.perf_counter() - start
    lines = brief(str(one.message) for one in caught)
    overload = (lambda name, given: "") if overloads_told(torch) else OVERLOADS["by_arguments"](torch)
    tree = TREE["drawn"](profiler, overload)
    return Run(tree, seconds, lines, error, raised[0] if raised and error else "")


def watching(torch: Any) -> Any:
    """torch's profiler of what the host calls, with overloads where this torch can tell them.

    What `torch.profiler` adds to it is of no use here, and imports a compiler: three seconds.
    """
    from torch.autograd import profiler

    return profiler.profile(use_kineto=True, record_shapes=True, experimental_config=overloads_told(torch))


def overloads_told(torch: Any) -> Any:
    """What asks the profiler for overloads; None in a torch that cannot tell them."""
    return guarded(lambda: torch._C._profiler._ExperimentalConfig(capture_overload_names=True), None)


def blamed(torch: Any, run: Run) -> str:
    """The operator in which a call raised, as far as the message or the function that raised tells."""
    if found := NAMED.search(run.error):
        return found[0]
    last, nodes = "", run.tree
    while nodes:
        last, nodes = f"{nodes[-1].name}.{nodes[-1].overload}".rstrip("."), nodes[-1].inner
        if nodes and last.partition(".")[0] == f"aten::{run.raised}":
            return last
    if last.partition(".")[0] == f"aten::{run.raised}":
        return last
    return f"aten::{run.raised}" if run.raised and hasattr(torch.ops.aten, run.raised) else ""


def dispatch_key(torch: Any, device: str) -> str:
    """The dispatch key of a kind of device."""
    kind = torch.device(device).type
    if kind in ("privateuseone", guarded(torch._C._get_privateuse1_backend_name, "")):
        return "PrivateUse1"
    names: list[str] = list(vars(torch._C.DispatchKey))
    return next((name for name in names if name.lower() == kind), "")


def made_of_others(torch: Any, key: str, name: str, overload: str) -> bool:
    """Whether torch itself makes an operator of others on a key; each of its overloads, where that is not told."""
    if overload or overloads_told(torch):
        tables = [f"{name}.{overload}".rstrip(".")]
    else:
        known = torch._C._dispatch_get_all_op_names()
        tables = [one for one in known if one.partition(".")[0] == name]
    found = [one for one in (guarded(partial(kernel, torch, key, table), "") for table in tables) if one]
    return bool(found) and set(found) <= {"math kernel", "default backend kernel"}


def kernel(torch: Any, key: str, name: str) -> str:
    """How the dispatcher came to an operator's kernel for a key, in its words; empty where there is none."""
    for line in torch._C._dispatch_dump_table(name).splitlines():
        if line.startswith(f"{key}: "):
            return str(line.rstrip().rpartition("[")[2].rstrip("]"))
    return ""
