"""Operators of torch, and where they run: on their device or on the CPU."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from diag.facts.base import Passing

Detector = Literal["static", "dynamic", "timing"]
Placement = Literal["missing", "fallback", "backend-fallback", "copies", "grows"]


class OperatorTable(Passing, frozen=True, kw_only=True):
    """Which kernels torch's dispatcher has for a kind of device: names with overloads, `aten::sort.values_stable`.

    `native` are operators with a kernel in C++ for the device, `python` with one in Python; `fallback` are handed to
    the CPU by a kernel of their own, `backend_fallback` by the one for all that have none; `missing` raise. What is in
    none of them is made of others. `owners` are the files that registered those of `python`, `fallback` and
    `backend_fallback`, `asked` the operators that the user named, `key` is the dispatch key.
    """

    device: str
    key: str
    torch: str = ""
    native: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()
    backend_fallback: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    owners: dict[str, str] = field(default_factory=dict)


class Operator(Passing, frozen=True, kw_only=True):
    """An operator that does not run on its device, as a detector saw it.

    `missing`: a call raises. `fallback`, `backend-fallback`: the dispatcher hands it to the CPU. `copies`: inside of it
    its tensors went to the CPU, or its work was done there, as `signs` say. `grows`: its launch takes as long as work
    on the host would. `owner` is the file that registered its kernel. `steps` are those of an engine that need it,
    `shape` is what it works on there. `host_us` are microseconds of one call on the host, `bytes` what it moved between
    device and host in one call.
    """

    name: str
    device: str
    detector: Detector
    placement: Placement
    owner: str = ""
    steps: tuple[str, ...] = ()
    shape: str = ""
    signs: tuple[str, ...] = ()
    host_us: float | None = None
    bytes: int | None = None


class OperatorStep(Passing, frozen=True, kw_only=True):
    """A step of an engine that was run on a device.

    `batch` are requests, `vocabulary` entries of each one's logits, `ms` milliseconds to its end, `host_us`
    microseconds that its operators kept the host. `error` is what a step raised that did not come to its end,
    `operator` the one that did; `said` are lines that it printed and warnings.
    """

    step: str
    device: str
    batch: int
    vocabulary: int
    ms: float | None = None
    host_us: dict[str, int] = field(default_factory=dict)
    error: str = ""
    operator: str = ""
    said: tuple[str, ...] = ()


class OperatorScan(Passing, frozen=True, kw_only=True):
    """That a detector looked: at how many operators, for how many seconds, which it could not tell of and why, and how
    many of what it was to run it had no time left for."""

    detector: Detector
    device: str
    looked: int
    seconds: float | None = None
    untold: tuple[str, ...] = ()
    left: int = 0


class OperatorDeath(Passing, frozen=True, kw_only=True):
    """That a step or operator `at` killed the process that a detector ran it in, or hung there; `said` is what it
    printed last."""

    detector: Detector
    device: str
    at: str
    error: str
    said: tuple[str, ...] = ()
