"""Prints what torch's dispatcher says of some operators in each of their places, as `tests/backend/texts` keeps it.

First what it says of all that engines' steps reach, on a key that nobody has registered anything for: the place is then
what torch answers when asked for a kernel, not what its texts say.

`python tests/backend/dispatched.py` asks the torch of this interpreter; `tests/backend/torches.py` asks others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

REFERENCE = Path(__file__).parents[2] / "kb/reference/operators.yaml"
ROW = re.compile(r"\{operator: (?P<name>aten::\w+)(?:, overload: (?P<overload>\w+))?")
OPERATORS = ("exponential_", "topk.values", "sort.values_stable", "cumsum.out", "argmax.out", "_softmax.out", "mul.out")
COMPOSITES = (
    "softmax.int",
    "sort",
    "cumsum",
    "topk",
    "argmax",
    "where.Scalar",
    "linear",
    "scaled_dot_product_attention",
)
KEYS = ("CPU", "CUDA", "XPU", "Meta", "PrivateUse1")
BARE = ("CPU", "PrivateUse1")
"""The keys that say something where nothing is registered: all others of a device have what `PrivateUse1` has."""
FOLDERS = re.compile(r"/\S*/(?=tests/backend/)|/\S*/(?=torch/_)")
"""What is of this machine alone in the name of a file."""


def main() -> None:
    """Print the texts: the version, then each operator in each place."""
    say(f"torch {torch.__version__}")
    for name in reached():
        block(name, bare(name), BARE)
    # It registers kernels, for nearly all of these.
    import hostdev

    for name in OPERATORS:
        for place in hostdev.PLACES:
            hostdev.turn(f"aten::{name}", place)
            block(f"aten::{name}", place)
        hostdev.everywhere(True)
        block(f"aten::{name}", "everywhere")
        hostdev.everywhere(False)
        hostdev.turn(f"aten::{name}", "native")
    for name in COMPOSITES:
        block(f"aten::{name}", "composite")
    library = torch.library.Library("aten", "IMPL")
    library.impl("exponential_", replaced(), "PrivateUse1")
    block("aten::exponential_", "python")


def reached() -> Iterator[str]:
    """The operators of the reference that this torch has."""
    known = set(torch._C._dispatch_get_all_op_names())
    for row in ROW.finditer(REFERENCE.read_text()):
        name = f"{row['name']}.{row['overload'] or ''}".rstrip(".")
        if name in known:
            yield name


def bare(name: str) -> str:
    """The place of an operator on `PrivateUse1` before any device is there, by what torch finds to call."""
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "PrivateUse1"):
        return "bare-native"
    found = torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "PrivateUse1")
    return "bare-composite" if found else "bare-missing"


def replaced() -> Callable[..., object]:
    """A kernel in Python."""
    return lambda self, lambd=1.0, *, generator=None: self.uniform_().log_().neg_()


def block(name: str, place: str, keys: tuple[str, ...] = KEYS) -> None:
    """The dispatcher's table and its registrations, the lines of some keys alone."""
    say(f"\n== {name} {place}")
    for title, text in (("table", torch._C._dispatch_dump_table(name)), ("registered", torch._C._dispatch_dump(name))):
        say(f"-- {title}")
        for line in kept(text, keys):
            say(FOLDERS.sub("", line))


def kept(text: str, keys: tuple[str, ...]) -> Iterator[str]:
    """The lines of these keys."""
    for line in text.splitlines():
        if line.partition(":")[0].partition(" ")[0] in keys:
            yield line


def say(line: str) -> None:
    """A line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
