"""Which overload of an operator a call was, where torch's profiler does not tell it: by what the call was given.

The profiler keeps of a call its tensors, lists of tensors and single numbers, and a None for all else, each in its
place. Of the overloads these are compared with, one may be left: that is the one. Several or none leave it untold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

NUMBERS = {bool: ("bool", "number"), int: ("int", "number"), float: ("float", "number")}
"""What the schemas call a single number that was kept; types of tensors are kept as an int, and are one there."""
KEPT = ("Tensor", "List[Tensor]", "bool", "int", "float")
"""Types of arguments of which something is always kept."""
NAMES = "List[str]"
"""The type of dimensions that are named: older releases have an overload for them beside each with numbered ones, which
keeps the same, and no engine names any."""
OPTIONAL = "Optional["


def by_arguments(torch: Any) -> Callable[[str, Sequence[Any]], str]:
    """What gives the overload for a name with its namespace and for what the profiler kept; empty where untold."""

    @cache
    def schemas(name: str) -> list[tuple[str, list[str]]]:
        known = torch._C._jit_get_schemas_for_operator(name)
        return [(one.overload_name, [str(argument.type) for argument in one.arguments]) for one in known]

    def overload(name: str, given: Sequence[Any]) -> str:
        left = [which for which, types in schemas(name) if len(types) == len(given) and all(map(fits, types, given))]
        return left[0] if len(left) == 1 else ""

    return overload


def fits(kind: str, given: Any) -> bool:
    """Whether an argument of a type may be what the profiler kept."""
    bare = kind[len(OPTIONAL) : -1] if kind.startswith(OPTIONAL) else kind
    if given is None:
        return kind not in (*KEPT, NAMES)
    if isinstance(given, list):
        return bare.startswith("List[") and "Tensor" in bare
    return bare in NUMBERS.get(type(given), ("Tensor",))
