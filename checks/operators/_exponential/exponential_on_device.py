"""A kernel of `exponential_` for accelerators whose backend of torch sends it to the CPU, made of operators they have.

Importing it, after the backend's own plug-in, registers `uniform_`, `log_`, `neg_` and `clamp_min_` in its place, on
the device: for the backend that an extension added, else for XPU, else for CUDA, whose key some makers' plug-ins take;
the variable EXPONENTIAL_ON_DEVICE names another dispatch key. It needs torch alone, from 2.1 on.

Into a server: with this folder on PYTHONPATH vLLM calls `register` in each of its processes before it does any work
(entry point `vllm.general_plugins`; where VLLM_PLUGINS is set it must name `exponential_on_device`), and so does an
SGLang that has plug-ins (`sglang.srt.plugins`, SGLANG_PLUGINS). An older SGLang needs the import in its own code.

`python exponential_on_device.py --device npu --import torch_npu` times a draw before and after, and tests what is
drawn: exit code 0 where all of it holds. What it cannot know: whether `uniform_` and `log_` run on the device; the time
tells.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import torch

VARIABLE = "EXPONENTIAL_ON_DEVICE"
LEVEL = 1e-10
"""The probability with which the bound on a distance fails sound draws (Dvoretzky, Kiefer and Wolfowitz)."""
DRAWS, ROWS = 2**19, 2**16
"""Numbers of a distribution; rows of which a token each is drawn."""
WEIGHTS = (1, 5, 1, 2, 3, 8, 2, 1, 1, 4, 1, 3)
"""The chances of a row's tokens, out of 32."""
TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
RUNS = 5
_kept: list[Any] = []


def exponential_(self: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    """Fill a tensor of any floating type with draws of an exponential distribution of rate `lambd`.

    Neither zero nor infinity comes, as samplers divide by the draws: the least is half an epsilon, as in ATen's kernel
    for CUDA (ATen/core/TransformationHelper.h).
    """
    if not lambd > 0.0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    if not self.is_floating_point():
        raise RuntimeError(f"exponential_ expects a floating type, but found {self.dtype}")
    same = self.dtype in (torch.float32, torch.float64)
    wide = self if same else torch.empty(self.shape, dtype=torch.float32, device=self.device)
    least = torch.finfo(wide.dtype).eps / 2
    wide.uniform_(least, 1.0, generator=generator).log_().neg_().clamp_min_(least)
    if lambd != 1.0:
        wide.div_(lambd)
    return self if same else self.copy_(wide)


def dispatch_key() -> str:
    """The dispatch key of this torch's accelerator, found without touching it: servers fork behind this."""
    if given := os.environ.get(VARIABLE):
        return given
    if torch._C._get_privateuse1_backend_name() != "privateuseone":
        return "PrivateUse1"
    if getattr(torch.version, "xpu", None):
        return "XPU"
    if torch.version.cuda or torch.version.hip:
        return "CUDA"
    raise RuntimeError(
        f"this torch has no accelerator: import its plug-in first, or name its dispatch key in {VARIABLE}"
    )


def register() -> None:
    """Register the kernel; once is enough."""
    if not _kept:
        library = torch.library.Library("aten", "IMPL")
        library.impl("exponential_", exponential_, dispatch_key())
        _kept.append(library)


def main() -> int:
    """Measure, register, measure again and test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", required=True, help="as torch calls it: npu, xpu, cuda")
    parser.add_argument("--import", dest="imports", action="append", default=[], help="the plug-in of torch")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=152_064)
    asked = parser.parse_args()
    for name in asked.imports:
        importlib.import_module(name)
    clocks = torch.empty(asked.batch, asked.vocabulary, device=asked.device)
    before = seconds(clocks)
    register()
    after = seconds(clocks)
    ratio = f", {before / after:.1f} times as fast" if before and after else ""
    say(f"a draw of {list(clocks.shape)}: {told(before)} before, {told(after)} after{ratio}")
    sound = bool(after)
    for what, holds in tested(asked.device):
        say(f"{'holds' if holds else 'FAILS'}: {what}")
        sound = sound and holds
    return 0 if sound else 1


def say(line: str) -> None:
    """A line for people."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def told(taken: float) -> str:
    """Seconds for people."""
    return f"{taken * 1000:.3g} ms" if taken else "raises"


def seconds(clocks: Any) -> float:
    """Seconds of a draw to its end, the median of some; 0 where it raises."""
    taken = []
    for _ in range(RUNS + 1):
        synchronise(clocks.device.type)
        start = time.perf_counter()
        try:
            clocks.exponential_()
            synchronise(clocks.device.type)
        except Exception:
            return 0.0
        taken.append(time.perf_counter() - start)
    return sorted(taken[1:])[RUNS // 2]


def synchronise(kind: str) -> None:
    """Wait until the device has done all that it was told."""
    if kind != "cpu":
        getattr(torch, kind).synchronize()


def tested(device: str) -> Iterator[tuple[str, bool]]:
    """What was looked at, and whether it holds."""
    for kind in TYPES:
        try:
            torch.empty(1, dtype=kind, device=device).add_(1)
        except Exception:
            continue
        yield distribution(kind, device, 1.0)
        yield distribution(kind, device, 3.0)
    yield tokens(device)
    yield from seeds(device)


def distribution(kind: Any, device: str, rate: float) -> tuple[str, bool]:
    """Whether draws have the distribution function that they must, and neither zero nor infinity is among them."""
    values = rate * torch.empty(DRAWS, dtype=kind, device=device).exponential_(rate)
    slack = 2 * float(torch.finfo(values.dtype).eps)
    values = values.cpu().double().sort().values
    count = len(values)
    share, function = torch.arange(count + 1, dtype=torch.float64) / count, -torch.expm1(-values)
    far = float(torch.maximum(share[1:] - function, function - share[:-1]).max())
    allowed = math.sqrt(math.log(2 / LEVEL) / (2 * count)) + slack
    sound = bool((values > 0).all() and values.isfinite().all() and len(values.unique()) > min(count // 4, 1 / slack))
    return (
        f"the distribution of draws in {kind}, rate {rate}: off by {far:.2g}, allowed {allowed:.2g}",
        sound and far <= allowed,
    )


def tokens(device: str) -> tuple[str, bool]:
    """Whether tokens drawn as samplers do, by the race of exponential clocks, have their probabilities."""
    weights = torch.tensor(WEIGHTS, dtype=torch.float64)
    chances = weights / weights.sum()
    rows = chances.float().to(device).repeat(ROWS, 1)
    drawn = rows.div_(torch.empty_like(rows).exponential_()).argmax(dim=-1).cpu()
    shares = torch.bincount(drawn, minlength=len(WEIGHTS)).double() / ROWS
    far = float((shares.cumsum(0) - chances.cumsum(0)).abs().max())
    allowed = math.sqrt(math.log(2 / LEVEL) / (2 * ROWS))
    return f"the share of each token drawn: off by {far:.2g}, allowed {allowed:.2g}", far <= allowed


def seeds(device: str) -> Iterator[tuple[str, bool]]:
    """Whether a request's own generator is taken, gives the same again, and another one others."""

    def drawn(seed: int) -> Any:
        generator = torch.Generator(device=device).manual_seed(seed)
        return torch.empty(1000, device=device).exponential_(generator=generator).cpu()

    try:
        one, again, other = drawn(1), drawn(1), drawn(2)
    except Exception as error:
        yield f"a request's own seed: {type(error).__name__}: {error}", False
        return
    yield (
        "the same seed draws the same, another one others",
        bool(torch.equal(one, again) and not torch.equal(one, other)),
    )


if __name__ == "__main__":
    sys.exit(main())
else:
    register()
