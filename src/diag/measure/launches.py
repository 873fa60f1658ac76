"""How long the launch of an operator takes on small and on large tensors: a kernel on the device is only begun.

A call returns as soon as its work is in the device's queue, however much that is. What goes over the CPU returns when
it has copied and computed, so its launch grows with the tensors, at least by the time of such a copy; and nothing is
left to wait for. This sees copies of which torch's dispatcher knows nothing, and needs a device that works by itself
while the host goes on: a copy within the device shows whether it does.

Each number is the least of several, as whatever else the host does only adds. What must wait by its nature, as its
shape or answer depends on the values, is not looked at.
"""

from __future__ import annotations

import gc
import os
import runpy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULTS = {"operators": [], "budget": 30.0, "memory": 3 * 2**30}
"""Of a request: operators by overload (`aten::exponential_`), seconds for all, bytes that may be held on the host."""
SMALL = 2**12
LARGE = (2**18, 2**24)
"""Numbers of a large tensor: the fewest and the most."""
SLOW = 0.001
"""Seconds that a large tensor's copy from or to the host is to take: ten times what disturbs a launch."""
SAMPLES, LEAST = 7, 3
"""Samples of a round, the most and the fewest."""
ROUNDS = 4
"""Rounds of samples where a launch takes as long as a copy: a host that was disturbed may be less so in the next."""
FINE = 3
"""How many times as many samples a small tensor gets: what disturbs it outweighs it."""
PASSES = 3
"""How often an operator is looked at again after all others, where the host was too busy."""
BUSY = "its launch takes long, and not as a copy does: the host has other work"
RATIO = 4.0
"""How many times as long as that of a small tensor the launch of a large one must take."""
PART = 0.5
"""The part of the time of one copy by which it must grow."""
HELD = 0.7
"""The part of the whole call that the launch must be: nothing is left to wait for."""
BEGUN = 0.5
"""Of a copy within the device, the part that its launch takes at most where the device works by itself."""
WAITS = {
    "aten::equal": "its answer is the host's",
    "aten::item": "its answer is the host's",
    "aten::_local_scalar_dense": "its answer is the host's",
    "aten::is_nonzero": "its answer is the host's",
    "aten::bincount": "its shape depends on the values",
    "aten::histc": "its bounds depend on the values",
    "aten::segment_reduce": "its lengths are read by the host",
}
"""Operators that wait by their nature, whatever their tags say."""
SOLVERS = ("linalg_", "_linalg", "geqrf", "lu_", "cholesky", "ormqr", "orgqr", "triangular_solve", "lstsq", "svd", "qr")
"""How the names of operators on matrices begin that end with a look at the host whether they came through."""
SURVIVE, ARGUMENTS = (runpy.run_path(os.path.join(HERE, name)) for name in ("survive.py", "arguments.py"))
guarded, said = SURVIVE["guarded"], SURVIVE["said"]


class Bench(NamedTuple):
    """What is measured on: the device, what waits for it, numbers of a large tensor, whether it works by itself."""

    torch: Any
    device: str
    wait: Callable[[], Any]
    large: int
    asynchronous: bool
    floors: dict[int, float]


class Launch(NamedTuple):
    """The fastest of several calls: seconds until the launch is done, and seconds until all is."""

    begun: float
    done: float

    def or_faster(self, other: Launch) -> Launch:
        """The least of both: whatever else the host does comes on top."""
        return Launch(min(self.begun, other.begun), min(self.done, other.done))


def timed(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Of each operator the launch on small and large tensors, and whether it grows as what goes over the CPU."""
    request, start = {**DEFAULTS, **request}, time.perf_counter()
    names = [one for name in request["operators"] for one in variants(torch, name)]
    rows: list[dict[str, Any]] = []
    document: dict[str, Any] = {"operators": rows}
    for name, answer in SURVIVE["outlived"](partial(looked, torch, request, len(names)), names, request):
        document |= answer.pop("bench", {})
        operator, _, seeded = name.partition(" ")
        rows.append({"name": operator, "seeded": bool(seeded), "verdict": "unknown", **answer})
    return {**document, "seconds": round(time.perf_counter() - start, 2)}


def variants(torch: Any, name: str) -> list[str]:
    """An operator, and where it draws numbers again with a request's own generator."""
    draws = guarded(partial(ARGUMENTS["takes_generator"], torch, name), False)
    return [name, f"{name} seeded"] if draws else [name]


def looked(torch: Any, request: dict[str, Any], count: int, names: list[str], printed: Any) -> Iterator[dict[str, Any]]:
    """In a fork: each operator in turn."""
    yield {"at": ""}
    # A search for garbage in the midst of a launch takes as long as a copy.
    gc.disable()
    with torch.no_grad():
        bench = prepared(torch, request["device"], request["memory"])
        about = {"asynchronous": bench.asynchronous, "small": SMALL, "large": bench.large}
        for number in range(PASSES):
            last, unsettled = number == PASSES - 1, []
            for name in names:
                yield {"at": name}
                try:
                    answer = grown(bench, name, request["budget"] / count)
                except Exception as error:
                    answer = {"reason": said(error)}
                if answer.get("reason") == BUSY and not last:
                    unsettled.append(name)
                else:
                    yield {"answer": {**answer, "bench": about}}
            names = unsettled


def prepared(torch: Any, device: str, memory: int) -> Bench:
    """The device brought to work, tensors that are large enough for its link, and whether it works by itself."""
    module = getattr(torch, device.partition(":")[0], None)
    wait = getattr(module, "synchronize", None) if device.partition(":")[0] != "cpu" else None
    bench = Bench(torch, device, wait or (lambda: None), LARGE[0], False, {})
    if wait is None:
        return bench
    while bench.large < LARGE[1] and bench.large * 64 < memory and floor(bench, bench.large * 4) < SLOW:
        bench = bench._replace(large=bench.large * 2)
    one = torch.zeros(4 * LARGE[1], dtype=torch.uint8, device=device)
    launch = fastest(bench, partial(torch.empty_like(one).copy_, one), 1.0)
    return bench._replace(asynchronous=launch.begun < BEGUN * launch.done)


def floor(bench: Bench, size: int) -> float:
    """Seconds of a copy of so many bytes from the device or to it, whichever is faster, into memory that is in use."""
    if size not in bench.floors:
        host = bench.torch.zeros(size, dtype=bench.torch.uint8)
        there = host.to(bench.device)
        ways = (partial(host.copy_, there), partial(there.copy_, host))
        bench.floors[size] = min(fastest(bench, way, 0.2).done for way in ways)
    return bench.floors[size]


def fastest(bench: Bench, call: Callable[[], Any], seconds: float, times: int = 1) -> Launch:
    """The fastest of several calls, each waited for before the next; the first may build its kernel."""
    best, end, number = Launch(float("inf"), float("inf")), time.monotonic() + seconds, 0
    call()
    while number < LEAST * times or (number < SAMPLES * times and time.monotonic() < end):
        bench.wait()
        start = time.perf_counter()
        call()
        begun = time.perf_counter() - start
        bench.wait()
        best = best.or_faster(Launch(begun, time.perf_counter() - start))
        number += 1
    bench.wait()
    return best


def grown(bench: Bench, name: str, seconds: float) -> dict[str, Any]:
    """The launch of an operator on small and large tensors, and what follows."""
    operator, _, seeded = name.partition(" ")
    if reason := waiting(bench.torch, operator):
        return {"reason": reason}
    if ARGUMENTS["unshaped"](bench.torch, operator):
        return {"reason": "its shape is not known before it is computed"}
    if not bench.asynchronous:
        return {"reason": "the host waits for this device in every call"}
    calls = [call(bench, operator, size, bool(seeded)) for size in (SMALL, bench.large)]
    lowest = floor(bench, largest(calls[1]))
    launches = [fastest(bench, one, seconds / 4, times) for one, times in zip(calls, (FINE, 1))]
    rounds = 1
    while rounds < ROUNDS and launches[1].begun > PART * lowest:
        again = (fastest(bench, one, seconds / 4, times) for one, times in zip(calls, (FINE, 1)))
        launches = [old.or_faster(new) for old, new in zip(launches, again)]
        rounds += 1
    small, large = launches
    told = {"small": small.begun, "large": large.begun, "whole": large.done, "floor": lowest}
    return {**judged(small, large, lowest), "rounds": rounds, **{key: round(value, 7) for key, value in told.items()}}


def judged(small: Launch, large: Launch, lowest: float) -> dict[str, str]:
    """Whether a launch grows with its tensors as a way over the host does; unknown where it is long and does not."""
    if large.begun <= PART * lowest:
        return {"verdict": "stays"}
    held, more = large.begun > HELD * large.done, large.begun - small.begun
    if held and more > PART * lowest and large.begun > RATIO * small.begun:
        return {"verdict": "grows"}
    return {"reason": BUSY}


def waiting(torch: Any, operator: str) -> str:
    """Why the host must wait for an operator by its nature; empty where it need not."""
    if reason := WAITS.get(operator.partition(".")[0], ""):
        return reason
    base = operator.rpartition("::")[2]
    if base.startswith(SOLVERS):
        return "it reads whether the solution was found"
    return "its shape depends on the values" if ARGUMENTS["depends"](torch, operator) else ""


def call(bench: Bench, operator: str, size: int, seeded: bool) -> Callable[[], Any]:
    """A call with tensors of so many numbers on the device, tried once: what it refuses there is raised."""
    made: Callable[[], Any] = ARGUMENTS["made"](bench.torch, operator, bench.device, size, seeded)
    made()
    bench.wait()
    return made


def largest(one: Any) -> int:
    """Bytes of the largest tensor that a call is given, or gives where it is given none."""
    given = [each.nbytes for each in ARGUMENTS["tensors_of"]([one.args, one.keywords])]
    return max(given or [each.nbytes for each in ARGUMENTS["tensors_of"]([one()])], default=1)
