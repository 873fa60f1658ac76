"""Collectives between ranks, timed call by call and verified: one process a rank; rank 0 prints `diag/collectives/1`.

`collectives.py REQUEST` reads `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `MASTER_ADDR` and `MASTER_PORT` as torch does. Where
the request says `ask`, it measures nothing: see `ANSWERS`. What ranks tell each other travels over the store, never
over the collective that is measured. Whoever looks after a rank reads in the file `progress` which call it is in, and
after rank 0 in `partial` what was measured by then. The measuring is `sweep.py`'s and, where the request says
`isolate`, `isolate.py`'s.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import mmap
import os
import re
import runpy
import signal
import socket
import struct
import sys
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

ANSWER = 5.0
"""Seconds in which the store answers whoever only asks."""
FAREWELL = 5.0
"""Seconds that rank 0, who holds the store, waits for the others to read that it is over."""
RECORD, PHASE = struct.Struct("<qq"), 480
"""What is noted of a rank: calls entered, calls finished, and in words what it does, of so many bytes."""
DIE_WITH_PARENT = 1


class Progress:
    """Where this rank is, in memory that whoever looks after it reads; calls are counted."""

    def __init__(self, path: str) -> None:
        self.calls = 0
        if path:
            with open(path, "r+b") as file:
                self.memory: Any = mmap.mmap(file.fileno(), RECORD.size + PHASE)
        else:
            self.memory = bytearray(RECORD.size + PHASE)

    def at(self, phase: str) -> None:
        """Note what this rank does."""
        self.memory[RECORD.size :] = phase.encode()[:PHASE].ljust(PHASE)

    def enter(self) -> None:
        """Note that a call begins."""
        self.calls += 1
        RECORD.pack_into(self.memory, 0, self.calls, self.calls - 1)

    def leave(self) -> None:
        """Note that it has ended."""
        RECORD.pack_into(self.memory, 0, self.calls, self.calls)


class World:
    """This rank, the others, and the store they meet in."""

    def __init__(self, torch: Any, request: dict[str, Any], progress: Progress) -> None:
        self.torch, self.request, self.progress = torch, request, progress
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.local = int(os.environ.get("LOCAL_RANK", self.rank))
        self.device, self.backend = resolved(torch, request["device"], request["backend"])
        self.module: Any = getattr(torch, self.device)
        self.synchronise: Callable[[], Any] = (lambda: None) if self.device == "cpu" else self.module.synchronize
        self.patience = timedelta(seconds=request["patience"])
        self.store = meeting(torch, self.patience, progress, holds=self.rank == 0)

    def tell(self, key: str, value: Any) -> None:
        """Put something into the store for the others."""
        self.store.set(key, json.dumps(value))

    def told(self, key: str) -> Any:
        """Wait for what another has put there."""
        return json.loads(self.store.get(key))

    def all(self, key: str, value: Any) -> list[Any]:
        """What each rank says; only rank 0 waits for it."""
        self.tell(f"{key}/{self.rank}", value)
        return [self.told(f"{key}/{rank}") for rank in range(self.size)] if self.rank == 0 else []

    def met(self, own: Any) -> list[Any]:
        """Who each rank is; on rank 0 alone."""
        self.tell(f"identity/{self.rank}", own)
        self.progress.at("waiting for rank 0")
        ranks = []
        for rank in range(self.size) if self.rank == 0 else ():
            self.progress.at(f"waiting for rank {rank}")
            ranks.append(self.told(f"identity/{rank}"))
        return ranks

    def agreed(self, key: str, value: Any) -> Any:
        """What rank 0 says."""
        if self.rank == 0:
            self.tell(key, value)
        return self.told(key)


def meeting(torch: Any, patience: timedelta, progress: Progress, *, holds: bool) -> Any:
    """The store that all ranks share; the first holds it, unless torchrun's own agent does."""
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    progress.at(f"meeting the others at {address}:{port}")
    whole = torch.distributed.TCPStore(address, port, None, holds and not agent, patience, wait_for_workers=False)
    return torch.distributed.PrefixStore(f"diag/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", whole)


def main() -> None:
    """Meet, measure, and print the document on rank 0."""
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    with_parent()
    progress = Progress(request.get("progress", ""))
    progress.at("importing torch")
    try:
        import torch
        import torch.distributed

        for name in request.get("imports", ()):
            progress.at(f"importing {name}")
            importlib.import_module(name)
        progress.at("choosing device and backend")
        if request.get("ask"):
            answer = ANSWERS[request["ask"]](torch, request)
            print(json.dumps({"schema": "diag/collectives-answer/1", **answer}), flush=True)
        else:
            took_part(World(torch, request, progress))
    except Exception as error:
        phase = bytes(progress.memory[RECORD.size :]).decode(errors="replace").strip()
        said = (str(error).strip().splitlines() or [""])[0]
        progress.at(f"{phase}: {type(error).__name__}: {said}")
        print(f"{phase}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    sys.stdout.flush()
    # Destroying a process group may wait for ever for a rank that is gone.
    os._exit(0)


def with_parent() -> None:
    """End with whoever started this process, also where that is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)


def resolved(torch: Any, device: str, backend: str) -> tuple[str, str]:
    """The device and the backend to measure with; `auto` is what this torch has, and what it takes for that."""
    backends = torch.distributed.Backend
    if device == "auto" and backend != "auto":
        takes = backends.backend_capability.get(backend, [])
        device = "cpu" if "cpu" in takes else "auto"
    if device == "auto":
        device = accelerator(torch) or "cpu"
    if device != "cpu" and not guarded(partial(usable, torch, device), False):
        raise RuntimeError(f"this torch has no {device} that it can use")
    known = [one for one in backends.backend_list if one != "undefined"]
    if backend != "auto" and backend not in known:
        raise RuntimeError(f"torch knows no backend {backend}; there are {', '.join(known)}")
    if not getattr(torch.distributed, f"is_{backend}_available", lambda: True)():
        raise RuntimeError(f"this torch was built without {backend}")
    if backend == "auto":
        backend = backends.default_device_backend_map.get(device, "gloo")
    return device, backend


def accelerator(torch: Any) -> str:
    """The accelerator that this torch can use, by its name in torch; empty where there is none."""
    if hasattr(torch, "accelerator"):
        found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return found.type if found else ""
    names = ("cuda", "xpu", guarded(torch._C._get_privateuse1_backend_name, ""))
    return next((name for name in names if guarded(partial(usable, torch, name), False)), "")


def usable(torch: Any, name: str) -> bool:
    """Whether this torch has devices of this name."""
    return bool(getattr(torch, name).is_available())


def here(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What would be measured on, how many there are, and the free memory of each."""
    device, backend = resolved(torch, request["device"], request["backend"])
    module = getattr(torch, device)
    count = 0 if device == "cpu" else module.device_count()
    # Whoever asks a device for its memory begins to use it, which takes its time.
    asked = range(count) if request["ask"] == "memory" else ()
    memory = [guarded(partial(memory_of, module, index), None) for index in asked]
    return {"device": device, "backend": backend, "devices": count, "memory": memory}


def tell(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Put into the store what whoever looks after a rank knows of it, for whoever looks after rank 0."""
    store = meeting(torch, timedelta(seconds=ANSWER), Progress(""), holds=False)
    store.set(f"said/{os.environ['RANK']}", json.dumps(request["said"]))
    return {}


def said(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What was put there of each rank, as far as it comes in time."""
    store = meeting(torch, timedelta(seconds=ANSWER), Progress(""), holds=False)
    end = time.monotonic() + request["wait"]
    found: dict[int, Any] = {}
    others = [rank for rank in range(int(os.environ["WORLD_SIZE"])) if str(rank) != os.environ["RANK"]]
    while len(found) < len(others) and time.monotonic() < end:
        for rank in others:
            if rank not in found and store.check([f"said/{rank}"]):
                found[rank] = json.loads(store.get(f"said/{rank}"))
        time.sleep(0.1)
    return {"said": list(found.values())}


def memory_of(module: Any, index: int | None) -> list[int]:
    """Bytes of a device's memory: those that nobody holds, and all."""
    return list(module.mem_get_info(index))


def took_part(world: World) -> None:
    """Say who this is, measure, and tell rank 0; only where all ranks may be measured together."""
    began = time.monotonic()
    world.progress.at("first use of the device")
    if world.device != "cpu":
        world.module.set_device(world.local % max(1, world.module.device_count()))
    ranks = world.met(identity(world))
    document: dict[str, Any] = {
        "schema": "diag/collectives/1",
        "device": world.device,
        "backend": world.backend,
        "dtype": world.request["dtype"],
        "ranks": ranks,
        "results": [],
    }
    shown(world, document)
    if refusal := world.agreed("refused", refused(ranks)):
        document["trouble"] = {"kind": "refused", "reason": refusal[0], "suspects": refusal[1]}
    else:
        measured(world, document)
    document["seconds"] = round(time.monotonic() - began, 2)
    if world.rank == 0:
        print(json.dumps(document), flush=True)
    world.progress.at("parting")
    world.agreed("end", "")
    world.tell(f"gone/{world.rank}", "")
    # The store ends with the process of rank 0: the others must have read that it is over.
    keys = [f"gone/{rank}" for rank in range(world.size)] if world.rank == 0 else []
    guarded(lambda: world.store.wait(keys, timedelta(seconds=FAREWELL)) if keys else None, None)


def shown(world: World, document: dict[str, Any]) -> None:
    """Let whoever looks after rank 0 have the document as it is now."""
    if world.rank == 0 and world.request.get("partial"):
        with open(world.request["partial"], "r+b") as file:
            file.truncate(0)
            file.write(json.dumps(document).encode())


def measured(world: World, document: dict[str, Any]) -> None:
    """The first call, the libraries behind it, and all cases."""
    request, distributed = world.request, world.torch.distributed
    world.progress.at(f"joining the group by {world.backend} on {world.device}")
    group = distributed.PrefixStore("group", world.store)
    distributed.init_process_group(
        world.backend, store=group, rank=world.rank, world_size=world.size, timeout=world.patience
    )
    world.progress.at(f"the first all_reduce, by {world.backend} on {world.device}")
    world.progress.enter()
    distributed.all_reduce(world.torch.zeros(2, device=world.device))
    world.synchronise()
    world.progress.leave()
    world.progress.at("between the first call and the others")
    loaded = libraries(tuple(request.get("libraries", ())), request.get("versions", "") if world.rank == 0 else "")
    for one, found in zip(document["ranks"], world.all("libraries", loaded)):
        one["libraries"] = found
    document["implementation"] = implementation(world)
    programs = [("sweep.py", "swept"), *([("isolate.py", "isolated")] if request.get("isolate") else [])]
    for file, name in programs:
        beside = runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), file))
        beside[name](world, document, lambda: shown(world, document))


def implementation(world: World) -> str:
    """The class that torch has behind the name of the backend."""
    group = world.torch.distributed.distributed_c10d._get_default_group()
    return type(guarded(lambda: group._get_backend(world.torch.device(world.device)), group)).__name__


def identity(world: World) -> dict[str, Any]:
    """Who this rank is, and what it would measure on."""
    torch, module = world.torch, world.module
    index = None if world.device == "cpu" else module.current_device()
    properties = None if index is None else module.get_device_properties(index)
    uuid = str(getattr(properties, "uuid", "") or "")
    return {
        "rank": world.rank,
        "host": socket.gethostname(),
        "index": index,
        "pid": os.getpid(),
        "progress": world.request.get("progress", ""),
        "device": getattr(properties, "name", "cpu"),
        "address": uuid or ("" if index is None else f"{world.device}:{index}"),
        "memory": guarded(partial(memory_of, module, index), None),
        "torch": torch.__version__,
        "library": guarded(lambda: ".".join(map(str, torch.cuda.nccl.version())), "") if world.device == "cuda" else "",
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
    }


def refused(ranks: list[dict[str, Any]]) -> tuple[str, list[int]] | None:
    """Why these ranks measure nothing: one alone, a device held twice, different versions; and which they are."""
    if len(ranks) == 1:
        return "one rank alone has nobody to exchange with", [0]
    held: dict[tuple[str, str], int] = {}
    for one in ranks:
        key = (one["host"], one["address"])
        if one["address"] and key in held:
            suspects = [held[key], one["rank"]]
            return f"ranks {suspects[0]} and {suspects[1]} hold the same device {key[1]} of {key[0]}", suspects
        held[key] = one["rank"]
    for name, what in (("torch", "torch"), ("library", "the collective library")):
        versions = {one[name]: one["rank"] for one in reversed(ranks)}
        if len(versions) > 1:
            told = ", ".join(f"{version or 'none'} on rank {rank}" for version, rank in versions.items())
            return f"{what} differs: {told}", sorted(versions.values())
    return None


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """What a question answers, or something else where it raises."""
    try:
        return ask()
    except Exception:
        return otherwise


def libraries(names: tuple[str, ...], versions: str) -> list[tuple[str, str]]:
    """The files in this process whose names begin so, each with the first thing in it that matches `versions`."""
    try:
        with open("/proc/self/maps") as file:
            paths = {line.split(None, 5)[5].strip() for line in file if ".so" in line}
    except OSError:
        return []
    found = sorted(path for path in paths if os.path.basename(path).startswith(names))
    return [(path, guarded(partial(version, path, versions), "")) for path in found]


def version(path: str, pattern: str) -> str:
    """What a file says of its own version."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        found = re.search(pattern.encode(), content) if pattern else None
        return found[1].decode() if found else ""


ANSWERS = {"count": here, "memory": here, "tell": tell, "said": said}
"""What can be asked: the devices, their memory too; what others are to know of a rank, and what is known."""

if __name__ == "__main__":
    main()
