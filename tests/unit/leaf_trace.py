"""A program: which operators a plug-in backend needs kernels of, found by running all steps on one that has them all.

torch lets a program in Python be a backend (PrivateUse1). This one registers a kernel for each operator of ATen for
which torch itself has none there, and computes it on the host; the dispatcher follows composites to them, and each
call is written down. Prints JSON, or with `--rows` the rows of kb/reference/operators.yaml.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import groupby, pairwise
from math import prod
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from typing import Any

import torch
from torch.autograd.profiler_util import EventList
from torch.utils import _pytree as tree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

STEPS = runpy.run_path(str(Path(__file__).parents[2] / "src/diag/measure/steps.py"))
KEY = "PrivateUse1"
RAN = "kernel of the backend"
SMALL = {"batch": 6, "vocabulary": 101, "prompt": 11, "output": 7, "logprobs": 19, "top_k": 9, "drafts": 2}
SMALL |= {"context": 13, "hidden": 32, "heads": 10, "kv_heads": 5, "head": 16, "feed_forward": 48}
WORDS = {
    "B": lambda n: n.batch,
    "V": lambda n: n.vocabulary,
    "V+1": lambda n: n.vocabulary + 1,
    "n": lambda n: n.drafts,
    "n+1": lambda n: n.drafts + 1,
    "T": lambda n: n.batch * n.drafts,
    "T+B": lambda n: n.batch * (n.drafts + 1),
    "N": lambda n: n.logprobs,
    "N+1": lambda n: n.logprobs + 1,
    "K": lambda n: n.top_k,
    "P": lambda n: n.prompt,
    "O": lambda n: n.output,
    "C": lambda n: n.context,
    "B*C": lambda n: n.batch * n.context,
    "H": lambda n: n.hidden,
    "heads": lambda n: n.heads,
    "kv": lambda n: n.kv_heads,
    "D": lambda n: n.head,
    "heads*D": lambda n: n.heads * n.head,
    "(heads+2*kv)*D": lambda n: (n.heads + 2 * n.kv_heads) * n.head,
    "F": lambda n: n.feed_forward,
    "2*F": lambda n: 2 * n.feed_forward,
}
seen: list[tuple[str, str]] = []
kept: dict[int, Any] = {}


class Held(torch.Tensor):
    """A tensor of the backend; its numbers are those of a tensor on the host, `raw`."""

    @staticmethod
    def __new__(cls, raw: torch.Tensor) -> Held:
        place = {"strides": raw.stride(), "storage_offset": raw.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(cls, raw.size(), dtype=raw.dtype, device="privateuseone:0", **place)
        made.raw = raw
        kept[made.untyped_storage()._cdata] = made
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keys = torch._C.DispatchKey
        python = torch._C.DispatchKeySet(keys.Python) | torch._C.DispatchKeySet(keys.PythonTLSSnapshot)
        with torch._C._ExcludeDispatchKeyGuard(python):
            return func(*args, **(kwargs or {}))

    __torch_function__ = torch._C._disabled_torch_function_impl


def computed(op: Any, *args: Any, **kwargs: Any) -> Any:
    """The kernel of every operator."""
    args, kwargs = tree.tree_map(known, (args, kwargs))
    given = [one for one in tree.tree_leaves((args, kwargs)) if isinstance(one, Held)]
    with torch.profiler.record_function(RAN):
        return ran(op, given, args, kwargs)


def ran(op: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
    """What a kernel answers: on the host, and as tensors of the backend."""
    back = {id(one.raw): one for one in given}
    plain_args, plain = tree.tree_map(on_host, args), tree.tree_map(on_host, kwargs)
    if op._schema.name in ("aten::_copy_from", "aten::_copy_from_and_resize"):
        answer = plain_args[1].copy_(plain_args[0])
        answer = args[1] if answer is plain_args[1] else answer
    else:
        answer = op(*plain_args, **plain)
    for one in given:
        if one.shape != one.raw.shape:
            one.data = Held(one.raw)
    name = op._schema.name + ("." + op._schema.overload_name if op._schema.overload_name else "")
    seen.append((name, largest([one.raw for one in given] or [answer])))
    return tree.tree_map(lambda one: back[id(one)] if id(one) in back else on_device(one), answer)


def known(one: Any) -> Any:
    """What torch made of one of our tensors without asking (an alias of other dimensions), as ours."""
    if not isinstance(one, torch.Tensor) or isinstance(one, Held) or one.device.type == "cpu":
        return one
    base = kept[one.untyped_storage()._cdata]
    return Held(base.raw.as_strided(one.shape, one.stride(), one.storage_offset()))


def on_host(one: Any) -> Any:
    return one.raw if isinstance(one, Held) else torch.device("cpu") if isinstance(one, torch.device) else one


def on_device(one: Any) -> Any:
    return Held(one) if isinstance(one, torch.Tensor) and not isinstance(one, Held) else one


def largest(tensors: list[Any]) -> str:
    """The largest of tensors in words, as it is at real sizes."""
    return max((worded(one) for one in tensors), key=weight)


def worded(tensor: Any) -> str:
    small = STEPS["Sizes"](**SMALL)
    names = {value(small): word for word, value in WORDS.items()}
    dims = ", ".join(names.get(dim, str(dim)) for dim in tensor.shape)
    return f"[{dims}] {str(tensor.dtype).removeprefix('torch.')}"


def weight(shape: str) -> tuple[int, int, bool]:
    """Elements at real sizes; of two as large the plainer, and the type that samplers compute in."""
    real, dims = STEPS["Sizes"](), [word for word in shape[1 : shape.index("]")].split(", ") if word]
    return prod(WORDS[word](real) if word in WORDS else int(word) for word in dims), -len(dims), "float32" in shape


def registered() -> torch.library.Library:
    """A kernel for each operator of ATen that torch itself cannot do on a plug-in backend."""
    _setup_privateuseone_for_python_backend()
    library = torch.library.Library("aten", "IMPL")
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::") and not torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, KEY):
            packet, _, overload = name.removeprefix("aten::").partition(".")
            op = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
            if op:
                library.impl(name.removeprefix("aten::"), partial(computed, op), KEY)
    return library


def chains(run: Any) -> Iterator[list[str]]:
    """For each kernel that a step ran, the operators that led to it, from the one that the step called."""
    # Else what calls another overload of its own name alone is left out.
    EventList._remove_dup_nodes = lambda self: None
    config = torch._C._profiler._ExperimentalConfig(capture_overload_names=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.no_grad(), torch.profiler.profile(activities=activities, experimental_config=config) as seeing:
        run()
    for event in seeing.events():
        above = list(ancestors(event))
        if event.name == RAN and RAN not in (one.name for one in above):
            names = [full(one) for one in reversed(above) if one.name.startswith("aten::")]
            yield [name for name, _ in groupby(names)]


def ancestors(event: Any) -> Iterator[Any]:
    while event := event.cpu_parent:
        yield event


def full(event: Any) -> str:
    return event.name + ("." + event.overload_name if event.overload_name else "")


def traced() -> dict[str, dict[str, Any]]:
    """Of each operator what it calls, the shapes it was called with, and in which steps."""
    told: dict[str, dict[str, Any]] = defaultdict(lambda: {"calls": set(), "shapes": set(), "steps": {}})
    # A backend in Python cannot have generators of its own; its kernels take the host's.
    names = SimpleNamespace(**vars(torch) | {"Generator": lambda device="cpu": torch.Generator()})
    for name, step in STEPS["STEPS"].items():
        run = STEPS["prepared"](names, name, "privateuseone", STEPS["Sizes"](**SMALL))
        seen.clear()
        kept.clear()
        for chain in chains(run):
            for op, called in pairwise([*chain, ""]):
                told[op]["steps"][name] = step.part
                told[op]["calls"] |= {called} - {""}
        for op, shape in seen:
            told[op]["shapes"].add(shape)
    return dict(sorted(told.items()))


def rows() -> list[dict[str, Any]]:
    """The rows of the reference, without source and day; what is empty is left out."""
    told = []
    for name, row in traced().items():
        operator, _, overload = name.partition(".")
        shape = max(sorted(row["shapes"]), key=weight, default="")
        parts, steps = sorted(set(row["steps"].values())), list(row["steps"])
        whole = {"operator": operator, "overload": overload, "shape": shape, "calls": sorted(row["calls"])}
        told.append({key: value for key, value in {**whole, "parts": parts, "steps": steps}.items() if value})
    return told


def written(row: dict[str, Any]) -> str:
    """A row as YAML; of its values the shapes alone need quotes."""
    values = {key: json.dumps(value) if key == "shape" else unquoted(value) for key, value in row.items()}
    whole = "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"
    return fill(whole, 150, initial_indent="  - ", subsequent_indent="     ", break_on_hyphens=False)


def unquoted(value: Any) -> str:
    return json.dumps(value).replace('"', "")


def main() -> None:
    """Print what was found."""
    library, told = registered(), rows()
    del library
    if "--rows" in sys.argv:
        for row in told:
            print(written(row))
    else:
        print(json.dumps(told))


if __name__ == "__main__":
    main()
