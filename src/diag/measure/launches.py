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
AGAIN = 3
"""Rounds of samples in which the launch must have grown."""
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
    """The fastest launch of several: its seconds, and those that were left to wait for then."""

    seconds: float
    rest: float


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
        for name in names:
            yield {"at": name}
            try:
                answer = grown(bench, name, request["budget"] / count)
            except Exception as error:
                answer = {"reason": said(error)}
            yield {"answer": {**answer, "bench": about}}


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
    return bench._replace(asynchronous=launch.seconds < BEGUN * (launch.seconds + launch.rest))


def floor(bench: Bench, size: int) -> float:
    """Seconds of a copy of so many bytes from the device or to it, whichever is faster, into memory that is in use."""
    if size not in bench.floors:
        host = bench.torch.zeros(size, dtype=bench.torch.uint8)
        there = host.to(bench.device)
        ways = (partial(host.copy_, there), partial(there.copy_, host))
        bench.floors[size] = min(sum(fastest(bench, way, 0.2)) for way in ways)
    return bench.floors[size]


def fastest(bench: Bench, call: Callable[[], Any], seconds: float) -> Launch:
    """The fastest launch of a call among several; each is waited for before the next."""
    best, end = Launch(float("inf"), 0.0), time.monotonic() + seconds
    for number in range(1 + SAMPLES):
        bench.wait()
        start = time.perf_counter()
        call()
        begun = time.perf_counter()
        bench.wait()
        launch = Launch(begun - start, time.perf_counter() - begun)
        # The first call may build its kernel.
        if number:
            best = min(best, launch)
        if number >= LEAST and time.monotonic() > end:
            break
    return best


def grown(bench: Bench, name: str, seconds: float) -> dict[str, Any]:
    """The launch of an operator on small and large tensors, and what follows."""
    operator, _, seeded = name.partition(" ")
    if reason := waiting(bench.torch, operator):
        return {"reason": reason}
    if not bench.asynchronous:
        return {"reason": "the host waits for this device in every call"}
    calls = [call(bench, operator, size, bool(seeded)) for size in (SMALL, bench.large)]
    lowest = floor(bench, largest(calls[1]))
    small, large = (fastest(bench, one, seconds / 2) for one in calls)
    rounds = 1
    while grows(small, large, lowest) and rounds < AGAIN:
        small, large = (min(old, fastest(bench, one, seconds / 4)) for old, one in zip((small, large), calls))
        rounds += 1
    verdict = "grows" if grows(small, large, lowest) else "stays"
    told = {"small": small.seconds, "large": large.seconds, "rest": large.rest, "floor": lowest}
    return {"verdict": verdict, **{key: round(value, 7) for key, value in told.items()}}


def waiting(torch: Any, operator: str) -> str:
    """Why the host must wait for an operator by its nature; empty where it need not."""
    if reason := WAITS.get(operator.partition(".")[0], ""):
        return reason
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


def grows(small: Launch, large: Launch, lowest: float) -> bool:
    """Whether a launch grows with its tensors as a way over the host does."""
    more = large.seconds - small.seconds
    held = large.seconds > HELD * (large.seconds + large.rest)
    return held and large.seconds > RATIO * small.seconds and more > PART * lowest
