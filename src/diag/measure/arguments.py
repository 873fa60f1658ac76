"""Arguments for operators of torch, made from what their schema says and from what the CPU takes.

`made` gives a call of one overload with tensors of about so many numbers on a device. Types and outputs are those of
the first small trial that the CPU's own kernel does not refuse; where it refuses all, there is no call, and a device is
never given what the CPU would not take. Private operators believe their arguments unseen, so those are tried that a
table names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

ROWS = 16
SMALL = (4, 8)
"""Rows and columns of a trial."""
KINDS = ("float32", "int64", "bool", "complex64")
OUTPUTS = (("float32",), ("int64",), ("bool",), ("float32", "int64"), ("complex64",))
"""Types of outputs that are tried; the last of a row stands for all that follow."""
PRIVATE = ("_softmax", "_log_softmax", "_index_put_impl_", "_to_copy", "_safe_softmax")
"""Operators with a private name whose arguments are known here."""
SQUARE: dict[str, tuple[int, ...]] = {
    "mm": (2, 2),
    "bmm": (3, 3),
    "addmm": (2, 2, 2),
    "baddbmm": (3, 3, 3),
    "addbmm": (2, 3, 3),
    "mv": (2, 1),
    "addmv": (1, 2, 1),
    "addr": (2, 1, 1),
}
"""Products: how many dimensions each of their tensors has."""
ONE_ROW = ("index_select", "index_add", "index_copy", "index_fill")
"""Operators whose index is a list of columns, and not one for each place."""
FLAT = ("dot", "vdot", "take", "put", "bincount", "histc", "repeat_interleave", "embedding")
"""Operators of which the first tensor, or the index, has one dimension."""
VALUES: dict[str, Any] = {
    "dim": 1,
    "k": 2,
    "num_samples": 1,
    "half_to_float": False,
    "from": 0,
    "to": 100,
    "start": 0,
    "step": 1,
}
VALUES |= {"lambd": 1.5, "mean": 0.0, "std": 1.0, "p": 0.5, "diagonal": 0, "dim0": 0, "dim1": 1, "n": 1, "beta": 1.0}
"""What arguments get by their names, whatever operator they are of."""
NEEDED = {"clamp": ("min",), "clip": ("min",)}
"""Arguments with a default without which a call is refused."""
INDICES = ("index", "indices")
TRUTHS = ("mask", "condition")


class Trial(NamedTuple):
    """A way to make arguments: tensors of a type, outputs of types, sizes, whether a generator is given."""

    kind: str
    outputs: tuple[str, ...]
    rows: int
    columns: int
    device: str
    seeded: bool = False


def made(torch: Any, name: str, device: str, elements: int, seeded: bool = False) -> Callable[[], Any]:
    """A call of `aten::sort.values_stable` on a device, with tensors of so many numbers; LookupError without any known.

    An output that is given to it has its shape after the first call.
    """
    op = overload(torch, name)
    trial = fitting(torch, op)
    rows = min(ROWS, max(1, elements))
    real = trial._replace(rows=rows, columns=max(1, elements // rows), device=device, seeded=seeded)
    places, names = given(torch, op, real)
    return partial(op, *places, **names)


def overload(torch: Any, name: str) -> Any:
    """The overload of a name as the dispatcher writes it."""
    space, _, rest = name.partition("::")
    packet, _, which = rest.partition(".")
    found = getattr(getattr(getattr(torch.ops, space), packet, None), which or "default", None)
    if found is None:
        raise LookupError(f"this torch has no {name}")
    if packet[0] == "_" and packet not in PRIVATE:
        raise LookupError("its arguments are private")
    return found


def takes_generator(torch: Any, name: str) -> bool:
    """Whether an operator draws numbers, and can be told from where."""
    return any(one.name == "generator" for one in overload(torch, name)._schema.arguments)


def depends(torch: Any, name: str) -> bool:
    """Whether the shape or the number that an operator gives depends on values, so that whoever calls it must wait."""
    op = overload(torch, name)
    tags = {str(one).rpartition(".")[2] for one in getattr(op, "tags", ())}
    return bool(tags & {"dynamic_output_shape", "data_dependent_output"})


def unshaped(torch: Any, name: str) -> bool:
    """Whether torch cannot tell the shape of the answer without computing it."""
    op = overload(torch, name)
    places, names = given(torch, op, fitting(torch, op)._replace(device="meta"))
    try:
        op(*places, **names)
    except NotImplementedError:
        return True
    except Exception:
        return False
    return False


def fitting(torch: Any, op: Any) -> Trial:
    """The first way to make arguments that the CPU takes."""
    outputs = [one for one in op._schema.arguments if one.is_out]
    for kind in KINDS:
        for types in OUTPUTS if outputs else OUTPUTS[:1]:
            trial = Trial(kind, types, *SMALL, "cpu")
            if accepted(torch, op, trial):
                return trial
    raise LookupError("no arguments are known that it takes")


def accepted(torch: Any, op: Any, trial: Trial) -> bool:
    """Whether a call on the CPU goes through."""
    try:
        places, names = given(torch, op, trial)
        op(*places, **names)
    except Exception:
        return False
    return True


def given(torch: Any, op: Any, trial: Trial) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, by place and by name; those that may be left out are."""
    places: list[Any] = []
    names: dict[str, Any] = {}
    outputs, tensors = iter((*trial.outputs, *trial.outputs[-1:] * 8)), 0
    needed = NEEDED.get(op._schema.name.rpartition("::")[2].rstrip("_"), ())
    for one in op._schema.arguments:
        kind = str(one.type)
        if one.is_out:
            names[one.name] = torch.empty(0, dtype=getattr(torch, next(outputs)), device=trial.device)
        elif one.name == "generator":
            if trial.seeded:
                names[one.name] = torch.Generator(device=trial.device).manual_seed(1)
        elif not one.has_default_value() or one.name in needed:
            value = argument(torch, op, one.name, kind, (tensors, trial))
            tensors += kind == "Tensor"
            names.update({one.name: value}) if one.kwarg_only else places.append(value)
    return places, names


def argument(torch: Any, op: Any, name: str, kind: str, which: tuple[int, Trial]) -> Any:
    """What an operator gets for an argument without a default, by its type and name."""
    base, trial = op._schema.name.rpartition("::")[2].rstrip("_"), which[1]
    if "Tensor" in kind:
        one = tensor(torch, base, name, which).to(trial.device)
        return [one] * (1 + (base in ("cat", "stack"))) if kind.startswith("List") else one
    if name == "end":
        return trial.rows * trial.columns
    if name == "dtype":
        return torch.float32
    if name in VALUES:
        value = VALUES[name]
        return [value] if "List[int]" in kind else value
    plain = {"number": 0.5, "float": 0.5, "int": 1, "bool": False, "List[int]": [1]}
    for word in (kind, kind.removeprefix("Optional[").removesuffix("]")):
        if word in plain:
            return plain[word]
    raise LookupError(f"nothing is known to give for {name}: {kind}")


def tensor(torch: Any, base: str, name: str, which: tuple[int, Trial]) -> Any:
    """A tensor on the host for an operator's argument."""
    place, trial = which
    rows, columns, kind = trial.rows, trial.columns, getattr(torch, trial.kind)
    if name in INDICES or (base == "embedding" and place == 1):
        return places_of(torch, base, rows, columns)
    if name in TRUTHS:
        return numbers(torch, torch.bool, rows, columns)
    if base in SQUARE:
        side = isqrt(rows * columns)
        dims = (*SQUARE[base], 2)[min(place, len(SQUARE[base]))]
        return numbers(torch, kind, *((1, side, side) if dims == 3 else (side,) * dims))
    if base in FLAT and base != "embedding":
        return numbers(torch, kind, rows * columns)
    return numbers(torch, kind, rows, columns)


def places_of(torch: Any, base: str, rows: int, columns: int) -> Any:
    """Places int64 in the rows or columns of another tensor."""
    if base in ("index", "index_put", "_index_put_impl", "embedding"):
        return torch.arange(rows)
    if base in FLAT:
        return torch.arange(rows * columns)
    return torch.arange(columns) if base in ONE_ROW else torch.arange(columns).repeat(rows, 1)


def numbers(torch: Any, kind: Any, *shape: int) -> Any:
    """Numbers of a type, from 0.1 to 0.9, 1 to 4, or either truth."""
    count = 1
    for size in shape:
        count *= size
    if kind is torch.bool:
        return (torch.arange(count) % 3 == 0).view(*shape)
    if kind is torch.int64:
        return (torch.arange(count) % 4 + 1).view(*shape)
    # A step that shares nothing with the lengths of rows: each of them holds other numbers, none in order.
    return (torch.arange(count) * 7919 % 10_007 / 12_509 + 0.1).to(kind).view(*shape)


def tensors_of(values: Any) -> Iterator[Any]:
    """The tensors in arguments or answers, however they are nested."""
    if hasattr(values, "element_size"):
        yield values
    elif isinstance(values, (list, tuple, dict)):
        for one in values.values() if isinstance(values, dict) else values:
            yield from tensors_of(one)
