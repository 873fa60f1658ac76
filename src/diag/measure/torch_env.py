"""What torch says of itself and its devices; each question that can kill its process is put in a process of its own.

`torch_env.py [EXTENSION …]` prints `diag/torch-env/1`: the build, what the devices are, and for each whether a kernel
over one element really runs (`trials`). Extensions are imported after torch where they are installed. A torch that
raises on import is an answer, too: `error` names the exception. torch is imported once; what touches a device is asked
in forks of that process, which has touched none, and each fork may crash or hang alone (`unseen` says how).
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import json
import os
import re
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

PATIENCE = 45.0
"""Seconds that a fork has to answer: the first use of eight devices can take half a minute."""
DEVICES_CAP = 64
PRELOADED = (
    ("libnccl.so", "ncclGetVersion"),
    ("librccl.so", "ncclGetVersion"),
    ("libcudart.so", "cudaRuntimeGetVersion"),
)
"""Libraries that tell their version without touching a device, and the function that does."""
LIBRARY = re.compile(r"lib[\w.+\-]*\.so(?:\.[\w.]+)?$")
DRIVER = ("libcuda.so.1", "cuDriverGetVersion")


def build(torch: Any) -> dict[str, Any]:
    """The build: version, the runtimes it was built for, how it was compiled, which collectives it has."""
    words = torch.version
    return {
        "version": torch.__version__,
        "cuda": getattr(words, "cuda", None),
        "hip": getattr(words, "hip", None),
        "xpu": getattr(words, "xpu", None),
        "debug": bool(getattr(words, "debug", False)),
        "git_version": getattr(words, "git_version", None),
        "cxx11_abi": guarded(lambda: bool(torch.compiled_with_cxx11_abi()), None),
        "collectives": guarded(lambda: sorted(collectives(torch)), []),
        "nccl": guarded(lambda: ".".join(map(str, torch.cuda.nccl.version())), ""),
    }


def collectives(torch: Any) -> Iterator[str]:
    """The back ends of `torch.distributed` that say they are there, and those that an extension registered."""
    package = torch.distributed
    if package.is_available():
        for name in ("gloo", "mpi", "nccl", "ucc", "xccl"):
            if guarded(getattr(package, f"is_{name}_available", lambda: False), False):
                yield name
        known = {"undefined", "gloo", "mpi", "nccl", "ucc", "xccl", "fake", "threaded"}
        yield from (name for name in package.Backend.backend_list if name not in known)


def extended(names: list[str]) -> dict[str, str]:
    """The extensions that are installed: imported, with what went wrong."""
    told = {}
    for name in names:
        if guarded(partial(importlib.util.find_spec, name), None):
            try:
                importlib.import_module(name)
                told[name] = ""
            except Exception as error:
                told[name] = said(error)
    return told


def seen(torch: Any) -> dict[str, Any]:
    """What torch sees: whether a device is available, its architectures, each device, its warnings, its libraries."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        backend, module, available = accelerator(torch)
        count = min(guarded(module.device_count, 0), DEVICES_CAP) if available else 0
        found = [guarded(partial(device, module, index), {"index": index}) for index in range(count)]
        architectures = guarded(lambda: torch.cuda.get_arch_list(), [])
    return {
        "available": available,
        "backend": backend if found else "",
        "devices": found,
        "architectures": architectures,
        "warnings": list(dict.fromkeys(str(one.message) for one in caught)),
        "libraries": sorted(mapped()),
        "versions": dict(versions()),
    }


def accelerator(torch: Any) -> tuple[str, Any, bool]:
    """The first back end that has a device: its name, its module, and whether one is available."""
    extension = guarded(torch._C._get_privateuse1_backend_name, "")
    current = guarded(lambda: torch.accelerator.current_accelerator().type, "")
    names = [name for name in ("cuda", "xpu", extension, current) if name and hasattr(torch, name)]
    found = ((name, getattr(torch, name)) for name in names)
    available = next((one for one in found if guarded(one[1].is_available, False)), None)
    return (*available, True) if available else ("cuda", torch.cuda, False)


def device(module: Any, index: int) -> dict[str, Any]:
    """One device as torch sees it: name, architecture, memory in bytes."""
    properties = module.get_device_properties(index)
    major, minor = getattr(properties, "major", None), getattr(properties, "minor", None)
    architecture = getattr(properties, "gcnArchName", "") or (f"sm_{major}{minor}" if major is not None else "")
    return {
        "index": index,
        "name": properties.name,
        "architecture": architecture.split(":")[0],
        "memory_bytes": properties.total_memory,
    }


def trial(torch: Any, backend: str, index: int) -> float:
    """Seconds that the first kernel on a device took; raises where it does not run or computes something else."""
    start = time.perf_counter()
    one = torch.ones(1, device=f"{backend}:{index}")
    if (answer := (one + 1).item()) != 2:
        raise ArithmeticError(f"1 + 1 is {answer} on {backend}:{index}")
    return round(time.perf_counter() - start, 3)


def mapped() -> set[str]:
    """The files of shared libraries in the memory of this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        files = (line.rstrip().partition("/")[2] for line in maps)
        return {f"/{file}" for file in files if LIBRARY.match(file.rpartition("/")[2])}


def versions() -> Iterator[tuple[str, int]]:
    """The versions that libraries in memory tell, each as its number, under the function that told it."""
    for file in sorted(mapped()):
        for start, function in (*PRELOADED, DRIVER):
            if file.rpartition("/")[2].startswith(start) and (number := guarded(partial(called, file, function), 0)):
                yield function, number


def called(file: str, function: str) -> int:
    """The number that a function of a library writes, 0 where it fails."""
    number = ctypes.c_int(0)
    failed = getattr(ctypes.CDLL(file), function)(ctypes.byref(number))
    return 0 if failed else number.value


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """An answer of torch, or the other value where asking raises."""
    try:
        return ask()
    except Exception:
        return otherwise


def said(error: BaseException) -> str:
    """An exception in one bounded line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]


def apart(asks: list[Callable[[], Any]]) -> list[dict[str, Any]]:
    """Each question answered in a fork of its own, all side by side: `answer`, or `error` with how the fork ended."""
    waiting = {reader: (place, pid, bytearray()) for place, (reader, pid) in enumerate(map(forked, asks))}
    answers: list[dict[str, Any]] = [{} for _ in asks]
    end = time.monotonic() + PATIENCE
    while waiting:
        ready = select.select(list(waiting), [], [], max(end - time.monotonic(), 0))[0]
        for reader in ready or list(waiting):
            place, pid, held = waiting[reader]
            piece = os.read(reader, 65536) if ready else b""
            held += piece
            if not piece:
                answers[place] = ended(pid, bytes(held), late=not ready)
                os.close(reader)
                del waiting[reader]
    return answers


def forked(ask: Callable[[], Any]) -> tuple[int, int]:
    """A fork that answers into a pipe: the pipe's end to read, and its process id."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return reader, pid
    try:
        try:
            document = {"answer": ask()}
        except Exception as error:
            document = {"error": said(error)}
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(json.dumps(document).encode())
    finally:
        os._exit(0)


def ended(pid: int, written: bytes, late: bool) -> dict[str, Any]:
    """What a fork answered, or how it ended without an answer."""
    if late:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if late:
        return {"error": f"no answer within {PATIENCE:.0f} s"}
    if os.WIFSIGNALED(status):
        return {"error": f"killed by {signal.Signals(os.WTERMSIG(status)).name}"}
    answer: dict[str, Any] = guarded(lambda: json.loads(written), {"error": "it ended without an answer"})
    return answer


def main() -> None:
    """Print the document."""
    document: dict[str, Any] = {"schema": "diag/torch-env/1", "executable": sys.executable}
    start = time.perf_counter()
    try:
        import torch
    except Exception as error:
        document["error"] = said(error)
        print(json.dumps(document))
        return
    document["extensions"] = extended(sys.argv[1:])
    document["import_seconds"] = round(time.perf_counter() - start, 3)
    document["build"] = build(torch)
    sys.stdout.flush()
    (found,) = apart([lambda: seen(torch)])
    document |= found.get("answer", {"backend": "", "devices": [], "unseen": found.get("error", "")})
    indices = [one["index"] for one in document["devices"]]
    trials = apart([partial(trial, torch, document["backend"], index) for index in indices])
    document["trials"] = [{"index": index, **one} for index, one in zip(indices, trials, strict=True)]
    print(json.dumps(document))


if __name__ == "__main__":
    main()
