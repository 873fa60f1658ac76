"""Where operators of torch run: on their device, or silently on the CPU.

`operators.py REQUEST` prints a document `diag/operators/1` for each detector in `how`, a line each, as soon as it has
one: `static` reads the dispatcher's own table and executes nothing, `dynamic` runs the steps of an engine under the
profiler (`replay.py`), `timing` looks at how the launch of an operator grows with its tensors (`launches.py`). What
executes does so in forks: what kills one of them leaves the answers of the others.

Where no operators are named `static` looks at all of ATen, `timing` at those that `dynamic` found to take longest on
the host and could not accuse of anything.

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

DEFAULTS = {"how": ["static"], "device": "auto", "imports": [], "operators": [], "heaviest": 15, "memory": 0}
"""The request: the detectors in their order, the device as torch names it, modules to import, operators, how many are
timed where none are named, and bytes that a fork may hold on the host, half of what is available where it is 0. What
else stands in it is a detector's own."""
MEMORY = 3 * 2**30
"""Those bytes where nothing tells what is available."""
BLOCKING = "_LAUNCH_BLOCKING"
"""How the names of variables end that make each launch wait for its end."""
PATIENCE = 60.0
"""Seconds in which torch says what accelerator it has."""
COMPOSITE = ("math kernel", "default backend kernel")
KINDS = "|".join(("kernel", "backend fallback", *COMPOSITE))
WINNER = re.compile(rf"(?P<through>fallthrough )?(?:registered at (?P<owner>.*?)|.*?) \[(?P<kind>{KINDS})\]\s*$")
"""What the dispatcher's table says of the kernel that a key has: who registered it, and how it came to the key."""
SIGNATURE = re.compile(
    r"(?:fallthrough )?registered at (?P<owner>.*?) :: (?P<signature>\(none\)|\(.*\) -> .*?) \[ [a-z ]+ \]\s*$"
)
RAISES = "MetaFallbackKernel"
"""The file of the fallback that torch itself has for tensors without numbers: it raises."""
UNKNOWN = ("/dev/null", ".py")
"""How the place of a kernel written in Python begins or ends, by the release of torch."""


def main() -> None:
    """Print the document."""
    request = {**DEFAULTS, **{name: value for one in sys.argv[1:] for name, value in json.loads(one).items()}}
    request["memory"] = request["memory"] or available() // 2 or MEMORY
    about: dict[str, Any] = {"schema": "diag/operators/1", "detectors": request["how"]}
    warnings.simplefilter("ignore")
    try:
        import torch

        for name in request["imports"]:
            importlib.import_module(name)
        device = request["device"] if request["device"] != "auto" else found(torch)
        about |= {"torch": torch.__version__, "device": device}
        request = {**request, "device": device, **named(torch, request["operators"])}
        about |= {"unknown": request["unknown"]} if request["unknown"] else {}
    except Exception as error:
        print(json.dumps({**about, "how": "", "error": said(error)}), flush=True)
        return
    told: dict[str, dict[str, Any]] = {}
    for how in request["how"] if device else [""]:
        try:
            told[how] = DETECTORS[how](torch, {**request, "told": told}) if how else {}
        except Exception as error:
            told[how] = {"error": said(error)}
        print(json.dumps({**about, "how": how, **told[how]}), flush=True)


def available() -> int:
    """Bytes of the host's memory that programs can still get; 0 where nothing tells."""
    try:
        with open("/proc/meminfo") as told:
            sizes = dict(line.split()[:2] for line in told)
    except (OSError, ValueError):
        return 0
    return 1024 * int(sizes.get("MemAvailable:", 0))


def said(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]


def named(torch: Any, wanted: Iterable[str]) -> dict[str, list[str]]:
    """The overloads that names stand for, and the names that this torch lacks.

    `aten::sort.values_stable` and `aten::sort` are one each, `sort` is all of that operator.
    """
    known = sorted(torch._C._dispatch_get_all_op_names())
    found, unknown = list[str](), list[str]()
    for name in wanted:
        full = name if "::" in name else f"aten::{name}"
        of = [one for one in known if one == full or (full is not name and one.startswith(f"{full}."))]
        found += of
        unknown += [] if of else [full]
    return {"operators": list(dict.fromkeys(found)), "unknown": unknown}


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
    key, known = dispatch_key(torch, request["device"]), dispatcher._dispatch_get_all_op_names()
    wanted = request["operators"] or sorted(name for name in known if name.startswith("aten::"))
    told = {"key": key, "asked": request["operators"], "operators": list(placements(dispatcher, key, wanted))}
    return {**told, "seconds": round(time.perf_counter() - start, 3)}


def dispatch_key(torch: Any, device: str) -> str:
    """The dispatch key of a kind of device: `PrivateUse1` for what an extension added, whatever that is called."""
    if device in ("privateuseone", guarded(torch._C._get_privateuse1_backend_name, "")):
        return "PrivateUse1"
    names: dict[str, str] = {name.lower(): name for name in vars(torch._C.DispatchKey) if name[0] != "_"}
    if device not in names:
        raise RuntimeError(f"this torch knows no device {device}")
    return names[device]


def placements(dispatcher: Any, key: str, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Each operator with its placement on a key and the file that registered the kernel.

    A text that is not what it was would show no kernels: whether there are any is asked for beside it.
    """
    there = dispatcher._dispatch_has_computed_kernel_for_dispatch_key
    for name in names:
        table = dispatcher._dispatch_dump_table(name)
        for one in (key, "CPU"):
            if bool(winner(one, table)) != there(name, one):
                raise RuntimeError(f"what this torch's dispatcher writes of {name} on {one} cannot be read")
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
        raise RuntimeError(f"what this torch's dispatcher writes of a kernel on {key} cannot be read")
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
    operators = request["operators"] or list(heaviest(torch, request))
    told: dict[str, Any] = sibling("launches.py")["timed"](torch, {**request, "operators": operators})
    return told


def heaviest(torch: Any, request: dict[str, Any]) -> Iterator[str]:
    """The operators of steps that took the host longest although nothing was seen of copies, by overload.

    A torch that cannot tell the overload has run one of those that the device has kernels for.
    """
    told = request["told"]
    native = {one["name"] for one in told.get("static", {}).get("operators", ()) if one["placement"] == "native"}
    seen = [one for one in told.get("dynamic", {}).get("operators", ()) if one["placement"] == "native"]
    for one in sorted(seen, key=lambda one: -one["microseconds"] / one["calls"])[: request["heaviest"]]:
        full = f"{one['name']}.{one['overload']}".rstrip(".")
        yield from (
            [full]
            if one["overload"] or full in native
            else (name for name in native if name.partition(".")[0] == one["name"])
        )


def guarded(ask: Callable[[], Any], otherwise: Any) -> Any:
    """An answer of torch, or the other value where asking raises."""
    try:
        return ask()
    except Exception:
        return otherwise


DETECTORS = {"static": static, "dynamic": dynamic, "timing": timing}

if __name__ == "__main__":
    main()
