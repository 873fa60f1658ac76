"""Where operators of torch run: on their device, or silently on the CPU.

`operators.py REQUEST` prints `diag/operators/1`. `how` is the detector: `static` reads the dispatcher's own table and
executes nothing, `dynamic` runs the steps of an engine under the profiler (`replay.py`), `timing` looks at how the
launch of an operator grows with its tensors (`launches.py`). Each is a process of its own: what kills one leaves the
answers of the others.

The table shows who is registered, not what that does: a kernel that copies to the CPU by itself is `native` here.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)

DEFAULTS = {"how": "static", "device": "auto", "imports": [], "operators": [], "steps": [], "budget": 6.0}
"""The request: the detector, the device as torch names it, modules to import, operators, steps, seconds."""
BLOCKING = "_LAUNCH_BLOCKING"
"""How the names of variables end that make each launch wait for its end."""
PATIENCE = 60.0
"""Seconds in which torch says what accelerator it has."""
WINNER = re.compile(r"(?P<through>fallthrough )?(?:registered at (?P<owner>.*?)|.*?) \[(?P<kind>[a-z ]+)\]\s*$")
"""What the dispatcher's table says of the kernel that a key has: who registered it, and how it came to the key."""
SIGNATURE = re.compile(r"registered at (?P<owner>.*?) :: (?P<signature>.*?) \[ (?P<calls>[a-z ]+) \]\s*$")
COMPOSITE = ("math kernel", "default backend kernel")
RAISES = "MetaFallbackKernel"
"""The file of the fallback that torch itself has for tensors without numbers: it raises."""
UNKNOWN = ("/dev/null", ".py")
"""How the place of a kernel written in Python begins or ends, by the release of torch."""


def main() -> None:
    """Print the document."""
    request = {**DEFAULTS, **{name: value for one in sys.argv[1:] for name, value in json.loads(one).items()}}
    document: dict[str, Any] = {"schema": "diag/operators/1", "how": request["how"]}
    warnings.simplefilter("ignore")
    try:
        import torch

        for name in request["imports"]:
            importlib.import_module(name)
        device = request["device"] if request["device"] != "auto" else found(torch)
        document |= {"torch": torch.__version__, "device": device}
        if device:
            document |= DETECTORS[request["how"]](torch, {**request, "device": device})
    except Exception as error:
        document["error"] = f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]
    print(json.dumps(document))


def found(torch: Any) -> str:
    """The accelerator that this torch can use, empty where there is none.

    Asked for in a fork: a process that asked cannot hand a device to its own forks.
    """
    device = sibling("device.py")
    told = device["whole"](partial(device["kinds"], torch), PATIENCE)
    if "answer" not in told:
        raise RuntimeError(f"looking for an accelerator: {told.get('error', 'no answer')}")
    return str(next(iter(told["answer"]), ""))


def static(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Who is registered for each operator on a device; those of ATen where none are named."""
    start, dispatcher = time.perf_counter(), torch._C
    key = dispatch_key(torch, request["device"])
    known = set(dispatcher._dispatch_get_all_op_names())
    wanted = request["operators"] or sorted(name for name in known if name.startswith("aten::"))
    found = list(placements(dispatcher, key, [name for name in wanted if name in known]))
    unknown = [name for name in wanted if name not in known]
    return {"key": key, "operators": found, "unknown": unknown, "seconds": round(time.perf_counter() - start, 3)}


def dispatch_key(torch: Any, device: str) -> str:
    """The dispatch key of a kind of device: `PrivateUse1` for what an extension added, whatever that is called."""
    if device in ("privateuseone", guarded(torch._C._get_privateuse1_backend_name, "")):
        return "PrivateUse1"
    names: dict[str, str] = {name.lower(): name for name in vars(torch._C.DispatchKey) if name[0] != "_"}
    if device not in names:
        raise RuntimeError(f"this torch knows no device {device}")
    return names[device]


def placements(dispatcher: Any, key: str, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Each operator with its placement on a key and the file that registered the kernel."""
    for name in names:
        table = dispatcher._dispatch_dump_table(name)
        told = placed(key, table, partial(dispatcher._dispatch_dump, name))
        # What not even the CPU has is for others: an internal operator of one backend.
        if told["placement"] not in ("missing", "backend-fallback") or winner("CPU", table):
            yield {"name": name, **told}


def placed(key: str, table: str, registrations: Callable[[], str]) -> dict[str, str]:
    """The placement of an operator, from the dispatcher's texts: what wins for a key, and all that is registered.

    `missing`: a call raises. `composite`: it is made of others. `backend-fallback`: what the key has for all operators
    that have no kernel. `fallback`: the same, registered for this operator. `python`: a kernel in Python. `native`.
    """
    found = winner(key, table)
    if found is None:
        return {"placement": "missing", "owner": ""}
    owner, kind, through = found["owner"] or "", found["kind"], bool(found["through"])
    if kind in COMPOSITE:
        return {"placement": "composite", "owner": owner}
    if kind == "backend fallback":
        raises = through or RAISES in owner
        return {"placement": "missing" if raises else "backend-fallback", "owner": owner}
    return {"placement": registered(key, registrations()), "owner": owner}


def winner(key: str, table: str) -> re.Match[str] | None:
    """The line of a dispatcher's table for a key."""
    lines = (line[len(key) + 2 :] for line in table.splitlines() if line.startswith(f"{key}: "))
    return next(filter(None, map(WINNER.match, lines)), None)


def registered(key: str, text: str) -> str:
    """What kind of kernel an operator has for a key: C++ shows its types, a boxed one none.

    A boxed kernel takes any operator's arguments: it is a fallback, or written in Python.
    """
    lines = (line[len(key) + 2 :] for line in text.splitlines() if line.startswith(f"{key}: "))
    found = next(filter(None, map(SIGNATURE.match, lines)), None)
    if found is None:
        return "native"
    file = found["owner"].rpartition(":")[0]
    if file.startswith(UNKNOWN[0]) or file.endswith(UNKNOWN[1]):
        return "python"
    boxed = found["signature"] == "(none)"
    return "fallback" if boxed or "fallback" in os.path.basename(file).lower() else "native"


def sibling(name: str) -> dict[str, Any]:
    """The names that a file beside this one defines."""
    return runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), name))


def dynamic(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What copies to the CPU in the steps of an engine."""
    told: dict[str, Any] = sibling("replay.py")["replayed"](torch, request)
    return told


def timing(torch: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Whose launch grows with its tensors."""
    if held := [name for name, value in os.environ.items() if name.endswith(BLOCKING) and value not in ("", "0")]:
        raise RuntimeError(f"{held[0]} is set: each launch waits for its end, and nothing is learnt from its time")
    told: dict[str, Any] = sibling("launches.py")["timed"](torch, request)
    return told


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """An answer of torch, or the other value where asking raises."""
    try:
        return ask()
    except Exception:
        return otherwise


DETECTORS = {"static": static, "dynamic": dynamic, "timing": timing}

if __name__ == "__main__":
    main()
