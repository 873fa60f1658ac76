"""Operators that a backend hands to the CPU: what it prints of it, and the variables that govern it."""

from __future__ import annotations

from typing import Literal

from diag.facts.base import Passing
from diag.facts.reference import Reference


class FallbackNotice(Passing, frozen=True, kw_only=True):
    """A line in which a backend says that an operator ran on the CPU.

    `operator` is the name as printed (`aten::isin.Tensor_Tensor_out`, `digamma`), empty where the line names none,
    `backend` the word of `BackendFallback`. `why`: the backend has no kernel for it (`missing`), its kernel failed
    (`failed`), a variable forces it (`forced`), or the line does not tell.
    """

    operator: str = ""
    backend: str
    why: Literal["", "missing", "failed", "forced"] = ""


class BackendFallback(Reference, frozen=True, kw_only=True):
    """How a backend deals with an operator that it has no kernel for, and the variables that change it.

    `backend` is its word in messages and dispatch keys (`NPU`, `XPU`), `default` what happens where no variable is
    set: the operator runs on the CPU, the call raises, or operators of a list run there and others raise. `forbid`,
    `allow` and `log` are assignments for a shell. `once` says how often it is printed: for each operator, for the whole
    process, or only where asked to; empty where nothing public tells.
    """

    backend: str
    vendor: str = ""
    default: Literal["", "cpu", "raises", "list"] = ""
    forbid: str = ""
    allow: str = ""
    log: str = ""
    once: Literal["", "operator", "process", "asked"] = ""
