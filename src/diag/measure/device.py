"""What each device really does: its memory, its link to the host and matrix products, timed; what operators answer.

`device.py REQUEST …` prints `diag/device/1`; of several requests the later ones say what differs. Each device is asked
in a fork of its own, one after the other, so that none takes bandwidth or power from another; the fork tells what it
has as it goes, so one that crashes or hangs leaves its earlier answers and the name of what it was about. All memory
goes with the fork. GB/s are not made here: a step tells bytes moved, and the median and the fastest time of a call.

What it cannot know: who else uses the device meanwhile. That only slows, so the fastest call says what it can at least.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

DEFAULTS = {"devices": ["auto"], "imports": [], "budget": 6.0, "patience": 60.0, "limit": 840.0}
"""The request: devices as torch names them, seconds of measuring each, seconds without a sign of life, of all.

As long as one step may be silent may all operators together take.
"""
SHARES = 7
"""Steps that share the seconds of a device: two of its memory, two for its link both ways, three of products."""
MEMORY, LINK = 2**29, 2**28
"""Bytes of a buffer: beyond any cache of a device (256 MiB are known), and enough for a link to come to speed."""
PART = 8
"""The part of the free memory, of the device and of the host, that a buffer may take."""
SAMPLES, SAMPLES_LEAST = 200, 5
BATCH = 0.002
"""Seconds that a timed batch of calls takes at least, and that one matrix product is to take."""
SIZES = (256, 512, 1024, 2048, 4096, 8192)
INNER, OUTER = 256, 1024
"""Of the products that are verified: 256 terms of -1, 0 and 1 are exact in every type, also rounded on their way."""
TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
RELEASE = 15.0
"""Seconds that a device has to say how much memory is free after its fork was killed."""
REAP = 2.0
DEVICES_CAP = 64


def main() -> None:
    """Print the document."""
    request = {**DEFAULTS, **{name: value for one in sys.argv[1:] for name, value in json.loads(one).items()}}
    document: dict[str, Any] = {"schema": "diag/device/1", "executable": sys.executable, "devices": []}
    try:
        import torch

        for name in request["imports"]:
            importlib.import_module(name)
    except Exception as error:
        document["error"] = said(error)
    else:
        document["torch"] = torch.__version__
        end = time.monotonic() + request["limit"]
        found = whole(partial(listed, torch, request["devices"]), request["patience"])
        document["unseen"] = found.get("error", "")
        for one in found.get("answer", []):
            document["devices"].append(tested(torch, one, request, end))
    print(json.dumps(document))


def listed(torch: Any, wanted: list[str]) -> list[dict[str, Any]]:
    """The devices that are meant: `auto` is every accelerator, `cuda` all of that kind, `cuda:1` one."""
    found = []
    for word in wanted:
        kind, _, index = word.partition(":")
        for name in kinds(torch) if kind == "auto" else [kind]:
            if name == "cpu" and index not in ("", "0"):
                raise RuntimeError(f"there is no {word}: the host is one")
            if name == "cpu":
                found.append({"device": "cpu", "name": "host"})
                continue
            if not guarded(partial(usable, torch, name), False):
                raise RuntimeError(f"this torch has no {name} that it can use")
            module = getattr(torch, name)
            count = module.device_count()
            if index and int(index) >= count:
                raise RuntimeError(f"there is no {word}: this torch sees {count}")
            indices = [int(index)] if index else range(min(count, DEVICES_CAP))
            found += [identity(module, name, one) for one in indices]
    return found


def kinds(torch: Any) -> list[str]:
    """The kinds of accelerators that this torch can use."""
    current = guarded(lambda: torch.accelerator.current_accelerator().type, "")
    extension = guarded(torch._C._get_privateuse1_backend_name, "")
    names = dict.fromkeys(filter(None, ("cuda", "xpu", extension, current)))
    return [name for name in names if guarded(partial(usable, torch, name), False)]


def usable(torch: Any, kind: str) -> bool:
    """Whether this torch has devices of a kind."""
    return kind == "cpu" or bool(getattr(torch, kind).is_available())


def identity(module: Any, kind: str, index: int) -> dict[str, Any]:
    """A device as torch sees it, with its address on the bus where torch tells it."""
    properties = guarded(lambda: module.get_device_properties(index), None)
    place: list[Any] = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    return {
        "device": f"{kind}:{index}",
        "name": getattr(properties, "name", ""),
        "memory_bytes": getattr(properties, "total_memory", None),
        "address": "" if None in place else "{:04x}:{:02x}:{:02x}.0".format(*place),
    }


def tested(torch: Any, one: dict[str, Any], request: dict[str, Any], end: float) -> dict[str, Any]:
    """What a device did in its fork, and how that ended."""
    start, left = time.monotonic(), end - time.monotonic()
    if left <= 0:
        return {**one, "error": "no time was left for it", "phase": "waiting", "steps": []}
    told: dict[str, Any] = {"steps": [], "phase": "first use", "error": ""}
    for line in apart(partial(measured, torch, one["device"], request), min(request["patience"], left)):
        if step := line.get("answer"):
            told["steps"].append(step)
        told.update({name: line[name] for name in ("phase", "error", "free", "after", "killed") if name in line})
    if not told["error"] and told["phase"] != "done":
        told["error"] = "it ended without a word"
    if told.pop("killed", False) and one["device"] != "cpu":
        told["after"] = whole(partial(free_memory, torch, one["device"]), RELEASE).get("answer")
    return {**one, **told, "seconds": round(time.monotonic() - start, 2)}


def measured(torch: Any, device: str, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All steps on one device, each told when it is done; what a device does not have is told as its error."""
    share = request["budget"] / SHARES
    yield {"phase": "first use"}
    # Else pinned memory belongs to the first device, whatever state that is in.
    if device != "cpu":
        getattr(torch, device.partition(":")[0]).set_device(int(device.partition(":")[2]))
    torch.zeros(1, device=device).add(1).item()
    yield {"free": free_memory(torch, device)}
    sync = synchroniser(torch, device)
    steps: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        (f"memory by {how}", partial(memory, torch, device, sync, how, share)) for how in ("copy", "kernel")
    ]
    steps += [
        (f"link {way}, {kind}", partial(link, torch, device, sync, way, kind == "pinned", share / 2))
        for kind in ("pinned", "pageable")
        for way in ("to the device", "from the device")
        if device != "cpu"
    ]
    steps += [(f"matrix product in {one}", partial(product, torch, device, sync, one, share)) for one in TYPES]
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numerics.py")
    steps += runpy.run_path(beside)["steps"](torch, device, request["patience"])
    for phase, step in steps:
        yield {"phase": phase}
        try:
            yield {"answer": {"step": phase, **step()}}
        except Exception as error:
            yield {"answer": {"step": phase, "error": said(error)}}
    yield {"phase": "done"}


def synchroniser(torch: Any, device: str) -> Callable[[], Any]:
    """What waits until a device has done all that it was told."""
    kind = device.partition(":")[0]
    return (lambda: None) if kind == "cpu" else partial(getattr(torch, kind).synchronize, device)


def free_memory(torch: Any, device: str) -> int | None:
    """Bytes of a device's memory that nobody holds, of the host's for the host; None where torch does not tell."""
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return guarded(lambda: os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), None)  # type: ignore[no-any-return]
    return guarded(lambda: int(getattr(torch, kind).mem_get_info(int(index))[0]), None)  # type: ignore[no-any-return]


def pattern(torch: Any, size: int, device: str = "cpu") -> Any:
    """Numbers of which no near two places hold the same; 4 bytes each."""
    period = 65_521
    return torch.arange(period, dtype=torch.float32).to(device).repeat(size // 4 // period + 1)[: size // 4]


def room(torch: Any, device: str, size: int) -> int:
    """Bytes that a buffer may have here: a size, or less where little is free."""
    free = [free_memory(torch, one) for one in (device, "cpu")]
    return min([size, *(one // PART for one in free if one)])


def memory(torch: Any, device: str, sync: Callable[[], Any], how: str, seconds: float) -> dict[str, Any]:
    """The memory of a device, each byte of one buffer read and as many of another written, by its copy or a kernel."""
    size = room(torch, device, LINK if device == "cpu" else MEMORY)
    source = pattern(torch, size, device)
    target = torch.zeros_like(source)
    call = partial(target.copy_, source) if how == "copy" else partial(torch.add, source, 1.0, out=target)
    call()
    sync()
    wanted = source if how == "copy" else source + 1.0
    right = bool(torch.equal(target, wanted))
    del wanted
    return {"read": source.nbytes, "written": source.nbytes, "correct": right, **timed(call, sync, seconds)}


def link(torch: Any, device: str, sync: Callable[[], Any], way: str, pinned: bool, seconds: float) -> dict[str, Any]:
    """The link between host and device in one direction, from or into memory that is pinned or not."""
    host = pattern(torch, room(torch, device, LINK))
    there = torch.empty_like(host, device=device)
    back = torch.zeros_like(host)
    if pinned:
        # Newer releases know the accelerator by themselves and warn where they are told.
        known = () if hasattr(torch, "accelerator") else (device.partition(":")[0],)
        host, back = (one.pin_memory(*known) for one in (host, back))
    there.copy_(host)
    back.copy_(there)
    sync()
    right = bool(torch.equal(host, back))
    target, source = (there, host) if way == "to the device" else (back, there)
    call = partial(target.copy_, source, non_blocking=pinned)
    return {"bytes": host.nbytes, "pinned": pinned, "way": way, "correct": right, **timed(call, sync, seconds)}


def product(torch: Any, device: str, sync: Callable[[], Any], name: str, seconds: float) -> dict[str, Any]:
    """A square matrix product of random numbers; verified on whole numbers before and after, cold and hot."""
    kind, wrong = getattr(torch, TYPES[name]), exact(torch, device, name)
    size, call = 0, partial(int)
    for size in SIZES:
        one, other = (torch.randn(size, size, dtype=torch.float32).to(device).to(kind) for _ in range(2))
        call = partial(torch.mm, one, other)
        call()
        if least(call, sync) >= BATCH:
            break
    taken = timed(call, sync, seconds)
    wrong = max(wrong, exact(torch, device, name))
    return {"type": name, "size": size, "operations": 2 * size**3, "wrong": wrong, "correct": not wrong, **taken}


def exact(torch: Any, device: str, name: str) -> int:
    """Elements of a product of small whole numbers that are not what the host has in double precision."""
    kind, chance = getattr(torch, TYPES[name]), torch.Generator().manual_seed(1)
    one = torch.randint(-1, 2, (OUTER, INNER), generator=chance).to(torch.float64)
    other = torch.randint(-1, 2, (INNER, OUTER), generator=chance).to(torch.float64)
    told = torch.mm(one.to(kind).to(device), other.to(kind).to(device)).cpu().to(torch.float64)
    return int((told != torch.mm(one, other)).sum())


def least(call: Callable[[], Any], sync: Callable[[], Any]) -> float:
    """Seconds of the faster of two calls."""
    return min(batch(call, sync, 1) for _ in range(2))


def batch(call: Callable[[], Any], sync: Callable[[], Any], calls: int) -> float:
    """Seconds of one of several calls that follow each other."""
    sync()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    sync()
    return (time.perf_counter() - start) / calls


def timed(call: Callable[[], Any], sync: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """Batches of a call for so long: the median, the fastest, and how many there were."""
    calls = max(1, round(BATCH / max(least(call, sync), 1e-7)))
    end, taken = time.monotonic() + seconds, list[float]()
    while len(taken) < SAMPLES and (len(taken) < SAMPLES_LEAST or time.monotonic() < end):
        taken.append(batch(call, sync, calls))
    middle, fastest = round(statistics.median(taken), 9), round(min(taken), 9)
    return {"seconds": middle, "fastest": fastest, "samples": len(taken), "calls": calls}


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """What a question answers, or something else where it raises."""
    try:
        return ask()
    except Exception:
        return otherwise


def said(error: BaseException) -> str:
    """An exception in one bounded line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]


def whole(ask: Callable[[], Any], patience: float) -> dict[str, Any]:
    """All that a fork tells: its answer, how it ended."""
    return {name: value for line in apart(ask, patience) for name, value in line.items()}


def apart(ask: Callable[[], Any], patience: float) -> Iterator[dict[str, Any]]:
    """What a fork tells line by line, and at last how it ended where that was not by itself."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(reader)
        telling(ask, writer)
    os.close(writer)
    held, late = b"", False
    while not late:
        late = not select.select([reader], [], [], patience)[0]
        piece = b"" if late else os.read(reader, 65536)
        held += piece
        *lines, held = held.split(b"\n")
        yield from map(json.loads, lines)
        if not piece:
            break
    os.close(reader)
    yield from ended(pid, patience, late)


def telling(ask: Callable[[], Any], writer: int) -> None:
    """Answer into a pipe, and end: a generator line by line, anything else as one answer."""
    os.dup2(2, 1)
    try:
        told = ask()
        lines: Iterable[Any] = told if isinstance(told, Iterator) else ({"answer": told},)
        for line in lines:
            os.write(writer, json.dumps(line).encode() + b"\n")
    except Exception as error:
        os.write(writer, json.dumps({"error": said(error)}).encode() + b"\n")
    finally:
        os._exit(0)


def ended(pid: int, patience: float, late: bool) -> Iterator[dict[str, Any]]:
    """How a fork came to its end; one that the kernel does not let go is left behind."""
    if late:
        os.kill(pid, signal.SIGKILL)
        yield {"error": f"nothing moved for {patience:.0f} s", "killed": True}
    end = time.monotonic() + (REAP if late else patience)
    while not (reaped := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.01)
    if not reaped[0]:
        yield {"error": f"nothing moved for {patience:.0f} s, and it cannot be killed", "killed": True}
    elif os.WIFSIGNALED(reaped[1]) and not late:
        yield {"error": f"killed by {signal.Signals(os.WTERMSIG(reaped[1])).name}", "killed": True}
    elif not late and (code := os.waitstatus_to_exitcode(reaped[1])):
        yield {"error": f"it ended with exit code {code}", "killed": True}


if __name__ == "__main__":
    main()
