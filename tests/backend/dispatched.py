"""Prints what torch's dispatcher says of some operators in each of their places, as `tests/backend/texts` keeps it.

`python tests/backend/dispatched.py` asks the torch of this interpreter; `tests/backend/torches.py` asks others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

import hostdev
import torch

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
FOLDERS = re.compile(r"/\S*/(?=tests/backend/)|/\S*/(?=torch/_)")
"""What is of this machine alone in the name of a file."""


def main() -> None:
    """Print the texts: the version, then each operator in each place."""
    say(f"torch {torch.__version__}")
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


def replaced() -> Callable[..., object]:
    """A kernel in Python."""
    return lambda self, lambd=1.0, *, generator=None: self.uniform_().log_().neg_()


def block(name: str, place: str) -> None:
    """The dispatcher's table and its registrations, the lines of `KEYS` alone."""
    say(f"\n== {name} {place}")
    for title, text in (("table", torch._C._dispatch_dump_table(name)), ("registered", torch._C._dispatch_dump(name))):
        say(f"-- {title}")
        for line in kept(text):
            say(FOLDERS.sub("", line))


def kept(text: str) -> Iterator[str]:
    """The lines of the keys that matter."""
    for line in text.splitlines():
        if line.partition(":")[0].partition(" ")[0] in KEYS:
            yield line


def say(line: str) -> None:
    """A line."""
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
