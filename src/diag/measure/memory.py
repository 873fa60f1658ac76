"""What a device says of its memory, and what of it can really be had: `memory.py REQUEST …` prints `diag/memory/1`.

Each question is asked in a fork that ends at once, for a process that has used a device keeps a context on it. What a
context takes is the difference that a second one makes. With `allocate` the largest single block is found by halving,
in plain allocations without a cache, then blocks beside it until less than a step is left; all is freed at once. The
last 2 GiB or 5 % are never taken, and nothing is where others hold the device: their next allocation would fail.
Who does is known from the request (`given`: what the device's tool told before) and from what is missing of its memory.

The host (`cpu`) is asked in the same way, within the limits of the process and its groups: see `room.py`.

What it cannot know: what another process takes meanwhile, and memory that a driver gives twice before it is touched.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

DEFAULTS = {"devices": ["auto"], "imports": [], "allocate": False, "cap": None, "patience": 60.0, "given": []}
"""The request; `cap` are bytes that are never gone beyond, `given` what tools told of devices and their processes."""
LEFT, PART = 2**31, 0.05
"""Bytes, and the part of all, that are never taken."""
HELD = 2**30
"""Bytes of others from which on nothing is allocated."""
BLOCKS = 12
NAMED = 3
UNCACHED = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
DEVICE, ROOM = (runpy.run_path(str(Path(__file__).with_name(name))) for name in ("device.py", "room.py"))
whole, apart, guarded, said = (DEVICE[name] for name in ("whole", "apart", "guarded", "said"))
host, halved, STEP = (ROOM[name] for name in ("host", "halved", "STEP"))


def main() -> None:
    """Print the document."""
    request = {**DEFAULTS, **{name: value for one in sys.argv[1:] for name, value in json.loads(one).items()}}
    document: dict[str, Any] = {"schema": "diag/memory/1", "devices": []}
    os.environ.update(UNCACHED)
    try:
        found = [] if request["devices"] == ["cpu"] else seen(request, document)
    except Exception as error:
        document["error"] = said(error)
    else:
        if "cpu" in request["devices"]:
            found.append({"device": "cpu", "name": "host"})
        torch = sys.modules.get("torch")
        document["devices"] = [{**one, **looked(torch, one, request)} for one in found]
    print(json.dumps(document))


def seen(request: dict[str, Any], document: dict[str, Any]) -> list[dict[str, Any]]:
    """The accelerators that are meant, as torch lists them."""
    import torch

    for name in request["imports"]:
        importlib.import_module(name)
    wanted = [one for one in request["devices"] if one != "cpu"]
    told = whole(partial(DEVICE["listed"], torch, wanted), request["patience"])
    document["unseen"] = told.get("error", "")
    listed: list[dict[str, Any]] = told.get("answer", [])
    return listed


def looked(torch: Any, one: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """What is told and found of a device."""
    if one["device"] == "cpu":
        total, free = host()
        told: dict[str, Any] = {"total": total, "free": free, "host_total": total}
    else:
        told = {**accelerator(torch, one["device"], request["patience"]), "host_total": host()[0]}
    if request["allocate"] and "free" in told:
        told |= allocated(torch, one, told, request)
    return told


def accelerator(torch: Any, device: str, patience: float) -> dict[str, Any]:
    """What a device says, and what a second context makes less of it."""
    alone = whole(partial(info, torch, device), patience)
    if "answer" not in alone:
        return {"error": alone.get("error") or "it ended without a word"}
    told: dict[str, Any] = alone["answer"]
    reader, writer = os.pipe()
    holder = apart(partial(holding, torch, device, reader, writer), patience)
    with suppress(StopIteration):
        first = next(holder)
        both = whole(partial(info, torch, device), patience).get("answer") if "answer" in first else None
        if both and told.get("free") is not None:
            told["context"] = max(told["free"] - both["free"], 0)
    os.close(writer)
    os.close(reader)
    for _ in holder:
        pass
    return told


def info(torch: Any, device: str) -> dict[str, Any]:
    """Free and whole memory by the device's own call, and what its properties state."""
    kind, _, index = device.partition(":")
    module, place = getattr(torch, kind), int(index)
    ask = getattr(getattr(torch, "accelerator", None), "get_memory_info", None) or getattr(module, "mem_get_info", None)
    if ask is None:
        raise RuntimeError(f"this torch does not tell the memory of {kind}")
    try:
        free, total = ask(place)
    except Exception:
        free, total = module.mem_get_info(place)
    properties = guarded(lambda: module.get_device_properties(place), None)
    integrated = getattr(properties, "is_integrated", getattr(properties, "integrated", None))
    return {
        "free": int(free),
        "total": int(total),
        "stated": getattr(properties, "total_memory", None),
        "integrated": None if integrated is None else bool(integrated),
    }


def holding(torch: Any, device: str, reader: int, writer: int) -> Iterator[dict[str, Any]]:
    """Use the device, say so, and keep its context until the other end of the pipe is closed."""
    os.close(writer)
    yield {"answer": info(torch, device)}
    os.read(reader, 1)


def allocated(torch: Any, one: dict[str, Any], told: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """The blocks that can be had, or why none was tried."""
    left = max(LEFT, int(PART * told["total"]))
    cap = min(told["free"] - left, request["cap"] or told["free"])
    if reason := taken(one, told, request["given"]):
        return {"refused": reason}
    if cap < STEP:
        return {"refused": f"less than {(left + STEP) >> 20} MiB are free"}
    start = time.monotonic()
    try:
        if one["device"] == "cpu":
            found = ROOM["had"](whole, cap, left, request["patience"])
        else:
            found = answered(whole(partial(blocks, torch, one["device"], cap, left), request["patience"]))
    except RuntimeError as error:
        return {"refused": str(error)}
    return {"allocation": {**found, "cap": cap, "step": STEP, "seconds": round(time.monotonic() - start, 3)}}


def answered(told: dict[str, Any]) -> dict[str, Any]:
    """What a fork answered; raises where it came to another end."""
    if "answer" not in told:
        raise RuntimeError(f"the trials ended: {told.get('error', 'without a word')}")
    found: dict[str, Any] = told["answer"]
    return found


def taken(one: dict[str, Any], told: dict[str, Any], given: list[dict[str, Any]]) -> str:
    """Who else holds a device; empty where nobody does, and of the host, which is always shared."""
    if one["device"] == "cpu":
        return ""
    if names := [f"{had.get('name') or '?'}[{had.get('pid', '?')}]" for had in holders(one, given)]:
        return f"held by {', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''}"
    held = told["total"] - told["free"] - told.get("context", 0)
    return f"others hold {held >> 20} MiB of it" if held > HELD else ""


def holders(one: dict[str, Any], given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The processes on a device by what its tool told, those that ended since left out.

    Where the tool's number of the device is not known every process on any device counts.
    """
    place = one.get("address") or None
    numbers = {had.get("index") for had in given if had["kind"] == "Accelerator" and had.get("address") == place}
    there = [had for had in given if had["kind"] == "DeviceProcess" and alive(had.get("pid"))]
    known = place is not None and numbers - {None}
    return list({had.get("pid"): had for had in there if not known or had.get("index") in (None, *numbers)}.values())


def alive(pid: int | None) -> bool:
    """Whether a process is still there, as far as that is known."""
    return pid is None or os.path.exists(f"/proc/{pid}")


def blocks(torch: Any, device: str, cap: int, left: int) -> dict[str, Any]:
    """The largest block of a device, and blocks beside it until less than a step can be had.

    Before each trial the device is asked what is free: another process may have come.
    """
    kept: list[Any] = []
    kind = device.partition(":")[0]

    def take(size: int) -> bool:
        if info(torch, device)["free"] - size < left:
            return False
        try:
            block = torch.empty(size, dtype=torch.uint8, device=device)
        except RuntimeError:
            return False
        del block
        guarded(lambda: getattr(torch, kind).empty_cache(), None)
        return True

    first = halved(take, cap)
    total, trials, size = 0, first["trials"], first["largest"]
    while size and len(kept) < BLOCKS:
        try:
            kept.append(torch.empty(size, dtype=torch.uint8, device=device))
        except RuntimeError:
            break
        total += size
        more = halved(take, cap - total)
        trials, size = trials + more["trials"], more["largest"]
    count = len(kept)
    kept.clear()
    return {"largest": first["largest"], "total": total, "blocks": count, "trials": trials}


if __name__ == "__main__":
    main()
